"""Hyperparameters of rl-baselines3-zoo (hyperparams/ppo.yml ...) as a configuration of wdtrain."""

import ast
import math
import sys

from wdtrain import files
from wdtrain.files import RunError
from wdtrain.run import need

ENVIRONMENTS = {"CartPole-v1": "cartpole", "Pendulum-v1": "pendulum", "Acrobot-v1": "acrobot", "MountainCar-v0": "mountain_car",
                "MountainCarContinuous-v0": "continuous_mountain_car"}
HALF_WIDTHS = {"pendulum": 2.0}  # of actions, if not 1

# SB3's defaults, which the files leave out.
SDE = {"use_sde": False, "sde_sample_freq": -1}
ON_POLICY = SDE | {"n_envs": 1, "gamma": 0.99, "ent_coef": 0.0, "vf_coef": 0.5, "max_grad_norm": 0.5}
REPLAY = {"n_envs": 1, "gamma": 0.99, "buffer_size": 1_000_000, "learning_starts": 100, "batch_size": 256, "tau": 0.005,
          "train_freq": 1, "gradient_steps": 1}
NOISE = {"noise_type": None, "noise_std": 0.0}
DEFAULTS = {
    "PPO": ON_POLICY | {"learning_rate": 3e-4, "n_steps": 2048, "batch_size": 64, "n_epochs": 10, "gae_lambda": 0.95,
                        "clip_range": 0.2, "normalize_advantage": True},
    "A2C": ON_POLICY | {"learning_rate": 7e-4, "n_steps": 5, "gae_lambda": 1.0, "normalize_advantage": False},
    "DQN": REPLAY | {"learning_rate": 1e-4, "batch_size": 32, "tau": 1.0, "train_freq": 4, "target_update_interval": 10_000,
                     "exploration_fraction": 0.1, "exploration_initial_eps": 1.0, "exploration_final_eps": 0.05,
                     "max_grad_norm": 10},
    "SAC": REPLAY | SDE | {"learning_rate": 3e-4, "ent_coef": "auto"},
    "TD3": REPLAY | NOISE | {"learning_rate": 1e-3},
    "DDPG": REPLAY | NOISE | {"learning_rate": 1e-3},
}
HIDDEN = {"PPO": [64, 64], "A2C": [64, 64], "DQN": [64, 64], "SAC": [256, 256], "TD3": [400, 300], "DDPG": [400, 300]}
SAME = {"gamma": "gamma", "gae_lambda": "gae_lambda", "vf_coef": "vf_loss_coeff", "max_grad_norm": "max_grad_norm",
        "normalize_advantage": "normalize_advantage", "target_kl": "target_kl", "n_epochs": "num_epochs", "tau": "tau",
        "buffer_size": "buffer_size", "learning_starts": "learning_starts"}


def shown(name, most=200):
    """A name that somebody else chose, as one short line that a terminal shows as it is."""
    text = "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in str(name)[:most])
    return text + "..." * (len(str(name)) > most) or "''"


class Settings:
    """The entry of an environment, which remembers the keys that were asked for."""

    def __init__(self, given, defaults):
        self._all = defaults | given
        self.left = set(given) - {"policy"}

    def get(self, key, default=None):
        self.left.discard(key)
        return self._all.get(key, default)

    def number(self, key):
        value = self.get(key)
        if value is None:
            raise RunError(f"the entry has no {key}")
        return float(value)

    def count(self, key):
        return round(self.number(key))

    def schedule(self, key, steps):
        """A number, or of "lin_X" the line from X to 0."""
        value = self.get(key)
        if isinstance(value, str) and value.startswith("lin_"):
            return [[0, float(value[4:])], [steps, 0.0]]
        return float(value)


def _parsed(value):
    """policy_kwargs and normalize are Python in a string: dict(net_arch=[64], activation_fn=nn.ReLU)."""
    def of(node):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict" and not node.args:
            return {keyword.arg: of(keyword.value) for keyword in node.keywords}
        if isinstance(node, ast.Attribute):
            return node.attr
        if isinstance(node, ast.Name):
            return node.id
        return [of(part) for part in node.elts] if isinstance(node, ast.List) else ast.literal_eval(node)
    return of(ast.parse(value.strip(), mode="eval").body) if isinstance(value, str) else value


