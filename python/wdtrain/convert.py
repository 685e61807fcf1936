"""Converts models of other libraries to weights that wdtrain starts from, and hyperparameters to a configuration.

    wdtrain-convert model.zip --out start.safetensors
    wdtrain --env cartpole --set policy.shared.model.model_ckpt_filepath=start.safetensors
    wdtrain-convert --zoo ppo.yml CartPole-v1 --out cartpole.yaml
    wdtrain-convert --jaxmarl qmix.yaml --out qmix_here.yaml

The file is a model that Stable-Baselines3 or sb3-contrib saved (PPO, A2C, DQN, SAC, TD3, DDPG, TQC, QR-DQN), or a torch
state dict: policy.pth of such a model, that of CleanRL's ppo.py or ppo_continuous_action.py, rsl_rl's model_N.pt, or
WarpDrive's POLICY_N.state_dict. Every tensor is used, or the file is refused. Hidden layers must be tanh or relu.
"""

import argparse
import io
import json
import os
import pathlib
import pickle
import re
import sys
import warnings
import zipfile

import numpy
import safetensors.numpy

from wdtrain import files, marl, zoo
from wdtrain.files import RunError
from wdtrain.run import need
from wdtrain.zoo import shown

ACTIVATIONS = ("relu", "tanh")  # model.activation

# What learning rebuilds from the networks.
TARGETS = ("critic_target.", "actor_target.", "q_net_target.", "quantile_net_target.")


class Tensors:
    """The tensors of a state dict {name: array}, which remembers those that were taken."""

    def __init__(self, state):
        self._state, self._left = state, {name for name in state if not name.startswith(TARGETS)}

    def __contains__(self, name):
        return name in self._state

    def has(self, prefix):
        return any(name.startswith(prefix) for name in self._state)

    def take(self, name, axes=None):
        if name not in self._state:
            raise RunError(f"the state dict has no tensor {name}")
        self._left.discard(name)
        value = numpy.asarray(self._state[name])
        if value.dtype.kind != "f":
            raise RunError(f"tensor {shown(name)} has numbers of the type {value.dtype}, which are no weights")
        if axes is not None and value.ndim != axes:
            raise RunError(f"tensor {shown(name)} has {value.ndim} dimensions instead of {axes}")
        if not value.size:
            raise RunError(f"tensor {shown(name)} has no numbers: its shape is {list(value.shape)}")
        return value.astype(numpy.float32)

    def linear(self, ours, theirs):
        """Weight and bias of a linear layer, with our prefix."""
        weight, bias = self.take(theirs + "weight", 2), self.take(theirs + "bias", 1)
        if len(weight) != len(bias):
            raise RunError(f"tensor {theirs}weight has {len(weight)} rows, and {theirs}bias {len(bias)} numbers")
        return {ours + "weight": weight, ours + "bias": bias}

    def normalizer(self, prefix):
        """Mean, divisor and count of rsl_rl's EmpiricalNormalization."""
        mean, divisor, _ = (self.take(prefix + part).reshape(-1).astype(numpy.float64) for part in ("_mean", "_std", "_var"))
        self._left.discard(prefix + "count")
        return mean, divisor + 0.01, max(float(self._state[prefix + "count"]), 1.0)

    def numbered(self, pattern):
        """The prefixes of a Sequential's linear layers, in order."""
        found = {int(match[1]): match[0] for name in self._state
                 if (match := re.match(pattern, name)) and name == match[0] + "weight"}
        return [found[k] for k in sorted(found)]

    def hidden(self, ours, prefixes):
        weights = {}
        for k, prefix in enumerate(prefixes):
            weights |= self.linear(f"{ours}{k}.", prefix)
        return weights

    def perceptron(self, pattern, ours, head):
        """The layers of a Sequential, whose last one is the head."""
        *hidden, last = self.numbered(pattern) or [None]
        if last is None:
            raise RunError(f"the state dict has no tensor {head}weight: it has no layers {pattern}")
        return self.hidden(ours, hidden) | self.linear(head, last)

    def require_all_taken(self):
        if self._left:
            raise RunError(f"wdtrain has no place for {_some(self._left)}: without them it would be another network")


