"""A trained policy as a torch module that can be called, scripted and exported."""

import functools
import itertools
import json
from typing import Any, List, Optional

import numpy
import torch
from torch import Tensor, nn

from wdtrain.actor_critic import Critic, Network, OffPolicyActor, Output, RecurrentActor
from wdtrain.choices import PerChoice
from wdtrain.entities import Entities
from wdtrain.files import RunError, UsageError, parsing, require_finite
from wdtrain.reads import OBSERVATION, Inputs, Part, names_of, side_by_side
from wdtrain.teams import Mixer

ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh}


class Perceptron(Network):
    """Hidden layers, heads, and hidden layers of the value if it has some of its own.

    reader: a function of a prefix that gives what the network with this prefix reads of an observation.
    """

    def __init__(self, weights, activation, reader, values, separate_value):
        super().__init__()
        self.reader = reader("layers.")
        self.values = values
        self.layers = _layers(weights, "layers.", activation)
        self.value_layers = _layers(weights, "value_layers.", activation)
        self.separate_value = separate_value
        self.value_reader = reader("value_layers.") if self.separate_value else self.reader
        # Values that are computed in parts or one by one: the rows of the output layer are not the outputs.
        self.policy_head = _linear(weights, "policy_head." if "policy_head.weight" in weights else "layers.head.")
        self.has_value = "value_head.weight" in weights  # not if the outputs are values of choices
        self.value_head = _linear(weights, "value_head.") if self.has_value else self.policy_head

    def latent(self, observation: Tensor) -> Tensor:
        """[..., L]: the last hidden layer of the actor."""
        return self.layers(self.reader(observation))

    def forward(self, observation: Tensor, state: Tensor) -> Output:
        hidden = self.latent(observation)
        if not self.has_value:
            values = self.values(self.policy_head(hidden))
            return Output(values, values[..., 0], state)
        seen = self.value_layers(self.value_reader(observation)) if self.separate_value else hidden
        return Output(self.policy_head(hidden), self.value_head(seen).squeeze(-1), state)


class Values(nn.Module):
    """The values of choices from the outputs of a network with model.dueling or model.quantiles (kernels/values.h)."""

    def __init__(self, heads, dueling, quantiles):
        super().__init__()
        self.heads: List[int] = heads
        self.dueling, self.quantiles = dueling, quantiles
        self.numbers = sum(heads) + dueling  # of each quantile

    def forward(self, output: Tensor) -> Tensor:
        means = output.reshape(list(output.shape[:-1]) + [self.numbers, self.quantiles]).mean(-1)
        if not self.dueling:
            return means
        state = means[..., :1] / len(self.heads)
        advantages = means[..., 1:].split(self.heads, -1)
        return torch.cat([advantage - advantage.mean(-1, keepdim=True) + state for advantage in advantages], -1)


class Standardized(nn.Module):
    """What a reader gives, its first columns in units of mean and deviation (model.normalize_input)."""

    def __init__(self, reader, norm):
        super().__init__()
        self.reader = reader
        self.columns = len(norm)
        mean, deviation = torch.as_tensor(norm).unbind(1)
        self.register_buffer("mean", mean.clone())
        self.register_buffer("deviation", deviation.clone())

    def forward(self, observation: Tensor) -> Tensor:
        read = self.reader(observation)
        scaled = ((read[..., : self.columns] - self.mean) / self.deviation).clamp(-10.0, 10.0)
        return torch.cat([scaled, read[..., self.columns :]], -1)


