"""Converts models of Stable-Baselines3 and CleanRL to weights that wdtrain starts from.

    wdtrain-convert policy.pth --out start.safetensors
    wdtrain --env cartpole --set policy.shared.model.model_ckpt_filepath=start.safetensors

The file is a torch state dict: policy.pth of a model that SB3 saved (also inside its .zip, which is accepted), by
PPO, A2C, DQN, SAC, TD3 or DDPG; or what CleanRL's ppo.py or ppo_continuous_action.py saved of their Agent. Hidden
layers must be tanh or relu everywhere (model.activation).
"""

import argparse
import io
import pathlib
import pickle
import re
import zipfile

import numpy
import safetensors.numpy

from wdtrain import files
from wdtrain.files import RunError
from wdtrain.run import need

# How the parts are called: hidden layers and head of the actor and of the critic, and log_std.
SB3 = {"actor": r"mlp_extractor\.policy_net\.(\d{1,6})\.", "critic": r"mlp_extractor\.value_net\.(\d{1,6})\.",
       "actor_head": "action_net.", "critic_head": "value_net.", "log_std": "log_std"}
CLEANRL = {"actor": r"actor\.(\d{1,6})\.", "critic": r"critic\.(\d{1,6})\.", "log_std": "actor_logstd"}
CLEANRL_CONTINUOUS = dict(CLEANRL, actor=r"actor_mean\.(\d{1,6})\.")


def _numbered(state, pattern):
    """The prefixes of a Sequential's linear layers, in order."""
    found = {int(match[1]): match[0] for name in state if (match := re.match(pattern, name)) and name.endswith("weight")}
    return [found[k] for k in sorted(found)]


def convert(state, low=None, high=None):
    """{our name: numpy array} of a state dict {name: array}. low, high: bounds of a continuous action.

    A continuous action of ours is the middle of the bounds plus the network's output times half their distance, so
    the head and log_std are divided by it.
    """
    if any(name.startswith("critic.qf0.") for name in state):
        return _off_policy(state)
    if any(name.startswith("q_net.q_net.") for name in state):
        return _taken(state, _renamed(state, r"q_net\.q_net\.(\d{1,6})\.", "layers.", "policy_head."))
    if any(name.startswith("mlp_extractor.") for name in state):
        names = SB3
    elif any(name.startswith("actor_mean.") for name in state):
        names = CLEANRL_CONTINUOUS
    elif any(name.startswith("actor.") for name in state):
        names = CLEANRL
    else:
        raise RunError(f"neither a model of SB3's nor CleanRL's actor-critic: its tensors are {', '.join(state) or 'missing'}")
    actor, critic = _numbered(state, names["actor"]), _numbered(state, names["critic"])
    actor_head = names.get("actor_head") or (actor.pop() if actor else None)
    critic_head = names.get("critic_head") or (critic.pop() if critic else None)
    weights = {}
    for ours, prefix in [*((f"layers.{k}.", p) for k, p in enumerate(actor)), ("policy_head.", actor_head),
                         *((f"value_layers.{k}.", p) for k, p in enumerate(critic)), ("value_head.", critic_head)]:
        for part, axes in (("weight", 2), ("bias", 1)):
            name = f"{prefix or ours}{part}"
            if name not in state:
                raise RunError(f"the state dict has no tensor {name}")
            weights[ours + part] = numpy.asarray(state[name], numpy.float32)
            if weights[ours + part].ndim != axes:
                raise RunError(f"tensor {name} has {weights[ours + part].ndim} dimensions instead of {axes}")
    if names["log_std"] in state:
        weights["log_std"] = numpy.asarray(state[names["log_std"]], numpy.float32).reshape(-1)
        _scale(weights, low, high)
    files.require_finite("the state dict", weights)
    return {name: numpy.ascontiguousarray(value) for name, value in weights.items()}


def _taken(state, layers):
    """{our name: numpy array} of pairs of prefixes of linear layers, ours and theirs."""
    weights = {}
    for ours, theirs in layers:
        for part, axes in (("weight", 2), ("bias", 1)):
            name = theirs + part
            if name not in state:
                raise RunError(f"the state dict has no tensor {name}")
            weights[ours + part] = numpy.asarray(state[name], numpy.float32)
            if weights[ours + part].ndim != axes:
                raise RunError(f"tensor {name} has {weights[ours + part].ndim} dimensions instead of {axes}")
    files.require_finite("the state dict", weights)
    return {name: numpy.ascontiguousarray(value) for name, value in weights.items()}


def _renamed(state, pattern, layers, head):
    """Our prefixes of the layers of a Sequential, whose last one is the head, with theirs."""
    *hidden, last = _numbered(state, pattern) or [None]
    if last is None:
        raise RunError(f"the state dict has no layers {pattern}")
    return [*((f"{layers}{k}.", prefix) for k, prefix in enumerate(hidden)), (head, last)]


