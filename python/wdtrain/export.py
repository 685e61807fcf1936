"""Exports a policy as TorchScript, ONNX or safetensors, with the choice of actions inside."""

import argparse
import copy
import io
import os
import pathlib
import warnings
from typing import List, Tuple

import torch
from torch import Tensor, nn

from wdtrain import files
from wdtrain.files import RunError
from wdtrain.policy import Policy, spread
from wdtrain.run import Run, need

FORMATS = {"torchscript": ".pt", "onnx": ".onnx", "safetensors": ".safetensors"}
OPSET = 17


class AsComputed(nn.Module):
    """The value that the network has computed."""

    def forward(self, observation: Tensor, logits: Tensor, value: Tensor) -> Tensor:
        return value


class LikeliestChoices(nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, observation: Tensor, logits: Tensor, value: Tensor) -> Tensor:
        return self.network.value_of_choices(observation, logits)


class Exported(nn.Module):
    """forward(observation[, mask][, state]) returns (action, logits or means, value[, state after]).

    observation: [n, observation_size] float32. mask: [n, choices] float32, 0 where a choice is illegal; only if the
    environment masks actions. state: [n, state_size] float32, zeros at the first step of an episode; only if the
    policy remembers. action: [n, heads] int64, or [n, components] float32 within the bounds.
    """

    heads: List[int]

    def __init__(self, policy: Policy, greedy: bool):
        super().__init__()
        # Frozen, so that outputs become NumPy arrays without detach().
        self.network = copy.deepcopy(policy.network).requires_grad_(False)
        self.values = policy.distribution == "greedy"  # outputs are values of choices
        self.greedy = greedy or self.values
        self.heads = policy.heads
        self.squashed = policy.squashes
        self.spread = spread(policy, self.network)
        self.judge = LikeliestChoices(self.network) if policy.off_policy and policy.heads else AsComputed()
        if policy.heads:
            self.register_buffer("middle", torch.zeros(1))
            self.register_buffer("half_width", torch.ones(1))
            self.register_buffer("low", torch.zeros(1))
            self.register_buffer("high", torch.zeros(1))
        else:
            bounded = (policy.high - policy.low).isfinite()
            self.register_buffer("middle", torch.where(bounded, 0.5 * policy.low + 0.5 * policy.high, torch.zeros(1)))
            self.register_buffer("half_width", torch.where(bounded, 0.5 * policy.high - 0.5 * policy.low, torch.ones(1)))
            self.register_buffer("low", torch.where(bounded, policy.low, torch.full((1,), -torch.inf)))
            self.register_buffer("high", torch.where(bounded, policy.high, torch.full((1,), torch.inf)))

    def choose(self, logits: Tensor) -> Tensor:
        # The largest sum of a logit and a Gumbel number is a draw from the softmax.
        if not self.greedy:
            logits = logits - torch.log(-torch.log(torch.rand_like(logits).clamp(1e-20, 1.0 - 1e-7)))
        chosen: List[Tensor] = []
        first = 0
        for n in self.heads:
            chosen.append(logits[:, first : first + n].argmax(-1))
            first += n
        return torch.stack(chosen, -1)

    def best(self, values: Tensor) -> Tensor:
        """The value of the best action: the sum over heads, of which one without a legal choice is worth 0."""
        total = torch.zeros_like(values[:, 0])
        first = 0
        for n in self.heads:
            highest = values[:, first : first + n].amax(-1)
            total = total + torch.where(highest == -torch.inf, torch.zeros_like(highest), highest)
            first += n
        return total

    def within_bounds(self, mean: Tensor, observation: Tensor) -> Tensor:
        sample = mean
        if not self.greedy:
            sample = mean + self.spread(observation) * torch.randn_like(mean)
        if self.squashed:
            sample = torch.tanh(sample)
        return torch.minimum(torch.maximum(self.middle + sample * self.half_width, self.low), self.high)

    def act(self, observation: Tensor, mask: Tensor, state: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
        out = self.network(observation, state)
        if len(self.heads) == 0:
            return self.within_bounds(out.output, observation), out.output, out.value, out.state
        legal = torch.where(mask == 0, torch.full_like(out.output, -torch.inf), out.output) if mask.numel() > 0 else out.output
        value = self.best(legal) if self.values else self.judge(observation, legal, out.value)
        return self.choose(legal), legal, value, out.state


# One class for each signature, because neither format has optional inputs.
class Plain(Exported):
    def forward(self, observation: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        none = torch.zeros(0)
        action, output, value, _ = self.act(observation, none, none)
        return action, output, value


class Masked(Exported):
    def forward(self, observation: Tensor, mask: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        action, output, value, _ = self.act(observation, mask, torch.zeros(0))
        return action, output, value


class Remembering(Exported):
    def forward(self, observation: Tensor, state: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.act(observation, torch.zeros(0), state)


class MaskedRemembering(Exported):
    def forward(self, observation: Tensor, mask: Tensor, state: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.act(observation, mask, state)


def exported(policy, greedy=True):
    """The module that is exported, and the names of its inputs and outputs."""
    masked, remembers = policy.metadata["action_mask"] == "true", policy.state_size > 0
    kind = {(False, False): Plain, (True, False): Masked, (False, True): Remembering, (True, True): MaskedRemembering}
    inputs = ["observation"] + ["mask"] * masked + ["state"] * remembers
    outputs = ["action", "logits" if policy.heads else "mean", "value"] + ["state_after"] * remembers
    # A copy, because the policy may still be trained: what an exported module returns has no gradients.
    module = copy.deepcopy(kind[masked, remembers](policy, greedy)).eval().requires_grad_(False)
    return module, inputs, outputs


def example_inputs(policy, names, rows=2):
    sizes = {"observation": policy.observation_size, "mask": sum(policy.heads), "state": policy.state_size}
    return tuple(torch.ones(rows, sizes[name]) for name in names)


def _content(policy, format, greedy):
    """The bytes of the file, and the names of inputs and outputs."""
    module, inputs, outputs = exported(policy, greedy)
    content = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if format == "torchscript":
            torch.jit.save(torch.jit.script(module), content)
        else:
            need("onnx")
            batch = {name: {0: "n"} for name in inputs + outputs}
            torch.onnx.export(module, example_inputs(policy, inputs), content, input_names=inputs, output_names=outputs,
                              dynamic_axes=batch, opset_version=OPSET, dynamo=False)
    return content.getvalue(), inputs, outputs


def export(policy, path, format, greedy=True):
    """Writes the policy to a file, which is replaced if it exists. Returns the names of inputs and outputs."""
    content, inputs, outputs = _content(policy, format, greedy)
    files.write(content, path, replace=True)
    return inputs, outputs


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="wdtrain-export", description=__doc__)
    parser.add_argument("--run", required=True, metavar="FOLDER", help="folder of a run, or of one of its checkpoints")
    parser.add_argument("--format", choices=FORMATS, required=True)
    parser.add_argument("--policy", help="name of the policy, if there are several")
    parser.add_argument("--out", type=pathlib.Path, help="file to write (RUN/export/POLICY.pt, .onnx or .safetensors)")
    parser.add_argument("--sample", action="store_true", help="draw actions instead of taking the most likely ones")
    parser.add_argument("--force", action="store_true", help="overwrite the file if it exists")
    options = parser.parse_args(arguments)
    files.command(_run, options)


def _run(options):
    run = Run(options.run)
    name = run.policy_name(options.policy)
    path = (options.out,) if options.out else (run.folder, "export", name + FORMATS[options.format])
    out = os.path.join(*path)
    if os.path.lexists(out) and not options.force:
        raise RunError(f"{out} exists: name another file with --out, or give --force")
    if options.format == "safetensors":
        if options.sample:
            raise RunError("--sample: a safetensors file has weights only")
        source, content = run.weights_file(name)
        files.require_finite(source, run.weights(name))
        said = f"weights and metadata of policy {name}"
    else:
        policy = run.policy(name)
        with files.parsing(out):
            content, inputs, outputs = _content(policy, options.format, not options.sample)
        said = f"({', '.join(inputs)}) -> ({', '.join(outputs)}), {len(content) / 1024:.0f} KiB"
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
    files.write(content, *path, replace=options.force)
    print(f"{out}: {said}")


if __name__ == "__main__":
    main()
