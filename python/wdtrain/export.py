"""Exports a policy as TorchScript, ONNX or safetensors, with the choice of actions inside."""

import argparse
import copy
import io
import keyword
import os
import pathlib
import re
import warnings
from typing import List, Tuple

import torch
from torch import Tensor, nn

from wdtrain import files
from wdtrain.files import RunError
from wdtrain.policy import Policy
from wdtrain.reads import AGENT_ID
from wdtrain.run import Run, need

FORMATS = {"torchscript": ".pt", "onnx": ".onnx", "safetensors": ".safetensors"}
OPSET = 17
_LOCALS = ("self", "torch", "none", "action", "output", "value", "after")  # of what scripted() writes


def _input_name(name, taken):
    """The name of a stream, or with "stream_" in front if that has another meaning."""
    safe = re.sub(r"\W", "_", name)
    while safe in (*taken, *_LOCALS) or keyword.iskeyword(safe) or not safe.isidentifier():
        safe = "stream_" + safe
    return safe


class Exported(nn.Module):
    """forward(observation[, mask][, state][, what else is read ...]) returns
    (action, logits or means[, value][, state after]).

    observation: [n, observation_size] float32. mask: [n, choices] float32, 0 where a choice is illegal; only if the
    environment masks actions. state: [n, state_size] float32, zeros at the first step of an episode; only if the
    policy remembers. Streams: [n, numbers] float32 each. agent_id: [n] int64. action: [n, heads] int64, or [n, components] float32 within the bounds.
    """

    heads: List[int]
    sizes: List[int]  # of what is read behind the observation, in the order of columns
    is_given: List[bool]  # or nobody reads it here, and it is 0

    def __init__(self, policy: Policy, greedy: bool, value: bool):
        super().__init__()
        self.masked, self.remembers = policy.metadata["action_mask"] == "true", policy.state_size > 0
        self.gives_value = value
        inputs = policy.inputs
        self.sizes = [*(stream.size for stream in inputs.streams), *[1] * (inputs.agent_ids > 0)]
        needed = inputs.names if value else inputs.actor
        taken = ["observation", *["mask"] * self.masked, *["state"] * self.remembers]
        self.named = {}  # {name: name of the input}
        for name in inputs.names:
            if name in needed:
                self.named[name] = _input_name(name, [*taken, *self.named.values()])
        self.names = [*taken, *self.named.values()]
        self.is_given = [name in needed for name in inputs.names]
        # The width of the actor's part of the state, if the value has one and is left out.
        self.actor_width = policy.network.state_size if self.remembers and not value else 0
        # Frozen, so that outputs become NumPy arrays without detach().
        self.network = copy.deepcopy(policy.network).requires_grad_(False)
        self.values = policy.distribution == "greedy"  # outputs are values of choices
        self.greedy = greedy or self.values
        self.heads = policy.heads
        self.squashed = policy.squashes
        low, high = (torch.zeros(1), torch.zeros(1)) if policy.heads else (policy.low, policy.high)
        bounded = (high - low).isfinite()
        self.register_buffer("std", policy.std)
        self.register_buffer("middle", torch.where(bounded, 0.5 * low + 0.5 * high, 0.0))
        self.register_buffer("half_width", torch.where(bounded, 0.5 * high - 0.5 * low, 1.0))
        self.register_buffer("low", torch.where(bounded, low, -torch.inf))
        self.register_buffer("high", torch.where(bounded, high, torch.inf))

    def choose(self, logits: Tensor) -> Tensor:
        # The largest sum of a logit and a Gumbel number is a draw from the softmax.
        if not self.greedy:
            logits = logits - torch.log(-torch.log(torch.rand_like(logits).clamp(1e-20, 1.0 - 1e-7)))
        return torch.stack([head.argmax(-1) for head in logits.split(self.heads, -1)], -1)

    def best(self, values: Tensor) -> Tensor:
        """The value of the best action: the sum over heads, of which one without a legal choice is worth 0."""
        total = torch.zeros_like(values[:, 0])
        for head in values.split(self.heads, -1):
            highest = head.amax(-1)
            total = total + torch.where(highest == -torch.inf, torch.zeros_like(highest), highest)
        return total

    def within_bounds(self, mean: Tensor, observation: Tensor, state: Tensor) -> Tensor:
        sample = mean
        if not self.greedy:
            sample = mean + self.network.deviation(observation, self.std, state) * torch.randn_like(mean)
        if self.squashed:
            sample = torch.tanh(sample)
        return torch.minimum(torch.maximum(self.middle + sample * self.half_width, self.low), self.high)

    def rows(self, observation: Tensor, reads: List[Tensor]) -> Tensor:
        """[n, all columns]: observations with what else is read behind them."""
        parts = [observation]
        next = 0
        for size, is_given in zip(self.sizes, self.is_given):
            if is_given:
                parts.append(reads[next].to(observation.dtype).reshape(-1, size))
                next += 1
            else:
                parts.append(torch.zeros_like(observation[:, :1]).expand(-1, size))
        return torch.cat(parts, -1) if len(parts) > 1 else observation

    @torch.jit.export
    def act(self, observation: Tensor, mask: Tensor, state: Tensor,
            reads: List[Tensor]) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
        observation = self.rows(observation, reads)
        out = self.network(observation, state)
        if len(self.heads) == 0:
            return self.within_bounds(out.output, observation, state), out.output, out.value, self.after(out.state, state)
        legal = torch.where(mask == 0, torch.full_like(out.output, -torch.inf), out.output) if mask.numel() > 0 else out.output
        value = self.best(legal) if self.values else self.network.value_of_choices(observation, legal, out.value)
        return self.choose(legal), legal, value, self.after(out.state, state)

    def after(self, after: Tensor, before: Tensor) -> Tensor:
        """Without a value, the part of the state that its network has stays."""
        if self.actor_width == 0:
            return after
        return torch.cat([after[:, : self.actor_width], before[:, self.actor_width :]], -1)

    @torch.jit.ignore
    def forward(self, *inputs):
        """The names of inputs are those of each policy, and neither format has optional ones: see scripted()."""
        given, none = dict(zip(self.names, inputs, strict=True)), torch.zeros(0)
        reads = [given[name] for name in self.named.values()]
        action, output, value, after = self.act(given["observation"], given.get("mask", none) if self.masked else none,
                                                given["state"] if self.remembers else none, reads)
        return (action, output, *[value] * self.gives_value, *[after] * self.remembers)