def _some(names, most=8):
    """The first of the names, and how many more there are."""
    names = sorted(names)
    more = [f"{len(names) - most} more"] if len(names) > most else []
    return ", ".join([*map(shown, names[:most]), *more]) or "missing"


def _numbers(prefix):
    return re.escape(prefix) + r"(\d{1,6})\."


def _sb3_actor_critic(t, model, bounds):
    weights = t.hidden("layers.", t.numbered(_numbers("mlp_extractor.policy_net.")))
    weights |= t.linear("policy_head.", "action_net.")
    if "binary" in model:  # a number x for each bit: here two choices, with the logits 0 and x
        weights |= {name: numpy.stack([numpy.zeros_like(weights[name]), weights[name]], 1).reshape(-1, *weights[name].shape[1:])
                    for name in ("policy_head.weight", "policy_head.bias")}
    weights |= t.hidden("value_layers.", t.numbered(_numbers("mlp_extractor.value_net.")))
    weights |= t.linear("value_head.", "value_net.")
    _require_same_networks(weights)
    return _scaled(weights, t.take("log_std"), bounds) if t.has("log_std") else weights


def _two_perceptrons(actor, log_std=None, of=lambda number: number, critic="critic."):
    def convert(t, model, bounds):
        weights = t.perceptron(_numbers(actor), "layers.", "policy_head.")
        weights |= t.perceptron(_numbers(critic), "value_layers.", "value_head.")
        _require_same_networks(weights)
        if t.has("actor.obs_normalizer.") or t.has("critic.obs_normalizer."):
            (mean, divisor, count), of_critic = (t.normalizer(f"{who}.obs_normalizer.") for who in ("actor", "critic"))
            if not all(numpy.allclose(*both, rtol=1e-3, atol=1e-5) for both in zip((mean, divisor, count), of_critic)):
                raise RunError("the normalizers of actor and critic differ: wdtrain has one for both (model.normalize_input)")
            weights |= _normalization(mean, divisor ** 2 - 1e-8, count)
        return _scaled(weights, of(t.take(log_std)).reshape(-1), bounds) if log_std else weights
    return convert


def _warpdrive(t, model, bounds):
    weights = t.hidden("layers.", t.numbered(r"fc\.(\d{1,6})\.0\."))
    heads = [t.linear("", prefix) for prefix in t.numbered(_numbers("policy_head."))]
    if not heads:
        raise RunError("the state dict has no tensor policy_head.0.weight: of WarpDrive, policies of choices are converted")
    weights |= {f"policy_head.{part}": numpy.concatenate([head[part] for head in heads]) for part in ("weight", "bias")}
    return weights | t.linear("value_head.", "vf_head.")


def _values(t, model, bounds):
    return t.perceptron(_numbers("q_net.q_net."), "layers.", "policy_head.")


def _quantiles_of_choices(t, model, bounds):
    """QR-DQN's outputs are the first quantile of each choice, then the second ...; ours are choice by choice."""
    choices = model.get("choices")
    if choices is None:
        raise RunError("the number of choices is not in policy.pth: give the .zip that the model's save() wrote")
    weights = t.perceptron(_numbers("quantile_net.quantile_net."), "layers.", "layers.head.")
    for part in ("weight", "bias"):
        of_quantiles = weights["layers.head." + part].reshape(-1, choices, *weights["layers.head." + part].shape[1:])
        weights["layers.head." + part] = of_quantiles.swapaxes(0, 1).reshape(weights["layers.head." + part].shape)
    return weights


