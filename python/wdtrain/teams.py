"""Values of teams: what a mixer makes of the values of what all agents of a policy do in one replica."""

import torch
from torch import nn

from wdtrain.files import RunError
from wdtrain.reads import Stream, _rows_of


class Mixer(nn.Module):
    """Their sum (VDN), or the mixing network of QMIX, whose weights follow from the state of the game."""

    def __init__(self, weights, description, name="the weights"):
        super().__init__()
        self.agents, self.units = int(description["agents"]), int(description["units"])
        self.streams = [Stream(s["name"], tuple(s["shape"]), True) for s in description.get("reads", [])]
        self.layers = nn.ModuleList()
        if not self.units:
            return
        names = []
        while f"mixer.layers.{len(names)}.weight" in weights:
            names.append(f"mixer.layers.{len(names)}")
        first = [f"{[*names, 'mixer.head'][0]}.{s.name}.weight" for s in self.streams[1:]]
        for prefix in [*names, "mixer.head"]:
            parts = [weights[f"{prefix}.weight"], *(weights[n] for n in first if n.startswith(prefix + "."))]
            weight = torch.cat([torch.as_tensor(part) for part in parts], 1)
            layer = nn.Linear(weight.shape[1], weight.shape[0])
            layer.weight.data, layer.bias.data = weight.float(), torch.as_tensor(weights[f"{prefix}.bias"]).float()
            self.layers.append(layer)
        inputs, outputs = sum(s.size for s in self.streams), self.units * (self.agents + 2) + 1
        if self.layers[0].in_features != inputs or self.layers[-1].out_features != outputs:
            raise RunError(f"{name}: the mixer has {self.layers[0].in_features} inputs and {self.layers[-1].out_features} outputs,"
                           f" and its description says {inputs} and {outputs}")

    def forward(self, values, reads=None, in_game=None):
        """values: [..., agents]. reads: the streams that the mixer reads, [..., numbers], by name. in_game: [..., agents], 0
        for agents that are out of the game. Returns [...]."""
        values = torch.as_tensor(values, dtype=torch.float32)
        if not values.dim() or values.shape[-1] != self.agents:
            raise RunError(f"values: are {list(values.shape)}, and must be [..., {self.agents} agents]")
        plays = torch.ones_like(values, dtype=torch.bool) if in_game is None else torch.as_tensor(in_game) != 0
        values = values * plays
        if self.units:
            reads = reads or {}
            x = torch.cat([_rows_of(s._replace(per_replica=False), reads.get(s.name), values.shape[:-1]) for s in self.streams], -1)
            for k, layer in enumerate(self.layers):
                x = layer(x if k == 0 else torch.relu(x))
            first, bias, second, last = x.split([self.agents * self.units, self.units, self.units, 1], -1)
            hidden = (values.unsqueeze(-1) * first.unflatten(-1, (self.agents, self.units)).abs()).sum(-2) + bias
            mixed = (nn.functional.elu(hidden) * second.abs()).sum(-1) + last.squeeze(-1)
        else:
            mixed = values.sum(-1)
        return torch.where(plays.any(-1), mixed, torch.zeros_like(mixed))
