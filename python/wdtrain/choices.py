"""What networks with model: {input: choices} read instead of an observation (kernels/per_choice.h)."""

import torch
from torch import Tensor, nn

from wdtrain.files import RunError


class PerChoice(nn.Module):
    """forward(observation [..., size]) gives [..., choices, state + features]: for each choice, the entries that describe no
    choice, then its own. settings: the metadata's "choices"."""

    def __init__(self, settings, size, choices):
        super().__init__()
        self.size, self.choices, self.features = size, choices, settings["size"]
        numbers = choices * self.features
        self.fixed = "fixed" in settings
        first = size if self.fixed else settings["first"]
        described = settings.get("fixed", [0.0] * numbers)
        if self.features < 1 or len(described) != numbers or not (self.fixed or 0 <= first <= size - numbers):
            raise RunError(f"{choices} choices with {self.features} numbers each do not fit an observation of {size}: {settings}")
        behind = first + (0 if self.fixed else numbers)
        self.register_buffer("state", torch.tensor([*range(first), *range(behind, size)], dtype=torch.long))
        self.register_buffer("described", torch.arange(first, behind))
        self.register_buffer("numbers", torch.tensor(described, dtype=torch.float32).reshape(1, choices, self.features))
        self.width = len(self.state) + self.features

    def forward(self, observation: Tensor) -> Tensor:
        rows = observation.reshape(-1, self.size)
        state = rows.index_select(1, self.state).unsqueeze(1).expand(-1, self.choices, -1)
        if self.fixed:
            features = self.numbers.expand(state.shape[0], -1, -1)
        else:
            features = rows.index_select(1, self.described).reshape(-1, self.choices, self.features)
        found = torch.cat([state, features], 2)
        return found.reshape(list(observation.shape[:-1]) + [self.choices, self.width])
