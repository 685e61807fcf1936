"""memory.py: the networks with memory in torch, from the equations of their authors: layers, a cell, and layers behind it."""

import torch


class MinGru(torch.nn.Module):
    """Feng et al. 2024, arXiv 2410.01201, section 3.1: the gate and the candidate depend on the input alone."""

    def __init__(self, inputs, size, dtype):
        super().__init__()
        self.weight_ih = torch.nn.Parameter(torch.empty(2 * size, inputs, dtype=dtype))
        self.bias_ih = torch.nn.Parameter(torch.empty(2 * size, dtype=dtype))

    def forward(self, x, state):
        gate, candidate = torch.nn.functional.linear(x, self.weight_ih, self.bias_ih).chunk(2, -1)
        gate = torch.sigmoid(gate)
        return (1 - gate) * state + gate * candidate


class Lstm(torch.nn.LSTMCell):
    """Its state is h, then c."""

    def forward(self, x, state):
        return torch.cat(super().forward(x, state.chunk(2, -1)), -1)


CELLS = {2: MinGru, 3: torch.nn.GRUCell, 4: Lstm}  # by their gates


def normalized(x, weights, prefix):
    """Layer normalization, if the layer has one."""
    if f"{prefix}.norm.weight" not in weights:
        return x
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weights[f"{prefix}.norm.weight"], weights[f"{prefix}.norm.bias"], 1e-5)


class Memory:
    """The network whose weights have this prefix. Parts of its input are [..., numbers], by name, and states [..., size]."""

    def __init__(self, weights, prefix, activation=torch.tanh):
        self.weights, self.prefix, self.activation = weights, prefix, activation
        self.cell = {name.removeprefix(f"{prefix}cell."): tensor for name, tensor in weights.items() if name.startswith(f"{prefix}cell.")}
        gates = len(self.cell["weight_hh"]) // self.cell["weight_hh"].shape[1] if "weight_hh" in self.cell else 2
        self.width = len(self.cell["weight_ih"]) // gates
        self.module = CELLS[gates](self.cell["weight_ih"].shape[1], self.width, dtype=torch.double)

    def layer(self, name, parts):
        (_, x), *others = parts.items()
        sums = x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]
        for part, rows in others:
            sums = sums + rows @ self.weights[f"{name}.{part}.weight"].T
        return sums

    def step(self, parts, state):
        """The state after a step."""
        layers = [f"{self.prefix}input", *(f"{self.prefix}input.{k}" for k in range(9))]
        for name in [name for name in layers if f"{name}.weight" in self.weights]:
            x = self.activation(normalized(self.layer(name, parts), self.weights, name))
            parts = {"x": x}
        rows = (x.reshape(-1, x.shape[-1]), state.reshape(-1, state.shape[-1]))
        return torch.func.functional_call(self.module, self.cell, rows).view(state.shape)

    def output(self, state, **late):
        """late: what is read behind the memory, by name."""
        h = state[..., : self.width]
        if f"{self.prefix}head.0.weight" in self.weights:
            h = self.activation(self.layer(f"{self.prefix}head.0", {"memory": h, **late}))
        return h @ self.weights[f"{self.prefix}head.weight"].T + self.weights[f"{self.prefix}head.bias"]