def _off_policy(t, model, bounds):
    """SAC, TD3, DDPG or TQC of SB3, which scales actions to [-1, 1], as we do."""
    if "actor.log_std" in t:
        raise RunError("the model explores with SB3's gSDE (use_sde): its deviations, actor.log_std, are not outputs of a "
                       "network, as those of SAC here are")
    if not t.has("actor.latent_pi.") and not t.has("actor.log_std."):
        weights = t.perceptron(_numbers("actor.mu."), "layers.", "policy_head.")
        components = len(weights["policy_head.bias"])
    else:  # SAC: mean and deviation are two heads
        weights = t.hidden("layers.", t.numbered(_numbers("actor.latent_pi.")))
        mean, deviation = t.linear("", "actor.mu."), t.linear("", "actor.log_std.")
        weights |= {"policy_head." + part: numpy.concatenate([mean[part], deviation[part]]) for part in mean}
        components = len(deviation["bias"])
    k = 0
    while t.has(f"critic.qf{k}."):
        prefix = f"critics.{k}."
        critic = t.perceptron(_numbers(f"critic.qf{k}."), prefix + "layers.", prefix + "head.")
        first = prefix + ("layers.0." if prefix + "layers.0.weight" in critic else "head.")
        both = critic[first + "weight"]
        critic[first + "weight"], critic[prefix + "layers.0.action.weight"] = both[:, :-components], both[:, -components:]
        weights |= critic
        widths = [_widths(weights, f"critics.{i}.layers.") for i in (k, 0)]
        _require_same(f"the hidden layers of critics {k} and 0", *widths)
        k += 1
    return weights


# A tensor that only this kind of model has; the conversion; and the activation, if the library's scripts set it.
KINDS = [
    ("critic.qf0.", _off_policy, None),
    ("q_net.q_net.", _values, None),
    ("quantile_net.quantile_net.", _quantiles_of_choices, None),
    ("action_net.", _sb3_actor_critic, None),
    ("vf_head.", _warpdrive, "relu"),
    ("actor_logstd", _two_perceptrons("actor_mean.", "actor_logstd"), "tanh"),
    ("actor.distribution.std_param", _two_perceptrons("actor.mlp.", "actor.distribution.std_param", numpy.log, "critic.mlp."), None),
    ("actor.distribution.log_std_param", _two_perceptrons("actor.mlp.", "actor.distribution.log_std_param", critic="critic.mlp."), None),
    ("std", _two_perceptrons("actor.", "std", numpy.log), None),  # of rsl_rl; also next to critic.K
    ("log_std", _two_perceptrons("actor.", "log_std"), None),
    ("actor.", _two_perceptrons("actor."), "tanh"),
]


def _kind(state):
    t = Tensors(state)
    for mark, work, activation in KINDS:
        if mark in t or (mark.endswith(".") and t.has(mark)):
            return work, activation
    raise RunError(f"no model of SB3, CleanRL, rsl_rl or WarpDrive: its tensors are {_some(state)}")


def convert(state, low=None, high=None, model=None):
    """{our name: numpy array} of a state dict {name: array}. low, high: bounds of a continuous action.

    model: what the .zip of SB3 says of it (described()).
    """
    work, _ = _kind(state)
    t = Tensors(state)
    weights = work(t, model or {}, (low, high))
    t.require_all_taken()
    _require_fit(weights)
    files.require_finite("the state dict", weights)
    return {name: numpy.ascontiguousarray(value) for name, value in weights.items()}


def _widths(weights, prefix):
    return [len(weights[name]) for name in weights if re.fullmatch(re.escape(prefix) + r"\d+\.bias", name)]


def _require_same(of, found, expected):
    if found != expected:
        raise RunError(f"{of} are {found} and {expected}: wdtrain has one width for both (model.fc_dims, model.critic_dims)")


def _require_same_networks(weights):
    """model.fc_dims gives the hidden layers of the policy and of the value."""
    own, of_value = (_widths(weights, prefix) for prefix in ("layers.", "value_layers."))
    _require_same("the hidden layers of the policy and of the value", own, of_value)


def _require_fit(weights):
    """Each layer reads what the one before it computes, and the first ones the observation."""
    first = next(name for name in ("layers.0.weight", "policy_head.weight", "layers.head.weight") if name in weights)
    for head in [name.removesuffix("bias") for name in weights if name.endswith("head.bias")]:
        body = re.sub(r"(layers\.|policy_|value_)?head\.$", "", head) + "layers."
        body = "value_layers." if head == "value_head." and "value_layers.0.weight" in weights else body
        width = weights[first].shape[1]
        for layer in [*(f"{body}{k}." for k in range(len(_widths(weights, body)))), head]:
            if weights[layer + "weight"].shape[1] != width:
                raise RunError(f"{layer}weight is {list(weights[layer + 'weight'].shape)}: it should read {width} numbers")
            width = len(weights[layer + "bias"])


