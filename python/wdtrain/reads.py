"""What networks read besides the observation: streams of the environment, and which agent a row is of.

Inside, these numbers are columns behind those of the observation: a row is [observation, streams, agent id].
"""

import itertools
import json
import math
import re
from typing import List, NamedTuple, Tuple

import torch
from torch import Tensor, nn

from wdtrain.files import RunError, UsageError

OBSERVATION, AGENT_ID = "observation", "agent_id"
MAX_AGENTS = 1 << 24  # ids are exact in float32


class Stream(NamedTuple):
    name: str
    shape: Tuple[int, ...]
    per_replica: bool

    @property
    def size(self):
        return math.prod(self.shape)


def names_of(metadata, key):
    return [name for name in metadata.get(key, "").split(",") if name]


class Inputs:
    """What the networks of a policy read, as its metadata say it."""

    def __init__(self, metadata, name="the weights"):
        self.actor = names_of(metadata, "reads") or [OBSERVATION]
        self.critic = names_of(metadata, "critic_reads") or self.actor
        self.observation_size = int(metadata["observation_size"])
        self.streams = [Stream(s["name"], tuple(s["shape"]), s["of"] == "replica")
                        for s in json.loads(metadata.get("streams", "[]"))]
        self.agent_ids = int(metadata.get("agent_ids", 0))
        if not 0 <= self.agent_ids <= MAX_AGENTS or any(n < 1 for stream in self.streams for n in stream.shape):
            ids, streams = (text[:60] + "..." * (len(text) > 60) for text in (str(self.agent_ids), metadata.get("streams", "[]")))
            raise RunError(f"{name}: {ids} ids, and streams {streams}: no policy has these")
        known = [OBSERVATION, *(s.name for s in self.streams), *[AGENT_ID] * (self.agent_ids > 0)]
        unknown = [n for n in dict.fromkeys(self.actor + self.critic) if n not in known]
        if unknown:
            raise RunError(f"{name}: its networks read {', '.join(unknown)}, whose size the file does not say:"
                           " train or evaluate it with this version of the program, or load Run.weights()")
        self.names = known[1:]  # in the order of their columns

    def sizes(self, names=None):
        """{name: numbers of a row}; of agent_id, how many ids there are."""
        sizes = {s.name: s.size for s in self.streams} | ({AGENT_ID: self.agent_ids} if self.agent_ids else {})
        return {name: size for name, size in sizes.items() if names is None or name in names}

    def lacks_value(self, observation, reads):
        """Whether something is missing that only the value reads."""
        given = [*(reads or {}), *[AGENT_ID] * self._are_all_agents(observation.shape[:-1])]
        return any(name in self.critic and name not in given for name in self.names if name not in self.actor)

    def _are_all_agents(self, lead):
        return len(lead) > 0 and lead[-1] == self.agent_ids

    def rows(self, observation, reads=None, names=None):
        """Observations with what else is read behind them. names: what must be there; the rest may be left out."""
        if tuple(observation.shape[-1:]) != (self.observation_size,):
            raise UsageError(f"observation: is {list(observation.shape)}, and must be [..., {self.observation_size}]")
        if not self.names:
            if reads:
                raise RunError(f"reads: this policy reads the observation alone, and not {', '.join(reads)}")
            return observation
        reads, names = dict(reads or {}), self.names if names is None else names
        for name in reads:
            if name not in self.names:
                raise RunError(f"reads: this policy does not read {name!r}; besides the observation, it reads"
                               f" {', '.join(self.names)}")
        lead = observation.shape[:-1]
        parts = [observation]
        for stream in self.streams:
            if stream.name not in reads and stream.name not in names:
                parts.append(observation.new_zeros(*lead, stream.size))
            else:
                parts.append(_rows_of(stream, reads.get(stream.name), lead).to(observation))
        if self.agent_ids:
            if AGENT_ID not in reads and AGENT_ID not in names and not self._are_all_agents(lead):
                ids = observation.new_zeros(lead)
            else:
                ids = _ids(reads.get(AGENT_ID), lead, self.agent_ids).to(observation)
            parts.append(ids.unsqueeze(-1))
        return torch.cat(parts, -1)


def _rows_of(stream, value, lead):
    """[*lead, size]"""
    whole = (*lead, stream.size)
    shared = (*lead[:-1], stream.size) if stream.per_replica and lead else None
    expected = f"{list(whole)}, a row for each observation"
    if shared:
        expected = f"{list(shared)}, a row for each replica, or {expected}"
    if value is None:
        raise RunError(f"reads: {stream.name!r} is missing: give reads={{{stream.name!r}: ...}}, which is {expected}")
    value = torch.as_tensor(value, dtype=torch.float32)
    shape, before = list(value.shape), value.shape[: value.dim() - len(stream.shape)]
    if len(stream.shape) != 1 and (*before, *stream.shape) == tuple(value.shape) and before in (lead, lead[:-1]):
        value = value.reshape(*before, stream.size)
    if value.shape == whole:
        return value
    if shared and value.shape == shared:
        return value.unsqueeze(-2).expand(whole)
    raise RunError(f"reads: {stream.name!r} is {shape}, and must be {expected}")