def scripted(module):
    """The module in TorchScript, whose forward() has its inputs by name."""
    script = torch.jit.script(module)
    arguments = ", ".join(f"{name}: Tensor" for name in module.names)
    reads = f"[{', '.join(module.named.values())}]" if module.named else "torch.jit.annotate(List[Tensor], [])"
    results = ["action", "output", *["value"] * module.gives_value, *["after"] * module.remembers]
    script.define(f"""
def forward(self, {arguments}):
    none = torch.zeros(0)
    action, output, value, after = self.act(observation, {"mask" if module.masked else "none"},
                                            {"state" if module.remembers else "none"}, {reads})
    return {", ".join(results)}
""")
    return script


def exported(policy, greedy=True, value=True):
    """The module that is exported, and the names of its inputs and outputs. value: with what the value reads."""
    # A copy, because the policy may still be trained: what an exported module returns has no gradients.
    # Of a class of its own, because scripted() gives each a forward() of its own.
    kind = type("Exported", (Exported,), {})
    module = copy.deepcopy(kind(policy, greedy, value)).eval().requires_grad_(False)
    outputs = ["action", "logits" if policy.heads else "mean", *["value"] * value, *["state_after"] * module.remembers]
    return module, list(module.names), outputs


def example_inputs(policy, module, rows=2):
    sizes = {"observation": policy.observation_size, "mask": sum(policy.heads), "state": policy.state_size}
    sizes |= {module.named[name]: size for name, size in policy.reads.items() if name in module.named}
    return tuple(torch.zeros(rows, dtype=torch.long) if name == AGENT_ID else torch.ones(rows, sizes[name])
                 for name in module.names)


def _content(policy, format, greedy, value=True):
    """The bytes of the file, and the names of inputs and outputs."""
    module, inputs, outputs = exported(policy, greedy, value)
    content = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if format == "torchscript":
            torch.jit.save(scripted(module), content)
        else:
            need("onnx")
            batch = {name: {0: "n"} for name in inputs + outputs}
            torch.onnx.export(module, example_inputs(policy, module), content, input_names=inputs, output_names=outputs,
                              dynamic_axes=batch, opset_version=OPSET, dynamo=False)
    return content.getvalue(), inputs, outputs


def export(policy, path, format, greedy=True, value=True):
    """Writes the policy to a file, which is replaced if it exists. Returns the names of inputs and outputs.

    value: False leaves out the value, and the inputs that only it reads.
    """
    content, inputs, outputs = _content(policy, format, greedy, value)
    files.write(content, path, replace=True)
    return inputs, outputs


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="wdtrain-export", description=__doc__)
    parser.add_argument("word", nargs="?", metavar="RUN", help="folder of a run, or of one of its checkpoints")
    parser.add_argument("--run", metavar="FOLDER", help="the same")
    parser.add_argument("--format", choices=FORMATS, required=True)
    parser.add_argument("--policy", help="name of the policy, if there are several")
    parser.add_argument("--out", type=pathlib.Path, help="file to write (RUN/export/POLICY.pt, .onnx or .safetensors)")
    parser.add_argument("--sample", action="store_true", help="draw actions instead of taking the most likely ones")
    parser.add_argument("--actor", action="store_true", help="leave out the value, and the inputs that only it reads")
    parser.add_argument("--force", action="store_true", help="overwrite the file if it exists")
    options = parser.parse_args(arguments)
    if bool(options.word) == bool(options.run):
        parser.error("give RUN, the folder of a run or of one of its checkpoints, once")
    options.run = options.run or options.word
    files.command(_run, options)


def _run(options):
    run = Run(options.run)
    name = run.policy_name(options.policy)
    path = (options.out,) if options.out else (run.folder, "export", name + FORMATS[options.format])
    out = os.path.join(*path)
    if os.path.lexists(out) and not options.force:
        raise RunError(f"{out} exists: name another file with --out, or give --force")
    if options.format == "safetensors":
        if options.sample or options.actor:
            raise RunError(f"--{'sample' if options.sample else 'actor'}: a safetensors file has weights only")
        source, content = run.weights_file(name)
        files.require_finite(source, run.weights(name))
        said = f"weights and metadata of policy {name}"
    else:
        policy = run.policy(name)
        with files.parsing(out):
            content, inputs, outputs = _content(policy, options.format, not options.sample, not options.actor)
        said = f"({', '.join(inputs)}) -> ({', '.join(outputs)}), {len(content) / 1024:.0f} KiB"
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
    files.write(content, *path, replace=options.force)
    print(f"{out}: {said}")


if __name__ == "__main__":
    main()