def _scaled(weights, log_std, bounds):
    """A continuous action of ours is the middle of the bounds plus the network's output times half their distance, so
    the head and the deviations are divided by it. log_std: [components], or of gSDE [hidden units, components]."""
    low, high = bounds
    count = log_std.shape[-1]
    if low is None or high is None:
        raise RunError("the actions are continuous: give their bounds, --low and --high")
    for name, bound in (("--low", low), ("--high", high)):
        if len(bound) not in (1, count):
            raise RunError(f"{name} has {len(bound)} values for {count} components of the action: give {count}, or 1")
    low, high = (numpy.broadcast_to(numpy.asarray(bound, numpy.float32), (count,)) for bound in (low, high))
    half, middle = 0.5 * (high - low), 0.5 * (high + low)
    if not (half > 0).all() or not numpy.isfinite(half).all():
        raise RunError(f"--low {low.tolist()} must be below --high {high.tolist()}, and both finite")
    outputs, hidden = weights["policy_head.weight"].shape
    if outputs != count:
        raise RunError(f"the policy's head has {outputs} outputs for {count} components of log_std")
    if log_std.ndim == 2 and (len(log_std) != hidden or not _widths(weights, "layers.")):
        raise RunError(f"log_std of SB3's gSDE has {len(log_std)} rows for {hidden} hidden units: wdtrain's gSDE needs one "
                       "for each unit of the last hidden layer")
    weights["policy_head.weight"] = weights["policy_head.weight"] / half[:, None]
    weights["policy_head.bias"] = (weights["policy_head.bias"] - middle) / half
    return weights | {"log_std": (log_std - numpy.log(half)).T}


def _opened(path, data):
    """An archive that is not much smaller than what it holds: weights do not shrink."""
    archive = zipfile.ZipFile(io.BytesIO(data))
    if (size := sum(member.file_size for member in archive.infolist())) > 20 * len(data) + (1 << 20):
        raise RunError(f"{path}: holds {size} bytes in {len(data)}: weights do not shrink so much, and it stays unread")
    return archive


def read_state(path):
    """The state dict {name: array}, and what the .zip of SB3 says of the model (described())."""
    torch = need("torch")
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6):
        raise RunError(f"torch {torch.__version__} may run code that a state dict contains (CVE-2025-32434): "
                       "pip install 'torch>=2.6'")
    data, model = files.read(path), {}
    with files.parsing(path):
        if zipfile.is_zipfile(io.BytesIO(data)):
            with _opened(path, data) as archive:
                if "policy.pth" in archive.namelist():  # a model of SB3
                    data = archive.read("policy.pth")
                    if "data" in archive.namelist():
                        model = described(json.loads(archive.read("data")))
        if zipfile.is_zipfile(io.BytesIO(data)):
            _opened(path, data)
        try:
            found = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        except (pickle.UnpicklingError, EOFError) as error:  # torch advises to allow code, in five lines
            raise RunError(f"{path}: is not a torch file that holds tensors only: save module.state_dict()") from error
        if not isinstance(found, dict):
            raise RunError(f"{path}: is not a state dict, but a {type(found).__name__}")
        tensors = _state_dict(path, found, torch.Tensor)
        if sum(tensor.numel() for tensor in tensors.values()) > len(data):
            raise RunError(f"{path}: its tensors have more numbers than the file has bytes: save them dense, each with numbers of its own")
        return {str(name): (tensor.to(torch.float32) if tensor.is_floating_point() else tensor).detach().to_dense().numpy()
                for name, tensor in tensors.items()}, model