def _off_policy(state):
    """SAC, TD3 or DDPG of SB3, which scales actions to [-1, 1], as we do."""
    if "actor.log_std" in state:
        raise RunError("the model explores with SB3's gSDE (use_sde), whose deviations are not outputs of a network")
    if "actor.mu.weight" in state:  # SAC: mean and deviation are two heads
        hidden = _numbered(state, r"actor\.latent_pi\.(\d{1,6})\.")
        weights = _taken(state, [*((f"layers.{k}.", prefix) for k, prefix in enumerate(hidden)), ("policy_head.", "actor.mu.")])
        deviation = _taken(state, [("", "actor.log_std.")])
        for part in ("weight", "bias"):
            weights["policy_head." + part] = numpy.concatenate([weights["policy_head." + part], deviation[part]])
        components = len(deviation["bias"])
    else:
        weights = _taken(state, _renamed(state, r"actor\.mu\.(\d{1,6})\.", "layers.", "policy_head."))
        components = len(weights["policy_head.bias"])
    for k in range(len({name.split(".")[1] for name in state if name.startswith("critic.qf")})):
        prefix = f"critics.{k}."
        critic = _taken(state, _renamed(state, rf"critic\.qf{k}\.(\d{{1,6}})\.", prefix + "layers.", prefix + "head."))
        first = prefix + ("layers.0." if prefix + "layers.0.weight" in critic else "head.")
        both = critic[first + "weight"]
        critic[first + "weight"] = numpy.ascontiguousarray(both[:, :-components])
        critic[prefix + "layers.0.action.weight"] = numpy.ascontiguousarray(both[:, -components:])
        weights |= critic
    return weights


def _scale(weights, low, high):
    count = weights["log_std"].size
    if low is None or high is None:
        raise RunError("the actions are continuous: give their bounds, --low and --high")
    for name, bounds in (("--low", low), ("--high", high)):
        if len(bounds) not in (1, count):
            raise RunError(f"{name} has {len(bounds)} values for {count} components of the action: give {count}, or 1")
    low, high = (numpy.broadcast_to(numpy.asarray(bound, numpy.float32), (count,)) for bound in (low, high))
    half, middle = 0.5 * (high - low), 0.5 * (high + low)
    if not (half > 0).all() or not numpy.isfinite(half).all():
        raise RunError(f"--low {low.tolist()} must be below --high {high.tolist()}, and both finite")
    if len(weights["policy_head.bias"]) != count:
        raise RunError(f"the policy's head has {len(weights['policy_head.bias'])} outputs for {count} components")
    weights["policy_head.weight"] = weights["policy_head.weight"] / half[:, None]
    weights["policy_head.bias"] = (weights["policy_head.bias"] - middle) / half
    weights["log_std"] = weights["log_std"] - numpy.log(half)


def read_state(path):
    torch = need("torch")
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6):
        raise RunError(f"torch {torch.__version__} may run code that a state dict contains (CVE-2025-32434): "
                       "pip install 'torch>=2.6'")
    data = files.read(path)
    with files.parsing(path):
        if zipfile.is_zipfile(io.BytesIO(data)):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                if "policy.pth" in archive.namelist():  # a model of SB3
                    data = archive.read("policy.pth")
        try:
            state = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        except (pickle.UnpicklingError, EOFError) as error:  # torch advises to allow code, in five lines
            raise RunError(f"{path}: is not a torch file that holds tensors only: save module.state_dict()") from error
        if not isinstance(state, dict):
            raise RunError(f"{path}: is not a state dict, but a {type(state).__name__}")
        return {str(name): tensor.detach().to_dense().to(torch.float32).numpy()
                for name, tensor in state.items() if isinstance(tensor, torch.Tensor)}


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="wdtrain-convert", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="safetensors file to write")
    parser.add_argument("--low", type=float, nargs="+", help="lower bounds of a continuous action")
    parser.add_argument("--high", type=float, nargs="+", help="upper bounds")
    options = parser.parse_args(arguments)
    files.command(_run, options)


def _widths(weights, prefix):
    return ", ".join(str(len(weights[name])) for name in weights if re.fullmatch(re.escape(prefix) + r"layers\.\d+\.bias", name))


def _run(options):
    state = read_state(options.file)
    with files.parsing(options.file):
        weights = convert(state, options.low, options.high)
    files.write(safetensors.numpy.save(weights), options.out)
    own, of_critics = (_widths(weights, prefix) for prefix in ("", "critics.0."))
    more = f"critic_dims: [{of_critics}], " if "critics.0.head.bias" in weights else "separate_value: true, " if "value_head.bias" in weights else ""
    print(f"{options.out}: for model: {{fc_dims: [{own}], {more}model_ckpt_filepath: {options.out}}}")


if __name__ == "__main__":
    main()
