"""What a policy asks of its network, and off-policy actors (DDPG, TD3, SAC) with the critics of their actions."""

from typing import List, NamedTuple

import torch
from torch import Tensor, nn

# As in kernels/distribution.h; LEAST_VARIANCE is that of gSDE.
MIN_LOG_STD, MAX_LOG_STD, LEAST_VARIANCE = -20.0, 2.0, 1e-6


class Output(NamedTuple):
    output: Tensor  # [..., choices of all heads] logits or values, or [..., components] means
    value: Tensor  # [...]
    state: Tensor  # [..., state_size] for the next step; empty without memory


class Network(nn.Module):
    """One that computes no deviations: they are the policy's, or follow from the last hidden layer, latent()."""

    def __init__(self):
        super().__init__()
        self.least_variance = LEAST_VARIANCE

    def value_of_choices(self, observation: Tensor, logits: Tensor, value: Tensor) -> Tensor:
        """The value, where logits of illegal choices are -inf: here that which was computed."""
        return value

    def deviation(self, observation: Tensor, std: Tensor, state: Tensor) -> Tensor:
        """The standard deviation of each component, in units of half the width of its bounds. std: [components], the same in
        every state, or of gSDE [components, hidden units]."""
        if std.dim() == 1:
            return std
        return (self.latent(observation) ** 2 @ (std**2).t() + self.least_variance).sqrt()


class Critic(nn.Module):
    """The value of an action of components in half-widths, [...]; or of every choice, [..., choices]."""

    def __init__(self, reader, first, action, rest):
        super().__init__()
        self.reader = reader
        self.first = first  # the linear layer of what is read of the observation
        self.action = action  # of the action, without bias; of choices nn.Identity()
        self.rest = rest  # from the first activation on
        self.reads_action = not isinstance(action, nn.Identity)

    def forward(self, observation: Tensor, action: Tensor) -> Tensor:
        hidden = self.first(self.reader(observation))
        if self.reads_action:
            hidden = hidden + self.action(action)
        values = self.rest(hidden)
        return values.mean(-1) if self.reads_action else values


class OffPolicyActor(nn.Module):
    """What a policy of an off-policy algorithm computes: means before tanh and the value of the action tanh(mean), or
    logits and the value of the likeliest choices."""

    heads: List[int]

    def __init__(self, reader, layers, head, critics, components, heads):
        super().__init__()
        self.reader, self.layers, self.head = reader, layers, head
        self.critics = nn.ModuleList(critics)
        self.components = components  # of a continuous action; 0: choices
        self.heads = heads
        self.min_log_std, self.max_log_std = MIN_LOG_STD, MAX_LOG_STD

    def outputs(self, observation: Tensor, state: Tensor) -> Tensor:
        return self.head(self.layers(self.reader(observation)))

    def values(self, observation: Tensor, action: Tensor) -> Tensor:
        """The lowest value that a critic computes."""
        return torch.stack([critic(observation, action) for critic in self.critics], 0).amin(0)

    def value_of_choices(self, observation: Tensor, logits: Tensor, value: Tensor) -> Tensor:
        """The value of the likeliest choices, added over heads; logits of illegal ones are -inf."""
        values = self.values(observation, logits)
        total = torch.zeros_like(values[..., 0])
        for head, of_head in zip(logits.split(self.heads, -1), values.split(self.heads, -1)):
            total = total + of_head.gather(-1, head.argmax(-1, keepdim=True)).squeeze(-1)
        return total

    def forward(self, observation: Tensor, state: Tensor) -> Output:
        output = self.outputs(observation, state)
        if self.components == 0:
            return Output(output, self.value_of_choices(observation, output, output), state)
        mean = output[..., : self.components]
        return Output(mean, self.values(observation, mean.tanh()), state)

    def deviation(self, observation: Tensor, std: Tensor, state: Tensor) -> Tensor:
        """The standard deviation of each component before tanh; 0 of an actor that computes only the action."""
        output = self.outputs(observation, state)
        if output.shape[-1] == self.components:
            return torch.zeros_like(output)
        return output[..., self.components :].clamp(self.min_log_std, self.max_log_std).exp()


class RecurrentActor(OffPolicyActor):
    """With memory. The value is NaN: critics remember too, and nobody keeps their states while a policy acts."""

    def __init__(self, memory, components, heads):
        super().__init__(None, None, memory, [], components, heads)
        self.numbers, self.state_size = components or sum(heads), memory.cell.state_size

    def outputs(self, observation: Tensor, state: Tensor) -> Tensor:
        return self.head(observation, state)[0]

    def value_of_choices(self, observation: Tensor, logits: Tensor, value: Tensor) -> Tensor:
        return value

    def forward(self, observation: Tensor, state: Tensor) -> Output:
        output, after = self.head(observation, state)
        return Output(output[..., : self.numbers], torch.full_like(output[..., 0], torch.nan), after)