def _state_dict(path, found, tensor):
    """The tensors of a dictionary, or of the only dictionary in it that has some; of rsl_rl 5, those of both networks."""
    if {"actor_state_dict", "critic_state_dict"} <= found.keys():
        found = {f"{who}.{name}": value for who in ("actor", "critic") for name, value in found[f"{who}_state_dict"].items()}
    inside = {str(name): value for name, value in found.items()
              if isinstance(value, dict) and any(isinstance(part, tensor) for part in value.values())}
    own = {name: value for name, value in found.items() if isinstance(value, tensor)}
    if own:
        inside = {"the file itself": own} | inside
    if len(inside) > 1:
        raise RunError(f"{path}: has several state dicts, {', '.join(map(repr, inside))}: save the policy's alone, with "
                       "torch.save")
    only = next(iter(inside.values()), {})
    return {name: value for name, value in only.items() if isinstance(value, tensor)}


def described(data):
    """What SB3's JSON says of a model: activation, bounds, choices ... Its pickles stay unread."""
    policy, space, given, seen = (data.get(name) or {} for name in ("policy_class", "action_space", "policy_kwargs",
                                                                    "observation_space"))
    module, settings = policy.get("__module__", ""), given if isinstance(given, dict) else {}
    extractor = shown(settings.get("features_extractor_class", "FlattenExtractor"))
    kind = str(space.get(":type:", ""))
    for wrong, name in [
        ("FlattenExtractor" not in extractor, f"features_extractor_class {extractor}"),
        (settings.get("squash_output") in (True, "True"), "squash_output: means go through tanh"),
        (settings.get("use_expln") in (True, "True"), "use_expln: another form of the deviations of gSDE"),
        (not re.search(r"\.(Box|Discrete|MultiDiscrete|MultiBinary)'>|^$", kind), f"the action space {shown(kind)}"),
        (seen.get("dtype") == "uint8" and len(seen.get("_shape") or []) == 3,
         "pictures: SB3 divides them by 255 and puts their channels first, and networks here would read them as they are"),
    ]:
        if wrong:
            raise RunError(f"the model has what wdtrain lacks: {name}")
    model = {"binary" if "MultiBinary" in kind else "choices": int(space["n"])} if "n" in space else {}
    if "activation_fn" in settings:
        model["activation"] = re.sub(r".*\.|'>$", "", str(settings["activation_fn"])).lower()
    elif module.startswith(("stable_baselines3.", "sb3_contrib.")):
        on_policy = module.startswith(("stable_baselines3.common.", "sb3_contrib.common."))
        model["activation"] = "tanh" if on_policy else "relu"
    model |= {end: bound for end in ("low", "high") if (bound := _bound(space, end)) is not None}
    if data.get("use_sde") and isinstance(data.get("n_steps"), int):
        every = data.get("sde_sample_freq", -1)
        model["noise_every"] = every if every > 0 else data["n_steps"]
    if data.get("_last_obs") is not None and "buffer_size" not in data:  # it has learned; with a memory, the next line is no mark
        model["normalized"] = data.get("_last_original_obs") is not None
    return model


def _bound(space, end):
    """The numbers of "[-2.  0.5]"; None if numpy left some out."""
    text = str(space.get(end, ""))
    if "..." in text or not text.startswith("["):
        return None
    return [float(word) for word in text.replace("[", " ").replace("]", " ").split()]


class _Inert(dict):
    """Stands for every class and function that a pickle names, so that none of them is called."""
    state, args = {}, ()

    def __init__(self, *args, **_):
        self.args = args

    def __setstate__(self, state):
        self.state = state

    def append(self, item):
        pass

    def array(self):
        """What is pickled as numpy's array or scalar: numbers, and their type with its name and byte order."""
        if len(self.args) == 2:
            shape, order, (kind, content) = (), "C", self.args
        else:  # the former of protocol 5
            content, kind, shape, order = self.args if len(self.args) == 4 else [self.state[k] for k in (4, 2, 1, 3)]
        number = re.fullmatch(r"[fiu][248]", kind.args[0])[0]  # fails for objects
        numbers = numpy.frombuffer(content, (">" if kind.state[1:2] == (">",) else "<") + number)
        return numbers.reshape(shape, order="F" if order in (True, "F") else "C").astype(numpy.float64)


class _Unpickler(pickle._Unpickler):
    """That of Python: the one in C, and arrays of bytes, may take more memory than the file has."""
    dispatch = pickle._Unpickler.dispatch | {pickle.BYTEARRAY8[0]: pickle._Unpickler.load_binbytes8}

    def find_class(self, module, name):
        return type(name, (_Inert,), {"__hash__": object.__hash__})