def _model(settings, algorithm, env, notes):
    """The model section, and what belongs to the policy of policy_kwargs."""
    on_policy = algorithm in ("PPO", "A2C")
    kwargs, policy = dict(_parsed(settings.get("policy_kwargs")) or {}), {}
    hidden = kwargs.pop("net_arch", HIDDEN[algorithm])
    if hidden and isinstance(hidden, list) and isinstance(hidden[0], dict):
        hidden = hidden[0]  # as before SB3 1.8
    widths = hidden if isinstance(hidden, dict) else {"pi": hidden, "vf": hidden, "qf": hidden}
    model = {"fc_dims": list(widths.get("pi", []))}
    if on_policy:
        model["separate_value"] = True
        if widths.get("vf", []) != model["fc_dims"]:
            notes.append(f"policy_kwargs.net_arch.vf {widths.get('vf', [])}: fc_dims is the width of both networks")
    elif algorithm != "DQN":
        model["critic_dims"] = list(widths.get("qf", []))
    activation = kwargs.pop("activation_fn", "Tanh" if on_policy else "ReLU").lower()
    if activation not in ("tanh", "relu"):
        notes.append(f"policy_kwargs.activation_fn {activation}: model.activation is relu or tanh")
    else:
        model["activation"] = activation
    model["init_method"] = "orthogonal" if kwargs.pop("ortho_init", on_policy) else "default"
    if "n_critics" in kwargs and algorithm in ("SAC", "TD3"):
        policy["num_critics"] = kwargs.pop("n_critics")
    if on_policy and ("log_std_init" in kwargs or env in HALF_WIDTHS):  # ours is in half-widths of the bounds
        model["initial_log_std"] = float(kwargs.pop("log_std_init", 0.0)) - math.log(HALF_WIDTHS.get(env, 1.0))
    if settings.get("use_sde"):
        every, rollout = settings.count("sde_sample_freq"), settings.count("n_steps" if on_policy else "train_freq")
        model |= {"distribution": "gsde", "noise_every": every if every > 0 else rollout}
    settings.get("sde_sample_freq")
    notes += [f"policy_kwargs.{name}: has no counterpart" for name in kwargs]
    return model, policy


def _normalization(settings, on_policy, notes):
    normalize = _parsed(settings.get("normalize", False))
    if not normalize:
        return {}, {}
    kinds = normalize if isinstance(normalize, dict) else {}
    rewards = kinds.get("norm_reward", True)
    if rewards and not on_policy:
        notes.append("normalize (norm_reward): replay memories hold plain rewards; reward_scale multiplies them")
    return ({"normalize_input": True} if kinds.get("norm_obs", True) else {},
            {"normalize_reward": True} if rewards and on_policy else {})