def _ids(value, lead, count):
    """lead, of whole numbers."""
    if value is None:
        if not lead or lead[-1] != count:
            raise RunError(f"reads: {AGENT_ID!r} is missing, and a row's agent follows from its place only in observations of"
                           f" [..., {count} agents, numbers], and not of {[*lead, 'numbers']}: give"
                           f" reads={{{AGENT_ID!r}: ...}}, 0 to {count - 1} for each row")
        value = torch.arange(count)
    value = torch.as_tensor(value)
    if value.is_floating_point() or value.is_complex() or value.dtype == torch.bool:
        raise RunError(f"reads: {AGENT_ID!r} must be whole numbers from 0 to {count - 1}")
    if value.numel() and (value.min() < 0 or value.max() >= count):
        raise RunError(f"reads: {AGENT_ID!r} has {int(value.min())} to {int(value.max())}, and must be 0 to {count - 1}")
    try:
        return torch.broadcast_to(value, lead)
    except RuntimeError:
        raise RunError(f"reads: {AGENT_ID!r} is {list(value.shape)}, and must be one number, or {list(lead)}") from None


class Part(nn.Module):
    """What one network reads of a row, side by side. reader: what it computes from the observation, if it reads that."""

    begins: List[int]
    ends: List[int]

    def __init__(self, inputs, names, reader):
        super().__init__()
        self.size, self.observes = inputs.observation_size, OBSERVATION in names
        self.reader = reader if self.observes else nn.Identity()
        columns = list(itertools.accumulate((stream.size for stream in inputs.streams), initial=self.size))
        read = [k for k, stream in enumerate(inputs.streams) if stream.name in names]
        self.begins, self.ends = [columns[k] for k in read], [columns[k + 1] for k in read]
        self.id_column, self.reads_id = columns[-1], AGENT_ID in names
        self.register_buffer("ids", torch.arange(inputs.agent_ids, dtype=torch.float32))

    def forward(self, row: Tensor) -> Tensor:
        parts: List[Tensor] = []
        if self.observes:
            parts.append(self.reader(row[..., : self.size]))
        for begin, end in zip(self.begins, self.ends):
            parts.append(row[..., begin:end])
        if self.reads_id:
            parts.append((row[..., self.id_column : self.id_column + 1] == self.ids).to(row.dtype))
        return torch.cat(parts, -1)


def side_by_side(weights, inputs):
    """The weights with one first layer of each network, which has the columns of all that it reads, and the number 0."""
    weights = {re.sub(r"layers\.input\.(?!\d)", "layers.input.0.", key): tensor for key, tensor in weights.items()}
    joined = dict(weights)
    first_layer = r"(critics\.\d+\.|value_)?layers\.(input\.)?0\."
    for prefix in sorted({key[: found.end() - 2] for key in weights if (found := re.match(first_layer, key))}):
        further = [joined.pop(f"{prefix}0.{name}.weight") for name in inputs.names if f"{prefix}0.{name}.weight" in joined]
        if not further:
            continue
        sizes = [inputs.sizes()[name] for name in inputs.names if f"{prefix}0.{name}.weight" in weights]
        if [part.shape[1] for part in further] != sizes:
            raise RunError(f"the weights {prefix}0 have {[part.shape[1] for part in further]} columns, and the metadata say {sizes}")
        columns = torch.cat([torch.as_tensor(part) for part in further], 1)
        first = 0
        for layer in _first_layers(joined, prefix):
            if first == len(columns):
                break
            weight = torch.as_tensor(joined[layer])
            joined[layer] = torch.cat([weight, columns[first : first + len(weight)]], 1).numpy()
            first += len(weight)
        if first != len(columns):
            raise RunError(f"the weights {prefix}0 have {len(columns)} rows, and the layer has {first}")
    return joined


def _first_layers(weights, prefix):
    """The layers that read the input: the first hidden one, or without hidden layers the outputs, one above the other."""
    if f"{prefix}0.weight" in weights:
        return [f"{prefix}0.weight"]
    heads = {"value_layers.": ["value_head."], "layers.": ["layers.head.", "policy_head."]}.get(
        prefix, [prefix.removesuffix("layers.") + "head."])
    if prefix == "layers.":
        heads.append("value_head.")  # unless the value has a network of its own
    return [head + "weight" for head in heads if head + "weight" in weights]