def _of_vec_normalize(path, data):
    """The numbers of SB3's vecnormalize.pkl; observations of a Dict one behind the other, in the order of its space."""
    number = lambda value: value.array() if isinstance(value, _Inert) else value  # noqa: E731
    try:
        vec = _Unpickler(io.BytesIO(data)).load().state
        parts = [part.state for part in (vec["obs_rms"].values() if type(vec["obs_rms"]) is dict else [vec["obs_rms"]])]
        found = {name: numpy.concatenate([numpy.ravel(number(part[name])) for part in parts]) for name in ("mean", "var")}
        return found | {"count": number(parts[0]["count"])} | {name: number(vec[name]) for name in ("clip_obs", "epsilon")}
    except Exception as error:
        raise RunError(f"{path}: is no VecNormalize of SB3 that can be read safely (with norm_obs=False: --normalize none): in Python, "
                       f"vec = pickle.load(open({str(path)!r}, 'rb')), then numpy.savez('norm.npz', mean=vec.obs_rms.mean, "
                       "var=vec.obs_rms.var, count=vec.obs_rms.count, clip_obs=vec.clip_obs, epsilon=vec.epsilon), and --normalize norm.npz") from error


def statistics(path, inputs):
    """observation_norm and observation_moments (model.normalize_input) of a file with SB3's VecNormalize: mean, var, count,
    clip_obs and epsilon, as .npz or JSON, or its pickle."""
    data = files.read(path)
    with files.parsing(path):
        if zipfile.is_zipfile(io.BytesIO(data)):
            _opened(path, data)
            with numpy.load(io.BytesIO(data), allow_pickle=False) as archive:
                found = dict(archive)
        elif data[:1] == pickle.PROTO:
            found = _of_vec_normalize(path, data)
        else:
            found = dict(json.loads(data))
        if others := found.keys() - {"mean", "var", "count", "clip_obs", "epsilon"}:
            raise RunError(f"{path}: {_some(others)}: not known, only mean, var, count, clip_obs and epsilon")
        if missing := {"mean", "var", "count"} - found.keys():
            raise RunError(f"{path}: has no {_some(missing)}")
        found = {name: numpy.asarray(value, numpy.float64).reshape(-1) for name, value in found.items()}
        mean, count = found["mean"], float(found["count"].item())
        var = found["var"] + float(found.get("epsilon", numpy.array(1e-8)).item()) - 1e-8
        clip = float(found.get("clip_obs", numpy.array(10.0)).item())
        files.require_finite(path, found)
    if not len(mean) == len(var) == inputs:
        raise RunError(f"{path}: has {len(mean)} means and {len(var)} variances for a network that reads {inputs} numbers")
    if (var < 0).any() or count <= 0:
        raise RunError(f"{path}: variances must not be negative, and count must be above 0")
    if clip != 10:
        raise RunError(f"{path}: clip_obs is {clip:g}, and model.normalize_input limits at 10 deviations")
    return _normalization(mean, var, count)