def _on_policy(settings, algorithm, steps, batch, notes):
    policy = {"entropy_coeff": settings.number("ent_coef"), "normalize_value": False}
    if algorithm == "A2C":
        if settings.get("use_rms_prop", True):
            notes.append("use_rms_prop: the optimizer here is Adam")
        return policy
    if settings.get("clip_range_vf") is not None:
        policy["vf_clip_param"] = settings.schedule("clip_range_vf", steps)
    size = settings.count("batch_size")
    if batch > size and batch % size:
        notes.append(f"batch_size {size}: does not divide the {batch} transitions of a rollout; minibatches are equal here")
    return policy | {"clip_param": settings.schedule("clip_range", steps), "num_minibatches": -(-batch // size)}


def _replay(settings, algorithm, steps, batch, notes):
    size, updates = settings.count("batch_size"), settings.count("gradient_steps")
    policy = {"batch_size": size, "replay_ratio": (batch if updates < 0 else updates) * size / batch}
    if algorithm == "DQN":
        end = round(settings.number("exploration_fraction") * steps)
        first, last = (settings.number(f"exploration_{which}_eps") for which in ("initial", "final"))
        return policy | {"epsilon": [[0, first], [end, last]], "target_every": settings.count("target_update_interval"),
                         "double_q": False}
    policy |= {"critic_lr": settings.schedule("learning_rate", steps), "random_steps": settings.count("learning_starts")}
    if algorithm == "SAC":
        entropy = str(settings.get("ent_coef"))
        automatic = entropy.startswith("auto")
        weight = entropy.removeprefix("auto").removeprefix("_") or 1.0
        policy |= {"temperature": float(weight), "tune_temperature": automatic}
        return policy | ({"temperature_lr": settings.schedule("learning_rate", steps)} if automatic else {})
    kind, deviation = settings.get("noise_type"), settings.number("noise_std")
    if kind == "ornstein-uhlenbeck":  # theta 0.15, dt 0.01: docs/algorithms.md
        return policy | {"noise": 0.1 * deviation, "noise_damping": 0.0015}
    return policy | {"noise": deviation if kind else 0.0}


def configuration(given, env, algorithm):
    """(the configuration as nested dictionaries, notes on what has no counterpart) of an entry of a file."""
    notes, settings = [], Settings(given, DEFAULTS[algorithm])
    on_policy = algorithm in ("PPO", "A2C")
    name = ENVIRONMENTS.get(env, f"gym:{env}")
    if env not in ENVIRONMENTS:
        notes.append(f"{env}: is no environment of wdtrain: {name} is that of Gymnasium, in Python (gym:MODULE:{env}, if a module of yours "
                     "registers it)")
    if given.get("policy", "MlpPolicy") != "MlpPolicy":
        notes.append(f"policy {given['policy']}: networks are fully connected here")
    if not on_policy and not isinstance(settings.get("train_freq"), int):
        notes.append(f"train_freq {settings.get('train_freq')}: rollouts have a number of steps, here 1")
        settings = Settings(given | {"train_freq": 1}, DEFAULTS[algorithm])
    envs = settings.count("n_envs")
    batch = envs * settings.count("n_steps" if on_policy else "train_freq")
    steps = -(-settings.count("n_timesteps") // batch) * batch
    wrappers = _wrappers(settings.get("env_wrapper"), name, notes)
    model, more = _model(settings, algorithm, name, notes)
    reads, rewards = _normalization(settings, on_policy, notes)
    policy = {"algorithm": algorithm, "lr": settings.schedule("learning_rate", steps)}
    policy |= {ours: value for theirs, ours in SAME.items() if theirs in DEFAULTS[algorithm] | given
               and (value := settings.get(theirs)) is not None}
    policy |= (_on_policy if on_policy else _replay)(settings, algorithm, steps, batch, notes) | more | rewards
    policy["model"] = model | reads
    notes += [f"{key}: has no counterpart" for key in sorted(settings.left - {"n_timesteps"})]
    trainer = {"num_envs": envs, "train_batch_size": batch, "total_steps": steps}
    return {"name": name} | wrappers | {"trainer": trainer, "policy": {"shared": policy}}, notes


def _wrappers(given, name, notes):
    """env.wrappers of env_wrapper: a name, or a list of names and {name: arguments}."""
    entries = given if isinstance(given, list) else [given] if given else []
    if entries and not name.startswith("gym:"):
        notes.append(f"env_wrapper {entries}: wraps an environment in Python, and {name} is none")
        return {}
    arguments = {name: value for entry in entries for name, value in (entry if isinstance(entry, dict) else {entry: None}).items()}
    notes += [f"env_wrapper {name}: its arguments {value} have no counterpart" for name, value in arguments.items() if value]
    return {"env": {"wrappers": list(arguments)}} if arguments else {}


def run(options):
    path, env = options.zoo, str(options.file)
    algorithm = (options.algorithm or path.stem).upper()
    if algorithm not in DEFAULTS:
        raise RunError(f"{path}: algorithm {algorithm}: must be one of {', '.join(DEFAULTS)}: give --algorithm")
    entries = load_yaml(path)
    with files.parsing(path):
        if env not in entries:
            raise RunError(f"{path}: has no {env}, only {shown(', '.join(map(str, entries)), 5000)}")
        found, notes = configuration(entries[env], env, algorithm)
    give(found, notes, options.out)


def give(configuration, notes, out):
    """Prints the configuration, or writes it to a file; the notes go to stderr."""
    for note in notes:
        print(f"note: {shown(note)}", file=sys.stderr)
    text = need("yaml", "pyyaml").safe_dump(configuration, sort_keys=False, default_flow_style=None, width=110)
    if out is None:
        print(text, end="")
    else:
        files.write(text.encode(), out)
        print(f"{out}: wdtrain --config {out}")


def load_yaml(path):
    """A dictionary of a file. Aliases are followed in `<<: *NAME` alone, one in a section, so that what is read is not longer than the file."""
    yaml = need("yaml", "pyyaml")

    class Loader(yaml.SafeLoader):
        def compose_node(self, parent, index):
            merges = isinstance(index, yaml.ScalarNode) and index.tag == "tag:yaml.org,2002:merge"
            if self.check_event(yaml.AliasEvent) and not (merges and all(key.tag != index.tag for key, _ in parent.value)):
                raise RunError(f"{path}: line {self.peek_event().start_mark.line + 1}: an alias, which is read once in a section, and as <<: *NAME")
            return super().compose_node(parent, index)

    text = files.read(path)
    with files.parsing(path):
        return yaml.load(text, Loader)