class Recurrent(Network):
    """model: {type: mingru, gru or lstm}. With separate_value, the state is that of both networks, side by side."""

    def __init__(self, weights, activation, reader, values, has_value):
        super().__init__()
        self.has_value, self.values = has_value, values
        self.actor = _Memory(weights, "layers.", activation, reader)
        self.separate_value = _has_value_network(weights)
        self.critic = _Memory(weights, "value_layers.", activation, reader) if self.separate_value else self.actor
        self.state_size = self.actor.cell.state_size

    def latent(self, observation: Tensor) -> Tensor:
        return observation[..., :0]  # it hangs on the state

    def forward(self, observation: Tensor, state: Tensor) -> Output:
        output, after = self.actor(observation, state[..., : self.state_size])
        if not self.has_value:
            output = self.values(output)
            return Output(output, output[..., 0], after)
        if not self.separate_value:
            return Output(output[..., :-1], output[..., -1], after)
        value, critic_after = self.critic(observation, state[..., self.state_size :])
        return Output(output, value.squeeze(-1), torch.cat([after, critic_after], -1))


class _Memory(nn.Module):
    def __init__(self, weights, prefix, activation, reader):
        super().__init__()
        self.reader = reader(prefix)
        self.layers = _layers(weights, prefix + "input.", activation)
        self.head = _linear(weights, prefix + "head.")
        self.width = self.head.in_features
        rows, inputs = weights[prefix + "cell.weight_ih"].shape
        self.cell = _CELLS[rows // self.width](inputs, self.width)
        of_cell = {name: torch.as_tensor(weights[f"{prefix}cell.{name.split('.')[-1]}"]) for name in self.cell.state_dict()}
        self.cell.load_state_dict(of_cell)

    def forward(self, observation: Tensor, state: Tensor):
        rows = self.layers(self.reader(observation))
        after = self.cell(rows.reshape(-1, rows.shape[-1]), state.reshape(-1, state.shape[-1])).reshape(state.shape)
        return self.head(after[..., : self.width]), after


class _Gru(nn.GRUCell):
    def __init__(self, inputs, width):
        super().__init__(inputs, width)
        self.state_size = width


class _MinGru(nn.Module):
    """Feng et al. 2024, arXiv 2410.01201."""

    def __init__(self, inputs, width):
        super().__init__()
        self.weight_ih, self.bias_ih = nn.Parameter(torch.zeros(2 * width, inputs)), nn.Parameter(torch.zeros(2 * width))
        self.state_size = width

    def forward(self, rows: Tensor, state: Tensor) -> Tensor:
        gate, candidate = nn.functional.linear(rows, self.weight_ih, self.bias_ih).chunk(2, -1)
        return state + gate.sigmoid() * (candidate - state)


class _Lstm(nn.Module):
    """The state is h, then c."""

    def __init__(self, inputs, width):
        super().__init__()
        self.cell = nn.LSTMCell(inputs, width)
        self.state_size = 2 * width

    def forward(self, rows: Tensor, state: Tensor) -> Tensor:
        h, c = state.chunk(2, -1)
        return torch.cat(self.cell(rows, (h, c)), -1)


_CELLS = {2: _MinGru, 3: _Gru, 4: _Lstm}  # by their gates


class Policy(nn.Module):
    """forward(observation, state) gives logits or means, value and state; act() gives actions.

    observation: [..., observation_size]; any number of leading dimensions.
    reads: what networks read besides the observation (model.reads, model.critic_reads), by name. Of a stream, a row for
    each observation, or of a stream of replicas a row for each replica, whose agents are the last leading dimension of the
    observation. "agent_id": 0, 1, ... for each row, in the order of the policy's agents; it may be left out if the last
    leading dimension of the observation is all agents of the policy. What only the value reads is not needed for actions.
    mixer: of VDN, QMIX and their PQN forms, mixer(values [..., agents], reads) is the value of the team; else None.
    """

    def __init__(self, network, metadata, log_std=None, mixer=None):
        super().__init__()
        self.network, self.mixer = network, mixer
        self.metadata, self.spaces = metadata, None
        self.inputs = Inputs(metadata)
        self.observation_size = int(metadata["observation_size"])
        self.distribution = metadata["distribution"]
        self.heads = _heads(metadata)
        self.state_size = int(metadata["state_size"])
        self.squashes = self.distribution in ("squashed_gaussian", "point", "state_gaussian")
        if not self.heads:
            if not isinstance(network, OffPolicyActor):
                self.register_buffer("log_std", torch.as_tensor(log_std))
            for end in ("low", "high"):
                bounds = [float(b) for b in metadata[f"action_{end}"].split(",")]
                self.register_buffer(end, torch.tensor(bounds, dtype=torch.float32))

    @staticmethod
    def from_weights(weights, metadata, name="the weights"):
        require_finite(name, weights)
        with parsing(name):
            mixer = Mixer(weights, json.loads(metadata["mixer"]), name) if "mixer" in metadata else None
            weights = _in_plain_values(side_by_side(weights, Inputs(metadata, name)))
            return Policy(_network(weights, metadata, name), metadata, weights.get("log_std"), mixer).eval()

    def first_state(self, *batch):
        """The state at the first step of an episode."""
        return torch.zeros(*batch, self.state_size)

    @property
    def reads(self):
        """{name: numbers} of what is read besides the observation; of agent_id, how many ids there are."""
        return self.inputs.sizes()

    def forward(self, observation: Tensor, state: Optional[Tensor] = None, mask=None, reads=None) -> Output:
        """mask: 0 where a choice is illegal, for the value of a policy that follows from the values of choices."""
        return self._forward(self.inputs.rows(observation, reads), state, mask)

    def outputs(self, observation: Tensor, state: Optional[Tensor] = None, reads=None) -> Tensor:
        """The logits or means alone, without what only the value reads."""
        return self._forward(self.inputs.rows(observation, reads, self.inputs.actor), state).output

    def _forward(self, observation, state=None, mask=None):
        """observation: with what else is read behind it."""
        if state is None:
            state = torch.zeros(observation.shape[:-1] + (self.state_size,))
        found = self.network(observation, state)
        legal = found.output if mask is None else found.output.masked_fill(torch.as_tensor(mask) == 0, -torch.inf)
        if self.distribution != "greedy":
            value = found.value if mask is None else self.network.value_of_choices(observation, legal, found.value)
            return Output(found.output, value, found.state)
        best = torch.stack([head.amax(-1) for head in legal.split(self.heads, -1)])  # of the best action, head by head
        return Output(found.output, best.masked_fill(best == -torch.inf, 0).sum(0), found.state)

    def probabilities(self, logits, mask=None):
        """A list of [..., choices] for each head. mask: 0 where a choice is illegal, as wide as the logits."""
        if mask is not None:
            logits = logits.masked_fill(torch.as_tensor(mask) == 0, -torch.inf)
        heads = logits.split(self.heads, -1)
        if self.distribution == "greedy":
            return [nn.functional.one_hot(head.argmax(-1), head.shape[-1]).to(head.dtype) for head in heads]
        return [head.softmax(-1) for head in heads]

    def deviation(self, observation, reads=None, state=None):
        """Of continuous actions: the standard deviation of each component, in units of half the width of its bounds."""
        state = self.first_state(*observation.shape[:-1]) if state is None else state
        return self.network.deviation(self.inputs.rows(observation, reads, self.inputs.actor), self.std, state)

    @property
    def std(self):
        """What the deviations follow from, if the network does not compute them: Network.deviation()."""
        return self.log_std.exp().detach() if "log_std" in self._buffers else torch.zeros(1)

    @torch.no_grad()
    def step(self, observation, state=None, mask=None, greedy=True, reads=None):
        """The actions as the environment takes them, and the state for the next step.

        Discrete: [..., heads] int64. Continuous: [..., components], within the bounds. Without what only the value reads,
        a recurrent network of the value keeps its part of the state. Raises RunError if the policy was trained with masks
        of legal choices and gets none.
        """
        self._require_mask(mask)
        observation = torch.as_tensor(observation, dtype=torch.float32)
        before = self.first_state(*observation.shape[:-1]) if state is None else state
        lacks_value = self.inputs.lacks_value(observation, reads)
        observation = self.inputs.rows(observation, reads, self.inputs.actor)
        output, _, state = self._forward(observation, before)
        if self.state_size and lacks_value:
            width = self.network.state_size
            state = torch.cat([state[..., :width], before[..., width:]], -1)
        if self.heads:
            chosen = [_choose(p, greedy) for p in self.probabilities(output, mask)]
            return torch.stack(chosen, -1), state
        sample = output
        if not greedy:
            sample = output + self.network.deviation(observation, self.std, before) * torch.randn_like(output)
        if self.squashes:
            sample = sample.tanh()
        return self._within_bounds(sample), state

    def _require_mask(self, mask):
        if mask is None and self.metadata.get("action_mask") == "true":
            raise RunError(f"this policy was trained with masks of legal choices: pass mask [..., {sum(self.heads)}], all 1 if "
                           "every choice is legal")

    def act(self, observation: Any, mask: Any = None, greedy: bool = True, reads: Any = None) -> Any:
        """The actions of a policy without memory: a tensor for a batch or a tensor; for one observation what env.step() takes: a number
        if the action is one choice, else a numpy array. Run.policy(env=env) lets it take Dict, Tuple and other observations as env gives them."""
        if self.state_size:
            raise RunError("this policy remembers: use step(), and pass the state on")
        given = observation
        if self.spaces and (isinstance(given, dict | tuple) or numpy.shape(given)[-1:] != (self.observation_size,)):
            observation, own_mask = self.spaces.row(given)
            mask = own_mask if mask is None else mask
        elif isinstance(given, dict):
            raise UsageError("the observation is a dict, whose order the environment knows: make the policy by run.policy(env=env)")
        action = self.step(observation, None, mask, greedy, reads)[0]
        if action.dim() > 1 or isinstance(given, Tensor):
            return action
        numbers = action.cpu().numpy()
        if self.spaces:
            return self.spaces.action(numbers)
        return int(numbers[0]) if len(self.heads) == 1 else numbers

    def predict(self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False) -> Any:
        """act() as Stable-Baselines3 calls it: (numpy array, None)."""
        action = numpy.asarray(self.act(observation, greedy=deterministic))
        return (action[..., 0] if action.ndim > 1 and len(self.heads) == 1 else action), None

    def _within_bounds(self, half_widths):
        """Units of half the width from the middle, clamped; without two bounds, the number itself."""
        half = 0.5 * self.high - 0.5 * self.low
        middle = 0.5 * self.low + 0.5 * self.high
        inside = (middle + half_widths * half).clamp(self.low, self.high)
        return torch.where(half.isfinite(), inside, half_widths)


def _in_plain_values(weights):
    """The weights of a network that computes values in units of their mean and deviation (normalize_value), with these
    in the last row of the output layer."""
    if "value_norm" not in weights:
        return weights
    mean, deviation = (float(number) for number in weights["value_norm"])
    head = next(name for name in ("value_head", "value_layers.head", "layers.head") if name + ".weight" in weights)
    weight, bias = (numpy.array(weights[f"{head}.{part}"]) for part in ("weight", "bias"))
    weight[-1] *= deviation
    bias[-1] = bias[-1] * deviation + mean
    return {**weights, head + ".weight": weight, head + ".bias": bias}


def _network(weights, metadata, name):
    model, reader = metadata["model"], functools.partial(_reader, weights, metadata, Inputs(metadata, name))
    if model not in ("fully_connected", "mingru", "gru", "lstm"):
        raise RunError(f"{name}: its network {model!r} is a module of your own: build it in Python, and load Run.weights()")
    activation = metadata.get("activation", "tanh") if model == "gru" else metadata["activation"]
    if activation not in ACTIVATIONS:
        raise RunError(f"{name}: activation {activation!r} is not known to this package")
    has_critics = any(part.startswith("critics.") for part in weights)
    if model != "fully_connected" and has_critics:
        memory = _Memory(weights, "layers.", ACTIVATIONS[activation], reader)
        return RecurrentActor(memory, int(metadata.get("action_components", 0)), _heads(metadata))
    if model != "fully_connected":
        return Recurrent(weights, ACTIVATIONS[activation], reader, _values(metadata), metadata["distribution"] != "greedy")
    if has_critics:
        return _off_policy_actor(weights, metadata, ACTIVATIONS[activation], reader)
    separate_value = _has_value_network(weights) or "critic_reads" in metadata
    return Perceptron(weights, ACTIVATIONS[activation], reader, _values(metadata), separate_value)


def _off_policy_actor(weights, metadata, activation, reader):
    components = int(metadata.get("action_components", 0))
    critics = []
    while f"critics.{len(critics)}.head.weight" in weights:
        prefix = f"critics.{len(critics)}."
        hidden = [*_layers(weights, prefix + "layers.", activation), _linear(weights, prefix + "head.")]
        action = nn.Identity()
        if components:
            part = prefix + "layers.0.action.weight"
            action = nn.Linear(components, len(weights[part]), bias=False)
            action.weight.data = torch.as_tensor(weights[part])
        critics.append(Critic(reader(prefix + "layers."), hidden[0], action, nn.Sequential(*hidden[1:])))
    return OffPolicyActor(reader("layers."), _layers(weights, "layers.", activation), _linear(weights, "policy_head."),
                          critics, components, _heads(metadata))


def _heads(metadata):
    """The number of choices of each head; empty if actions are continuous."""
    return [int(n) for n in names_of(metadata, "action_heads")]


def _values(metadata):
    """From the outputs of the network to the values of choices."""
    if "choices" in metadata:
        return nn.Flatten(-2)  # [..., choices, 1] becomes [..., choices]
    if "quantiles" not in metadata:
        return nn.Identity()
    return Values(_heads(metadata), metadata["dueling"] == "true", int(metadata["quantiles"]))


def _has_value_network(weights):
    return any(name.startswith("value_layers.") for name in weights)


def _plain_reader(weights, metadata, prefix):
    """What the network with this prefix reads of an observation."""
    if "choices" in metadata:
        return PerChoice(json.loads(metadata["choices"]), int(metadata["observation_size"]), sum(_heads(metadata)))
    if "entities" not in metadata:
        return nn.Identity()
    settings, encoder = json.loads(metadata["entities"]), None
    if f"{prefix}entities.head.weight" in weights:
        hidden = _layers(weights, prefix + "entities.", ACTIVATIONS[settings["activation"]])
        encoder = nn.Sequential(hidden, _linear(weights, prefix + "entities.head."))
    return Entities(settings, int(metadata["observation_size"]), encoder)


def _reader(weights, metadata, inputs, prefix):
    """What the network with this prefix reads of a row: the observation, and behind it what else is read."""
    names = inputs.actor if prefix == "layers." else inputs.critic
    reader = _plain_reader(weights, metadata, prefix) if OBSERVATION in names else nn.Identity()
    if "observation_norm" in weights and OBSERVATION in names:
        reader = Standardized(reader, weights["observation_norm"])
    return Part(inputs, names, reader) if inputs.names else reader


def _choose(probabilities, greedy):
    if greedy:
        return probabilities.argmax(-1)
    flat = probabilities.reshape(-1, probabilities.shape[-1])
    return torch.multinomial(flat, 1).reshape(probabilities.shape[:-1])


def _loaded(module, weights, prefix):
    """The module with the weights that have this prefix."""
    module.load_state_dict({name: torch.as_tensor(weights[prefix + name]) for name in module.state_dict()})
    return module


def _linear(weights, prefix):
    outputs, inputs = weights[prefix + "weight"].shape
    return _loaded(nn.Linear(inputs, outputs), weights, prefix)


def _layers(weights, prefix, activation):
    parts = []
    for k in itertools.count():
        layer = f"{prefix}{k}."
        if layer + "weight" not in weights:
            return nn.Sequential(*parts)
        parts.append(_linear(weights, layer))
        if layer + "norm.weight" in weights:
            norm = nn.LayerNorm(parts[-1].out_features, eps=1e-5)
            parts.append(_loaded(norm, weights, layer + "norm."))
        parts.append(activation())