def _normalization(mean, var, count):
    """Tensors of model.normalize_input, which adds 1e-8 to the variance."""
    return {"observation_norm": numpy.stack([mean, numpy.sqrt(var + 1e-8)], 1).astype(numpy.float32),
            "observation_moments": numpy.stack([numpy.full_like(mean, count), mean, var], 1)}


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="wdtrain-convert", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path, nargs="?", help="the model; with --zoo, the name of the environment")
    parser.add_argument("--out", type=pathlib.Path, help="safetensors file to write")
    parser.add_argument("--activation", help="of hidden layers, if the file does not say it: tanh or relu")
    parser.add_argument("--low", type=float, nargs="+", help="lower bounds of a continuous action, if the file lacks them")
    parser.add_argument("--high", type=float, nargs="+", help="upper bounds")
    parser.add_argument("--normalize", metavar="FILE", help="statistics of observations: .npz or JSON with mean, var and count "
                        "(docs/python.md); none: the model reads plain observations")
    parser.add_argument("--zoo", type=pathlib.Path, metavar="FILE", help="print a file of rl-baselines3-zoo as a configuration, or write it to --out")
    parser.add_argument("--jaxmarl", "--epymarl", dest="marl", type=pathlib.Path, metavar="FILE", help="print settings of JaxMARL or EPyMARL (YAML)")
    parser.add_argument("--algorithm", help="with these, if the file's name is not that of its algorithm")
    options = parser.parse_args(arguments)
    for path in (options.marl or options.zoo or options.file, options.normalize):
        if path not in (None, "none") and not os.path.exists(path):
            sys.exit(f"error: {path}: there is no such file")
    if not options.marl and (options.file is None or (options.zoo is None and options.out is None)):
        parser.error("give a model and --out FILE, or --zoo FILE and an environment, or --jaxmarl FILE")
    if not (options.zoo or options.marl) and options.algorithm is not None:
        parser.error("--algorithm goes with --zoo and --jaxmarl")
    files.command(marl.run if options.marl else zoo.run if options.zoo else _run, options)


def _activation(path, given, of_file, of_kind):
    activation = given or of_file or of_kind
    if activation is None:
        raise RunError(f"{path}: does not say the activation of hidden layers: give --activation tanh or relu (SB3's "
                       "PPO and A2C have tanh, its other algorithms relu, if activation_fn is not set; rsl_rl has elu)")
    if activation.lower() not in ACTIVATIONS:
        raise RunError(f"{path}: the activation is {shown(activation)}, and wdtrain has {' and '.join(ACTIVATIONS)}")
    return activation.lower()


def _settings(weights, model, activation):
    """What a model section must say for these weights."""
    settings = {"fc_dims": _widths(weights, "layers."), "activation": activation}
    if "critics.0.head.bias" in weights:
        settings["critic_dims"] = _widths(weights, "critics.0.layers.")
    elif "value_layers.0.bias" in weights:
        settings["separate_value"] = "true"
    of_choices, of_critic = (len(weights.get(name, [0])) for name in ("layers.head.bias", "critics.0.head.bias"))
    if (quantiles := max(of_choices // model.get("choices", 1), of_critic)) > 1:
        settings["quantiles"] = quantiles
    if weights.get("log_std", numpy.zeros(0)).ndim == 2:
        settings |= {"distribution": "gsde", "noise_every": model.get("noise_every", 4)}
    if "observation_norm" in weights:
        settings["normalize_input"] = "true"
    return settings


def _run(options):
    state, model = read_state(options.file)
    with files.parsing(options.file):
        weights = convert(state, options.low or model.get("low"), options.high or model.get("high"), model)
    of_kind = _kind(state)[1]
    activation = _activation(options.file, options.activation, model.get("activation"), of_kind)
    if options.normalize not in (None, "none"):
        if "observation_norm" in weights:
            raise RunError(f"{options.file}: has statistics of observations itself: leave out --normalize")
        first = weights["layers.0.weight" if "layers.0.weight" in weights else "policy_head.weight"]
        weights |= statistics(options.normalize, first.shape[1])
    elif options.normalize is None and model.get("normalized"):
        raise RunError(f"{options.file}: was trained with VecNormalize: give its statistics with --normalize "
                       "(docs/python.md), or --normalize none if it had norm_obs=False")
    elif options.normalize is None and "normalized" not in model and not state.keys() & {"vf_head.weight", "actor.mlp.0.weight"}:
        warnings.warn("if the model was trained with VecNormalize, give its statistics with --normalize, otherwise it "
                      "acts on other numbers", stacklevel=1)
    files.write(safetensors.numpy.save(weights, {"activation": activation}), options.out)
    settings = _settings(weights, model, activation) | {"model_ckpt_filepath": options.out}
    line = ", ".join(f"{name}: {value}" for name, value in settings.items())
    assumed = of_kind and not (options.activation or model.get("activation"))
    why = f"  # {activation} as in the library's scripts; otherwise give --activation" if assumed else ""
    print(f"{options.out}: for model: {{{line}}}{why}")


if __name__ == "__main__":
    main()
