"""convert_test.py: models of other libraries act as they did there when they are converted."""

import json
import os
import pathlib
import pickle
import sys
import zipfile
from types import SimpleNamespace

import gym
import gymnasium
import numpy
import pytest
import safetensors
import safetensors.numpy
import stable_baselines3
import torch
import yaml
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize
from torch import nn
from warp_drive.training.models.fully_connected import FullyConnected

from cli.program import output, wdtrain

ROOT = pathlib.Path(os.environ["WD_SOURCE_DIR"])
sys.path.insert(0, str(ROOT / "python"))

from wdtrain import Run, RunError  # noqa: E402
from wdtrain.convert import convert, main  # noqa: E402
from wdtrain.policy import Policy  # noqa: E402


def perceptron(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs))


class Extractor(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.policy_net, self.value_net = perceptron(inputs, 1)[:-1], perceptron(inputs, 1)[:-1]


class SB3(nn.Module):
    """The modules of stable_baselines3.common.policies.ActorCriticPolicy with an MlpExtractor."""

    def __init__(self, inputs, outputs, continuous):
        super().__init__()
        if continuous:
            self.log_std = nn.Parameter(torch.randn(outputs))
        self.mlp_extractor = Extractor(inputs)
        self.action_net, self.value_net = nn.Linear(64, outputs), nn.Linear(64, 1)

    def forward(self, x):
        return self.action_net(self.mlp_extractor.policy_net(x)), self.value_net(self.mlp_extractor.value_net(x))


class CleanRL(nn.Module):
    """Agent of cleanrl/ppo.py and, if continuous, of cleanrl/ppo_continuous_action.py."""

    def __init__(self, inputs, outputs, continuous):
        super().__init__()
        self.critic = perceptron(inputs, 1)
        if continuous:
            self.actor_mean = perceptron(inputs, outputs)
            self.actor_logstd = nn.Parameter(torch.randn(1, outputs))
        else:
            self.actor = perceptron(inputs, outputs)

    def forward(self, x):
        return (self.actor_mean if hasattr(self, "actor_mean") else self.actor)(x), self.critic(x)


class Sac(nn.Module):
    """The modules of stable_baselines3.sac.policies.SACPolicy."""

    def __init__(self, inputs, components, critics=2):
        super().__init__()
        self.actor, self.critic = nn.Module(), nn.Module()
        self.actor.latent_pi = perceptron(inputs, 1)[:-1]
        self.actor.mu, self.actor.log_std = nn.Linear(64, components), nn.Linear(64, components)
        for k in range(critics):
            self.critic.add_module(f"qf{k}", perceptron(inputs + components, 1))

    def forward(self, x):
        hidden = self.actor.latent_pi(x)
        return self.actor.mu(hidden), self.actor.log_std(hidden)


class Td3(Sac):
    """TD3Policy: the actor is one Sequential, whose tanh has no tensors."""

    def __init__(self, inputs, components, critics=2):
        super().__init__(inputs, components, critics)
        self.actor = nn.Module()
        self.actor.mu = perceptron(inputs, components)

    def forward(self, x):
        return self.actor.mu(x), torch.zeros(len(x), 2) - torch.inf


def lowest(theirs, observation, action):
    return torch.stack([critic(torch.cat([observation, action], 1))[:, 0] for critic in theirs.critic.children()]).amin(0)


@pytest.mark.parametrize("kind, distribution, critics", [(Sac, "state_gaussian", 2), (Td3, "point", 2), (Td3, "point", 1)])
def test_actors_and_critics(kind, distribution, critics):
    theirs = kind(5, 2, critics)
    metadata = {"model": "fully_connected", "activation": "tanh", "observation_size": "5", "distribution": distribution,
                "action_components": "2", "action_low": "-2,0", "action_high": "2,10", "state_size": "0"}
    ours = Policy.from_weights(convert(numpy_state(theirs)), metadata)
    x = torch.randn(100, 5)
    mean, log_std = theirs(x)
    scaled = mean.tanh()
    assert torch.allclose(ours.act(x), scaled * torch.tensor([2.0, 5.0]) + torch.tensor([0.0, 5.0]), atol=1e-5)
    assert torch.allclose(ours(x).value, lowest(theirs, x, scaled), atol=1e-5)
    assert torch.allclose(ours.deviation(x), log_std.clamp(-20, 2).exp() if kind is Sac else torch.zeros(100, 2), atol=1e-5)


def test_values_of_choices():
    theirs = nn.Module()
    theirs.q_net, theirs.q_net_target = nn.Module(), nn.Module()
    theirs.q_net.q_net, theirs.q_net_target.q_net = perceptron(4, 3), perceptron(4, 3)
    metadata = {"model": "fully_connected", "activation": "tanh", "observation_size": "4", "distribution": "greedy",
                "action_heads": "3", "state_size": "0"}
    ours = Policy.from_weights(convert(numpy_state(theirs)), metadata)
    x = torch.randn(100, 4)
    assert torch.allclose(ours(x).output, theirs.q_net.q_net(x), atol=1e-6)


@pytest.mark.parametrize("algorithm, kind", [("SAC", Sac), ("TD3", Td3)])
def test_the_program_goes_on_from_actors_and_critics(tmp_path, algorithm, kind, capsys):
    theirs = kind(3, 1)
    torch.save(theirs.state_dict(), tmp_path / "policy.pth")
    start = tmp_path / "start.safetensors"
    main([str(tmp_path / "policy.pth"), "--activation", "tanh", "--normalize", "none", "--out", str(start)])
    said = capsys.readouterr().out
    assert said == f"{start}: for model: {{fc_dims: [64, 64], activation: tanh, critic_dims: [64, 64], model_ckpt_filepath: {start}}}\n"
    learning = "batch_size: 8, replay_ratio: 1, learning_starts: 0, buffer_size: 400"
    output("--env", "pendulum", "--num_envs", 4, "--train_batch_size", 40, "--total_steps", 80, "--quiet", "--device", "cpu", "--run_dir", tmp_path / "run", "--set",
           f"policy={{shared: {{algorithm: {algorithm}, {learning}, model: {{separate_value: false, activation: tanh, fc_dims: [64, 64], critic_dims: [64, 64], model_ckpt_filepath: {start}}}}}}}")
    first = Run(tmp_path / "run").checkpoints[0].policy()
    x = torch.randn(50, 3)
    assert torch.allclose(first(x).output, theirs(x)[0], atol=1e-6)
    assert torch.allclose(first(x).value, lowest(theirs, x, theirs(x)[0].tanh()), atol=1e-5)


def numpy_state(module):
    return {name: tensor.numpy() for name, tensor in module.state_dict().items()}


@pytest.mark.parametrize("kind", [SB3, CleanRL])
def test_discrete_actions(kind):
    theirs = kind(4, 3, False)
    metadata = {"model": "fully_connected", "activation": "tanh", "observation_size": "4", "distribution": "categorical",
                "action_heads": "3", "state_size": "0"}
    ours = Policy.from_weights(convert(numpy_state(theirs)), metadata)
    x = torch.randn(100, 4)
    logits, value = theirs(x)
    assert torch.allclose(ours(x).output, logits, atol=1e-6) and torch.allclose(ours(x).value, value[:, 0], atol=1e-6)


@pytest.mark.parametrize("kind", [SB3, CleanRL])
def test_continuous_actions_are_in_the_same_units(kind):
    theirs = kind(5, 2, True)
    low, high = [-2.0, 0.0], [2.0, 10.0]
    metadata = {"model": "fully_connected", "activation": "tanh", "observation_size": "5", "distribution": "gaussian",
                "action_components": "2", "action_low": "-2,0", "action_high": "2,10", "state_size": "0"}
    ours = Policy.from_weights(convert(numpy_state(theirs), low, high), metadata)
    x = torch.randn(1000, 5)
    mean, value = theirs(x)
    assert torch.allclose(ours.act(x), mean.clamp(torch.tensor(low), torch.tensor(high)), atol=1e-5)
    assert torch.allclose(ours(x).value, value[:, 0], atol=1e-6)
    log_std = theirs.log_std if kind is SB3 else theirs.actor_logstd[0]
    assert torch.allclose(ours.log_std.exp() * torch.tensor([2.0, 5.0]), log_std.exp(), atol=1e-6)


@pytest.mark.parametrize("zipped", [False, True])
def test_the_program_starts_with_them(tmp_path, zipped, capsys):
    theirs = SB3(4, 2, False)
    torch.save(theirs.state_dict(), tmp_path / "policy.pth")
    file = tmp_path / "policy.pth"
    if zipped:
        file = tmp_path / "model.zip"
        with zipfile.ZipFile(file, "w") as archive:
            archive.write(tmp_path / "policy.pth", "policy.pth")
    start = tmp_path / "start.safetensors"
    main([str(file), "--activation", "tanh", "--normalize", "none", "--out", str(start)])
    said = capsys.readouterr().out
    assert said == f"{start}: for model: {{fc_dims: [64, 64], activation: tanh, separate_value: true, model_ckpt_filepath: {start}}}\n"
    output("--env", "cartpole", "--set", f"policy.shared.model.model_ckpt_filepath={start}", "--total_steps", 2048, "--quiet",
           "--device", "cpu", "--run_dir", tmp_path / "run")
    with pytest.raises(SystemExit, match="exists: name another file"):
        main([str(file), "--activation", "tanh", "--out", str(start)])
    first = Run(tmp_path / "run").checkpoints[0]
    x = torch.randn(50, 4)
    assert torch.allclose(first.policy()(x).output, theirs(x)[0], atol=1e-6)


@pytest.mark.parametrize("state, message", [
    ({"conv.weight": numpy.zeros((2, 2))}, "no model of SB3, CleanRL, rsl_rl or WarpDrive: its tensors are conv.weight"),
    ({k: v for k, v in numpy_state(SB3(4, 2, False)).items() if k != "action_net.bias"}, "no tensor action_net.bias"),
    ({k: v for k, v in numpy_state(Sac(4, 2)).items() if k != "actor.log_std.bias"}, "no tensor actor.log_std.bias"),
    (numpy_state(Sac(4, 2)) | {"actor.log_std": numpy.zeros((64, 2))}, "explores with SB3's gSDE"),
    (numpy_state(CleanRL(4, 2, True)), "give their bounds, --low and --high"),
])
def test_what_cannot_be_converted(state, message):
    with pytest.raises(RunError, match=message):
        convert(state)


# --- What models say of themselves, and what they do ----------------------------------------------------------------

BOX = {"distribution": "gaussian", "action_components": "1", "action_low": "-2", "action_high": "2"}
SQUASHED = BOX | {"distribution": "state_gaussian"}
METADATA = {"PPO": BOX, "A2C": BOX, "SAC": SQUASHED, "TD3": BOX | {"distribution": "point"},
            "DQN": {"distribution": "greedy", "action_heads": "2"}, "choices": {"distribution": "categorical", "action_heads": "2"}}


class Converted:
    """What wdtrain-convert makes of a file, and prints of it."""

    def __init__(self, file, capsys, *options):
        self.out = file.with_suffix(".safetensors")
        capsys.readouterr()
        main([str(file), "--out", str(self.out), *map(str, options)])
        said = capsys.readouterr()
        self.model, self.warning = yaml.safe_load(said.out.split(": for model: ")[1]), said.err
        self.text = said.out
        self.weights = safetensors.numpy.load_file(self.out)
        with safetensors.safe_open(self.out, "numpy") as opened:
            assert opened.metadata() == {"activation": self.model["activation"]}

    def policy(self, inputs, metadata):
        known = {"model": "fully_connected", "activation": self.model["activation"], "observation_size": str(inputs), "state_size": "0"}
        return Policy.from_weights(self.weights, known | metadata)

    def loads(self, algorithm, env):
        """The program reads the file with the model section that was printed."""
        policy = {"shared": {"algorithm": algorithm, "model": self.model}}
        given = wdtrain("--env", env, "--device", "cpu", "--set", f"policy={json.dumps(policy)}", "--print_config")
        assert given.returncode == 0, given.stderr


def settled(model):
    """As after learning: biases are not zero, deviations not one, and actions not all alike."""
    torch.manual_seed(1)
    for name, parameter in model.policy.named_parameters():
        if name in ("log_std", "action_net.weight"):
            nn.init.normal_(parameter, std=0.3)
        elif parameter.ndim == 1:
            nn.init.normal_(parameter, std=0.02)
    return model


def small(algorithm, env, **settings):
    if algorithm in ("DQN", "SAC", "TD3"):
        settings |= {"buffer_size": 100}
    return settled(getattr(stable_baselines3, algorithm)("MlpPolicy", env, seed=1, device="cpu", **settings))


def saved(tmp_path, model):
    model.save(tmp_path / "model.zip")
    return tmp_path / "model.zip"


def require_same_actions(model, policy, seen=lambda x: x):
    """On 10,000 observations: every choice, and actions up to 1e-5. seen: what the library gives its model of them."""
    inputs = model.observation_space.shape[0]
    x = numpy.random.default_rng(1).normal(size=(10_000, inputs)).astype(numpy.float32)
    expected = model.predict(seen(x), deterministic=True)[0].reshape(len(x), -1)
    found = policy.act(x).numpy()
    assert len(numpy.unique(expected)) > 1
    assert numpy.array_equal(found, expected) if policy.heads else numpy.abs(found - expected).max() <= 1e-5


@pytest.mark.parametrize("algorithm, env, settings, model", [
    ("PPO", "CartPole-v1", {}, {"fc_dims": [64, 64], "activation": "tanh", "separate_value": True}),
    ("PPO", "Pendulum-v1", {"policy_kwargs": {"activation_fn": nn.ReLU, "net_arch": [32]}},
     {"fc_dims": [32], "activation": "relu", "separate_value": True}),
    ("PPO", "CartPole-v1", {"policy_kwargs": {"net_arch": []}}, {"fc_dims": [], "activation": "tanh"}),
    ("A2C", "Pendulum-v1", {}, {"fc_dims": [64, 64], "activation": "tanh", "separate_value": True}),
    ("A2C", "Pendulum-v1", {"use_sde": True, "n_steps": 8}, {"fc_dims": [64, 64], "activation": "tanh", "separate_value": True,
                                                             "distribution": "gsde", "noise_every": 8}),
    ("SAC", "Pendulum-v1", {}, {"fc_dims": [256, 256], "activation": "relu", "critic_dims": [256, 256]}),
    ("TD3", "Pendulum-v1", {"policy_kwargs": {"net_arch": {"pi": [32], "qf": [48, 24]}}},
     {"fc_dims": [32], "activation": "relu", "critic_dims": [48, 24]}),
    ("DQN", "CartPole-v1", {}, {"fc_dims": [64, 64], "activation": "relu"}),
])
def test_models_of_sb3_act_as_before(tmp_path, capsys, algorithm, env, settings, model):
    theirs = small(algorithm, env, **settings)
    ours = Converted(saved(tmp_path, theirs), capsys)
    assert ours.model == model | {"model_ckpt_filepath": str(ours.out)}
    assert ours.warning.startswith("warning: if the model was trained with VecNormalize, give")  # it has not learned
    discrete = algorithm == "PPO" and env == "CartPole-v1"
    metadata = METADATA["choices" if discrete else algorithm]
    if "distribution" in model:
        metadata = metadata | {"distribution": "gsde"}
    policy = ours.policy(theirs.observation_space.shape[0], metadata)
    require_same_actions(theirs, policy)
    ours.loads(algorithm, "cartpole" if "CartPole" in env else "pendulum")
    if "distribution" in model:
        x = torch.randn(50, 3)
        assert torch.allclose(2 * policy.deviation(x), theirs.policy.get_distribution(x).distribution.stddev, rtol=1e-4)


@pytest.fixture
def normalized(tmp_path):
    """PPO that learned with VecNormalize, and a file of its statistics, as docs/python.md writes it."""
    vec_normalize = VecNormalize(make_vec_env("Pendulum-v1", 2, seed=1), epsilon=1e-3)
    theirs = small("PPO", vec_normalize, n_steps=64, n_epochs=1)
    theirs.learn(256)
    rms = vec_normalize.obs_rms
    numpy.savez(tmp_path / "norm.npz", mean=rms.mean, var=rms.var, count=rms.count, clip_obs=vec_normalize.clip_obs,
                epsilon=vec_normalize.epsilon)
    return theirs, vec_normalize


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_pickled_statistics(tmp_path, capsys, normalized, protocol):
    theirs, vec_normalize = normalized
    (tmp_path / "vec.pkl").write_bytes(pickle.dumps(vec_normalize, protocol))
    ours = Converted(saved(tmp_path, theirs), capsys, "--normalize", tmp_path / "vec.pkl")
    require_same_actions(theirs, ours.policy(3, BOX), vec_normalize.normalize_obs)
    assert (ours.weights["observation_moments"][:, 0] == vec_normalize.obs_rms.count).all()


def test_pickled_statistics_of_several_observations(tmp_path, capsys):
    parts = {"speed": gymnasium.spaces.Box(-1, 3, (2, 2)), "at": gymnasium.spaces.Box(5, 6, (3,))}
    vec_normalize = VecNormalize(make_vec_env(lambda: Small(gymnasium.spaces.Dict(parts), gymnasium.spaces.Discrete(3)), 2, seed=1))
    theirs = settled(stable_baselines3.PPO("MultiInputPolicy", vec_normalize, n_steps=32, batch_size=32, n_epochs=1, seed=1, device="cpu").learn(64))
    vec_normalize.save(tmp_path / "vec.pkl")
    policy = Converted(saved(tmp_path, theirs), capsys, "--normalize", tmp_path / "vec.pkl").policy(7, {"distribution": "categorical", "action_heads": "3"})
    seen = vec_normalize.observation_space
    plain = [seen.sample() for _ in range(200)]
    rows = numpy.stack([gymnasium.spaces.flatten(seen, one) for one in plain]).astype(numpy.float32)
    expected = [theirs.predict(vec_normalize.normalize_obs(one), deterministic=True)[0] for one in plain]
    assert len(set(map(int, expected))) > 1 and numpy.array_equal(policy.act(torch.tensor(rows))[:, 0].numpy(), numpy.array(expected))


@pytest.mark.parametrize("kind", ["npz", "json"])
def test_statistics_of_observations(tmp_path, capsys, normalized, kind):
    theirs, vec_normalize = normalized
    file = saved(tmp_path, theirs)
    with pytest.raises(SystemExit, match="model.zip: was trained with VecNormalize: give its statistics with --normalize"):
        Converted(file, capsys)
    statistics = dict(numpy.load(tmp_path / "norm.npz"))
    if kind == "json":
        (tmp_path / "norm.json").write_text(json.dumps({name: value.tolist() for name, value in statistics.items()}))
    ours = Converted(file, capsys, "--normalize", tmp_path / f"norm.{kind}")
    assert ours.model["normalize_input"] is True and ours.warning == ""
    require_same_actions(theirs, ours.policy(3, BOX), vec_normalize.normalize_obs)
    ours.loads("PPO", "pendulum")
    assert (ours.weights["observation_moments"][:, 0] == statistics["count"]).all()


@pytest.mark.parametrize("change, message", [
    ({"clip_obs": 5.0}, "clip_obs is 5, and model.normalize_input limits at 10 deviations"),
    ({"mean": numpy.zeros(4)}, "has 4 means and 3 variances for a network that reads 3 numbers"),
    ({"var": numpy.full(3, -1.0)}, "variances must not be negative"),
    ({"ret_rms": 1.0}, "ret_rms: not known"),
    ({"mean": numpy.full(3, numpy.nan)}, "tensor mean has numbers that are NaN"),
    ({"count": None}, "norm.npz: damaged, or not such a file"),
])
def test_statistics_that_do_not_fit(tmp_path, capsys, change, message):
    file = saved(tmp_path, small("PPO", "Pendulum-v1"))
    numpy.savez(tmp_path / "norm.npz", **({"mean": numpy.zeros(3), "var": numpy.ones(3), "count": 100} | change))
    with pytest.raises(SystemExit, match=message):
        Converted(file, capsys, "--normalize", tmp_path / "norm.npz")


def test_a_model_that_learned_without_normalization_needs_no_warning(tmp_path, capsys):
    theirs = small("A2C", "CartPole-v1")
    theirs.learn(10)
    assert Converted(saved(tmp_path, theirs), capsys).warning == ""


class TwoBounds(gymnasium.Env):
    observation_space, action_space = gymnasium.spaces.Box(-1, 1, (3,)), gymnasium.spaces.Box(
        numpy.array([-2, 0.25], numpy.float32), numpy.array([2, 10], numpy.float32))

    def reset(self, **_):
        return numpy.zeros(3, numpy.float32), {}


def test_bounds_are_those_of_the_file(tmp_path, capsys):
    theirs = small("PPO", TwoBounds())
    metadata = {"distribution": "gaussian", "action_components": "2", "action_low": "-2,0.25", "action_high": "2,10"}
    require_same_actions(theirs, Converted(saved(tmp_path, theirs), capsys).policy(3, metadata))


class Flattened(stable_baselines3.common.torch_layers.FlattenExtractor):
    pass


@pytest.mark.parametrize("algorithm, env, settings, message", [
    ("PPO", "CartPole-v1", {"policy_kwargs": {"activation_fn": nn.ELU}}, "the activation is elu, and wdtrain has relu and tanh"),
    ("DQN", "CartPole-v1", {"policy_kwargs": {"activation_fn": nn.LeakyReLU}}, "the activation is leakyrelu"),
    ("PPO", "CartPole-v1", {"policy_kwargs": {"net_arch": {"pi": [64], "vf": [32]}}},
     r"hidden layers of the policy and of the value are \[64\] and \[32\]"),
    ("PPO", "CartPole-v1", {"policy_kwargs": {"net_arch": {"pi": [4], "vf": []}}}, r"are \[4\] and \[\]"),
    ("PPO", "Pendulum-v1", {"use_sde": True, "policy_kwargs": {"squash_output": True}}, "squash_output"),
    ("PPO", "Pendulum-v1", {"use_sde": True, "policy_kwargs": {"use_expln": True}}, "use_expln"),
    ("PPO", "Pendulum-v1", {"policy_kwargs": {"features_extractor_class": Flattened}}, "features_extractor_class .*Flattened"),
    ("SAC", "Pendulum-v1", {"use_sde": True}, "explores with SB3's gSDE"),
])
def test_models_of_sb3_that_wdtrain_lacks(tmp_path, capsys, algorithm, env, settings, message):
    with pytest.raises(SystemExit, match=message):
        Converted(saved(tmp_path, small(algorithm, env, **settings)), capsys)
    assert not (tmp_path / "model.safetensors").exists()


class Small(gymnasium.Env):
    """Random observations, and episodes without an end."""

    def __init__(self, observations, actions):
        self.observation_space, self.action_space = observations, actions

    def reset(self, *, seed=None, options=None):
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 1.0, False, False, {}


@pytest.mark.parametrize("algorithm", ["DQN", "QRDQN", "SAC", "TD3", "DDPG", "TQC"])
def test_models_that_have_learned_from_a_replay_memory(tmp_path, capsys, algorithm):
    """SB3 sets their _last_original_obs without VecNormalize, too."""
    env = "CartPole-v1" if algorithm in ("DQN", "QRDQN") else "Pendulum-v1"
    library = stable_baselines3 if hasattr(stable_baselines3, algorithm) else pytest.importorskip("sb3_contrib")
    theirs = getattr(library, algorithm)("MlpPolicy", env, seed=1, device="cpu", buffer_size=200, learning_starts=32, batch_size=16,
                                         policy_kwargs={"net_arch": [32]}).learn(100)
    ours = Converted(saved(tmp_path, settled(theirs)), capsys)
    assert ours.warning.startswith("warning: if the model was trained with VecNormalize")
    metadata = METADATA.get(algorithm, {"QRDQN": METADATA["DQN"] | {"dueling": "false", "quantiles": "200"}, "TQC": SQUASHED, "DDPG": METADATA["TD3"]}.get(algorithm))
    require_same_actions(theirs, ours.policy(theirs.observation_space.shape[0], metadata))
    ours.loads({"QRDQN": "DQN", "TQC": "SAC"}.get(algorithm, algorithm), "cartpole" if "CartPole" in env else "pendulum")


def test_models_of_several_bits(tmp_path, capsys):
    theirs = small("PPO", Small(gymnasium.spaces.Box(-1, 1, (4,)), gymnasium.spaces.MultiBinary(3)))
    ours = Converted(saved(tmp_path, theirs), capsys)
    policy, x = ours.policy(4, {"distribution": "categorical", "action_heads": "2,2,2"}), torch.randn(1000, 4)
    require_same_actions(theirs, policy)
    logits = policy(x).output.detach().reshape(-1, 3, 2)
    assert torch.allclose(logits.softmax(-1)[..., 1], theirs.policy.get_distribution(x).distribution.probs, atol=1e-6)


@pytest.mark.parametrize("shape", [(8, 8, 3), (3, 8, 8), (64,)])
def test_pictures_that_sb3_scales(tmp_path, capsys, shape):
    theirs = small("PPO", Small(gymnasium.spaces.Box(0, 255, shape, numpy.uint8), gymnasium.spaces.Discrete(2)))
    if len(shape) == 1:  # SB3 does not scale it
        ours = Converted(saved(tmp_path, theirs), capsys).policy(64, METADATA["choices"])
        x = numpy.random.default_rng(1).integers(0, 255, (100, *shape), numpy.uint8)
        assert numpy.array_equal(ours.act(torch.tensor(x).float())[:, 0].numpy(), theirs.predict(x, deterministic=True)[0])
    else:
        with pytest.raises(SystemExit, match="lacks: pictures: SB3 divides them by 255"):
            Converted(saved(tmp_path, theirs), capsys)


def kept(tmp_path, state):
    torch.save(state, tmp_path / "model.pth")
    return tmp_path / "model.pth"


class Tqc(Sac):
    """TQC of sb3-contrib: SAC whose critics have 25 outputs."""

    def __init__(self, inputs, components):
        super().__init__(inputs, components)
        for k in range(2):
            self.critic.add_module(f"qf{k}", nn.Sequential(*perceptron(inputs + components, 1)[:-1], nn.Linear(64, 25)))


def test_quantiles_of_critics(tmp_path, capsys):
    theirs = Tqc(3, 1)
    ours = Converted(kept(tmp_path, theirs.state_dict()), capsys, "--activation", "tanh")
    assert ours.model["quantiles"] == 25
    ours.loads("SAC", "pendulum")
    x = torch.randn(100, 3)
    assert torch.allclose(ours.policy(3, SQUASHED).act(x), 2 * theirs(x)[0].tanh(), atol=1e-5)


def test_quantiles_of_choices(tmp_path, capsys):
    """QR-DQN of sb3-contrib: outputs are [quantile, choice]."""
    net = nn.Sequential(*perceptron(4, 1)[:-1], nn.Linear(64, 10 * 2))
    state = {f"{of}.quantile_net.{name}": value for of in ("quantile_net", "quantile_net_target") for name, value in net.state_dict().items()}
    with pytest.raises(SystemExit, match="number of choices is not in policy.pth"):
        Converted(kept(tmp_path, state), capsys, "--activation", "tanh")
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        archive.write(tmp_path / "model.pth", "policy.pth")
        archive.writestr("data", json.dumps({"policy_class": {"__module__": "sb3_contrib.qrdqn.policies"}, "policy_kwargs": {},
                                             "action_space": {":type:": "<class 'gymnasium.spaces.discrete.Discrete'>", "n": "2"}}))
    ours = Converted(tmp_path / "model.zip", capsys, "--activation", "tanh")
    assert ours.model["quantiles"] == 10
    ours.loads("DQN", "cartpole")
    x = torch.randn(100, 4)
    values = ours.policy(4, METADATA["DQN"] | {"dueling": "false", "quantiles": "10"})(x).output
    assert torch.allclose(values, net(x).reshape(-1, 10, 2).mean(1), atol=1e-5)


def warpdrive(inputs, heads):
    """WarpDrive's own network."""
    inner = SimpleNamespace(observation_space={0: gym.spaces.Box(-1, 1, (inputs,))}, action_space={0: gym.spaces.MultiDiscrete(heads)})
    env = SimpleNamespace(env=inner, n_agents=1, cuda_data_manager=SimpleNamespace(get_shape=lambda name: [1]))
    return FullyConnected(env, {"fc_dims": [32, 32]}, "runner", {"runner": [0]})


def test_state_dicts_of_warpdrive(tmp_path, capsys):
    theirs = warpdrive(8, [3, 4])
    ours = Converted(kept(tmp_path, theirs.state_dict()), capsys)
    assert ours.model == {"fc_dims": [32, 32], "activation": "relu", "model_ckpt_filepath": str(ours.out)}
    assert ours.warning == ""
    x = torch.randn(10_000, 8)
    heads, value = theirs(x)
    policy = ours.policy(8, {"distribution": "categorical", "action_heads": "3,4"})
    assert torch.equal(policy.act(x), torch.stack([head.argmax(-1) for head in heads], -1))
    assert torch.allclose(policy(x).value, value, atol=1e-5)


def test_agents_of_cleanrl_say_whose_activation_it_is(tmp_path, capsys):
    theirs = CleanRL(4, 2, False)
    file = kept(tmp_path, {"model_weights": theirs.state_dict(), "args": {"seed": 1}})
    ours = Converted(file, capsys)
    assert ours.model["activation"] == "tanh" and "# tanh as in the library's scripts; otherwise give --activation" in ours.text
    ours.loads("PPO", "cartpole")
    x = torch.randn(10_000, 4)
    assert torch.equal(ours.policy(4, METADATA["choices"]).act(x)[:, 0], theirs(x)[0].argmax(-1))
    ours.out.unlink()
    assert Converted(file, capsys, "--activation", "relu").model["activation"] == "relu"


class RslRl(CleanRL):
    """rsl_rl.modules.ActorCritic: a deviation, not its logarithm."""

    def __init__(self, inputs, components):
        super().__init__(inputs, components, False)
        self.std = nn.Parameter(torch.rand(components) + 0.1)


def test_models_of_rsl_rl(tmp_path, capsys):
    theirs = RslRl(5, 2)
    optimizer = torch.optim.Adam(theirs.parameters()).state_dict()
    file = kept(tmp_path, {"model_state_dict": theirs.state_dict(), "optimizer_state_dict": optimizer, "iter": 3, "infos": None})
    bounds = ["--low", -1, -4, "--high", 1, 4]
    with pytest.raises(SystemExit, match="give --activation tanh or relu .*rsl_rl has elu"):
        Converted(file, capsys, *bounds)
    ours = Converted(file, capsys, "--activation", "tanh", *bounds)
    metadata = {"distribution": "gaussian", "action_components": "2", "action_low": "-1,-4", "action_high": "1,4"}
    policy, x = ours.policy(5, metadata), torch.randn(100, 5)
    limits = torch.tensor([1.0, 4.0])
    assert torch.allclose(policy.act(x), theirs(x)[0].clamp(-limits, limits), atol=1e-5)
    assert torch.allclose(policy.deviation(x) * limits, theirs.std, atol=1e-6)


def rsl_rl_5(outputs, log=False, normalizer=None, deviations=False):
    """The state dict of rsl_rl.models.MLPModel."""
    state = {f"mlp.{name}": value for name, value in perceptron(5, outputs).state_dict().items()}
    if deviations:
        state["distribution.log_std_param" if log else "distribution.std_param"] = torch.tensor([0.5, 2.0]).log() if log else torch.tensor([0.5, 2.0])
    if normalizer is not None:
        mean, std = normalizer
        state |= {"obs_normalizer._mean": mean[None], "obs_normalizer._var": std[None] ** 2, "obs_normalizer._std": std[None],
                  "obs_normalizer.count": torch.tensor(1000)}
    return state


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("normalized", [False, True])
def test_models_of_rsl_rl_5(tmp_path, capsys, log, normalized):
    normalizer = (torch.randn(5), torch.rand(5) + 0.1) if normalized else None
    actor, critic = rsl_rl_5(2, log, normalizer, deviations=True), rsl_rl_5(1, normalizer=normalizer)
    file = kept(tmp_path, {"actor_state_dict": actor, "critic_state_dict": critic, "optimizer_state_dict": {"state": {}}, "iter": 3, "infos": None})
    ours = Converted(file, capsys, "--activation", "tanh", "--low", -1, -4, "--high", 1, 4)
    assert ours.warning == "" and ours.model.get("normalize_input", False) == normalized
    metadata = {"distribution": "gaussian", "action_components": "2", "action_low": "-1,-4", "action_high": "1,4"}
    policy, x, limits = ours.policy(5, metadata), torch.randn(100, 5), torch.tensor([1.0, 4.0])
    read = ((x - normalizer[0]) / (normalizer[1] + 0.01)).clamp(-10, 10) if normalized else x
    for state, found in ((actor, policy.act(x)), (critic, policy(x).value[:, None])):
        net = perceptron(5, len(found[0]))
        net.load_state_dict({name[4:]: value for name, value in state.items() if name.startswith("mlp.")})
        expected = net(read).clamp(-limits, limits) if state is actor else net(read)
        assert torch.allclose(found, expected, atol=1e-5)
    assert torch.allclose(policy.deviation(x) * limits, torch.tensor([0.5, 2.0]), atol=1e-6)
    if normalized:
        with pytest.raises(SystemExit, match="has statistics of observations itself"):
            Converted(file, capsys, "--activation", "tanh", "--low", -1, -4, "--high", 1, 4, "--normalize", file)
        critic["obs_normalizer._mean"] = critic["obs_normalizer._mean"] + 1
        ours.out.unlink()
        kept(tmp_path, {"actor_state_dict": actor, "critic_state_dict": critic})
        with pytest.raises(SystemExit, match="the normalizers of actor and critic differ"):
            Converted(file, capsys, "--activation", "tanh", "--low", -1, -4, "--high", 1, 4)


def test_models_that_rsl_rl_made(tmp_path, capsys):
    models, tensordict = pytest.importorskip("rsl_rl.models"), pytest.importorskip("tensordict")
    x = torch.randn(100, 3)
    seen, groups = tensordict.TensorDict({"policy": x}, batch_size=[100]), {"actor": ["policy"], "critic": ["policy"]}
    gaussian = {"class_name": "rsl_rl.modules.distribution:GaussianDistribution", "init_std": 0.5}
    actor, critic = (models.MLPModel(seen, groups, who, outputs, [32, 32], "tanh", True, distribution)
                     for who, outputs, distribution in (("actor", 1, gaussian), ("critic", 1, None)))
    for model in (actor, critic):
        model.obs_normalizer.update(3 * x + 1)
    file = kept(tmp_path, {"actor_state_dict": actor.state_dict(), "critic_state_dict": critic.state_dict(), "iter": 3})
    ours = Converted(file, capsys, "--activation", "tanh", "--low", -2, "--high", 2)
    policy = ours.policy(3, BOX)
    assert torch.allclose(policy.act(x), actor(seen).clamp(-2, 2), atol=1e-5)
    assert torch.allclose(policy(x).value, critic(seen)[:, 0], atol=1e-5)
    ours.loads("PPO", "pendulum")


def with_tensors(state, **more):
    return numpy_state(state) | {name.replace("__", "."): numpy.zeros(2) for name in more}


@pytest.mark.parametrize("state, message", [
    (with_tensors(SB3(4, 2, False), lstm_actor__weight_ih_l0=0, lstm_critic__bias=0),
     "wdtrain has no place for lstm_actor.weight_ih_l0, lstm_critic.bias"),
    (with_tensors(SB3(4, 2, False), features_extractor__cnn__0__weight=0), "no place for features_extractor.cnn.0.weight"),
    (with_tensors(SB3(4, 2, False), mlp_extractor__shared_net__0__weight=0), "no place for mlp_extractor.shared_net.0.weight"),
    (with_tensors(CleanRL(4, 2, False), actor_obs_normalizer___mean=0), "no place for actor_obs_normalizer._mean"),
    (with_tensors(CleanRL(4, 2, False), network__0__weight=0), "no place for network.0.weight"),
    (with_tensors(Sac(4, 2), log_alpha=0), "no place for log_alpha"),
    (with_tensors(warpdrive(4, [2]), extra=0), "no place for extra"),
    (with_tensors(SB3(4, 2, False), **{f"t{k}": 0 for k in range(10)}), "no place for t0, t1, t2, t3, t4, t5, t6, t7, 2 more:"),
])
def test_every_tensor_is_used_or_named(state, message):
    with pytest.raises(RunError, match=message):
        convert(state)


def test_two_state_dicts_are_named(tmp_path, capsys):
    state = {"teacher": perceptron(4, 2).state_dict(), "student": perceptron(4, 1).state_dict()}
    with pytest.raises(SystemExit, match="has several state dicts, 'teacher', 'student'"):
        Converted(kept(tmp_path, state), capsys)


def test_bounds_in_the_wrong_order():
    with pytest.raises(RunError, match="must be below"):
        convert(numpy_state(SB3(4, 1, True)), [1.0], [-1.0])


# --- Hyperparameters of rl-baselines3-zoo ---------------------------------------------------------------------------

def translated(tmp_path, capsys, algorithm, env, entry, *options):
    """The configuration that is printed, as text and as dictionaries, and what stderr says."""
    file = tmp_path / f"{algorithm}.yml"
    file.write_text(f"{env}:\n  policy: 'MlpPolicy'\n" + "".join(f"  {line.strip()}\n" for line in entry.split(";")))
    capsys.readouterr()
    main(["--zoo", str(file), env, *options])
    said = capsys.readouterr()
    return said.out, yaml.safe_load(said.out), said.err


def test_an_entry_of_the_zoo(tmp_path, capsys):
    text, _, notes = translated(tmp_path, capsys, "ppo", "CartPole-v1", "n_envs: 8; n_timesteps: !!float 1e5; n_steps: 32; batch_size: 64; "
                                "gae_lambda: 0.8; gamma: 0.98; n_epochs: 20; ent_coef: 0.0; learning_rate: lin_0.001; clip_range: lin_0.2")
    assert notes == ""
    assert text == """\
name: cartpole
trainer: {num_envs: 8, train_batch_size: 256, total_steps: 100096}
policy:
  shared:
    algorithm: PPO
    lr:
    - [0, 0.001]
    - [100096, 0.0]
    gamma: 0.98
    gae_lambda: 0.8
    vf_loss_coeff: 0.5
    max_grad_norm: 0.5
    normalize_advantage: true
    num_epochs: 20
    entropy_coeff: 0.0
    normalize_value: false
    clip_param:
    - [0, 0.2]
    - [100096, 0.0]
    num_minibatches: 4
    model:
      fc_dims: [64, 64]
      separate_value: true
      activation: tanh
      init_method: orthogonal
"""


SMALL_REPLAY = "n_timesteps: 20000; buffer_size: 5000; learning_starts: 500; "


@pytest.mark.parametrize("algorithm, env, entry, policy, model, notes", [
    ("ppo", "CartPole-v1", "n_timesteps: !!float 1e5; clip_range: lin_0.2", {"clip_param": [[0, 0.2], [100352, 0.0]]}, {}, []),
    ("ppo", "Pendulum-v1", "n_envs: 4; n_timesteps: 1e5; n_steps: 1024; use_sde: True; sde_sample_freq: 4; learning_rate: !!float 1e-3; "
     "policy_kwargs: 'dict(log_std_init=-2, ortho_init=False, activation_fn=nn.ReLU, net_arch=dict(pi=[256], vf=[256]))'",
     {"num_minibatches": 64, "lr": 0.001, "clip_param": 0.2, "entropy_coeff": 0.0},
     {"fc_dims": [256], "activation": "relu", "init_method": "default", "distribution": "gsde", "noise_every": 4,
      "initial_log_std": pytest.approx(-2.6931, abs=1e-4)}, []),
    ("ppo", "MountainCarContinuous-v0", "normalize: true; n_timesteps: 20000; n_steps: 8; batch_size: 256; use_sde: True",
     {"num_minibatches": 1, "normalize_reward": True}, {"normalize_input": True, "noise_every": 8}, []),
    ("ppo", "MountainCar-v0", "normalize: \"{'norm_obs': False, 'norm_reward': True}\"; n_timesteps: 4096; frame_stack: 4; n_steps: 100; "
     "env_wrapper: [a.B]; policy_kwargs: 'dict(activation_fn=nn.GELU, net_arch=dict(pi=[8], vf=[4]), share=1)'",
     {"normalize_reward": True}, {"fc_dims": [8]},
     ["batch_size 64: does not divide the 100 transitions", "policy_kwargs.net_arch.vf [4]:", "policy_kwargs.activation_fn gelu:",
      "policy_kwargs.share: has no counterpart", "frame_stack: has no", "env_wrapper ['a.B']: wraps an environment in Python, and mountain_car is none"]),
    ("a2c", "Acrobot-v1", "n_envs: 8; n_timesteps: !!float 5e5; learning_rate: lin_7e-4", {"gae_lambda": 1.0, "lr": [[0, 7e-4], [500000, 0]]},
     {"activation": "tanh"}, ["use_rms_prop: the optimizer here is Adam"]),
    ("dqn", "CartPole-v1", "n_timesteps: !!float 5e4; batch_size: 64; learning_starts: 1000; target_update_interval: 10; train_freq: 256; "
     "gradient_steps: 128; exploration_fraction: 0.16; exploration_final_eps: 0.04; policy_kwargs: 'dict(net_arch=[256, 256])'",
     {"replay_ratio": 32.0, "epsilon": [[0, 1.0], [8028, 0.04]], "target_every": 10, "double_q": False, "tau": 1.0}, {"activation": "relu"}, []),
    ("sac", "Pendulum-v1", SMALL_REPLAY + "ent_coef: 'auto_0.1'; train_freq: 8; gradient_steps: -1; normalize: true",
     {"temperature": 0.1, "tune_temperature": True, "replay_ratio": 256.0, "random_steps": 500}, {"critic_dims": [256, 256]},
     ["normalize (norm_reward): replay"]),
    ("sac", "MountainCarContinuous-v0", SMALL_REPLAY + "ent_coef: 0.1; use_sde: True; train_freq: 32; policy_kwargs: 'dict(log_std_init=-3.67)'",
     {"temperature": 0.1, "tune_temperature": False, "replay_ratio": 8.0}, {"distribution": "gsde", "noise_every": 32},
     ["policy_kwargs.log_std_init: has no"]),
    ("td3", "Pendulum-v1", SMALL_REPLAY + "noise_type: 'normal'; noise_std: 0.1; train_freq: [1, episode]; policy_kwargs: 'dict(n_critics=3)'",
     {"noise": 0.1, "num_critics": 3}, {"fc_dims": [400, 300]}, ["train_freq [1, 'episode']: rollouts have a number of steps, here 1"]),
    ("ddpg", "MountainCarContinuous-v0", SMALL_REPLAY + "noise_type: 'ornstein-uhlenbeck'; noise_std: 0.5",
     {"noise": 0.05, "noise_damping": 0.0015}, {}, []),
])
def test_the_program_takes_entries_of_the_zoo(tmp_path, capsys, algorithm, env, entry, policy, model, notes):
    text, found, said = translated(tmp_path, capsys, algorithm, env, entry)
    (tmp_path / "zoo.yaml").write_text(text)
    given = wdtrain("--config", tmp_path / "zoo.yaml", "--device", "cpu", "--print_config")
    assert given.returncode == 0 and "note" not in given.stderr, given.stderr
    shared = found["policy"]["shared"]
    assert policy.items() <= shared.items() and shared["algorithm"] == algorithm.upper()
    assert {name: shared["model"][name] for name in model} == model
    assert len(said.splitlines()) == len(notes) and all(f"note: {note}" in said for note in notes), said


def test_entries_that_others_are_merged_into(tmp_path, capsys):
    (tmp_path / "ppo.yml").write_text("a: &a\n  n_timesteps: 1000\n  n_epochs: 3\nCartPole-v1:\n  <<: *a\n  n_epochs: 4\n")
    main(["--zoo", str(tmp_path / "ppo.yml"), "CartPole-v1", "--out", str(tmp_path / "zoo.yaml")])
    assert capsys.readouterr().out == f"{tmp_path}/zoo.yaml: wdtrain --config {tmp_path}/zoo.yaml\n"
    assert yaml.safe_load((tmp_path / "zoo.yaml").read_text())["policy"]["shared"]["num_epochs"] == 4
    with pytest.raises(SystemExit, match="zoo.yaml exists: name another file"):
        main(["--zoo", str(tmp_path / "ppo.yml"), "CartPole-v1", "--out", str(tmp_path / "zoo.yaml")])


@pytest.mark.parametrize("entry, wrappers, notes", [
    ("env_wrapper: a.B", ["a.B"], ""),
    ("env_wrapper: [a.B, {c.D: {size: 3}}, {e.F: {}}]", ["a.B", "c.D", "e.F"], "env_wrapper c.D: its arguments {'size': 3} have no counterpart"),
])
def test_wrappers_of_the_zoo(tmp_path, capsys, entry, wrappers, notes):
    _, found, said = translated(tmp_path, capsys, "ppo", "BipedalWalker-v3", "n_timesteps: 1e5; " + entry)
    assert found["env"] == {"wrappers": wrappers} and notes in said and "env_wrapper: has no" not in said


def test_environments_and_algorithms_that_the_zoo_names_otherwise(tmp_path, capsys):
    _, found, said = translated(tmp_path, capsys, "tuned", "BipedalWalker-v3", "n_timesteps: 1e5", "--algorithm", "ppo")
    assert found["name"] == "gym:BipedalWalker-v3" and found["policy"]["shared"]["algorithm"] == "PPO"
    assert said == "note: BipedalWalker-v3: is no environment of wdtrain: gym:BipedalWalker-v3 is that of Gymnasium, in Python " \
        "(gym:MODULE:BipedalWalker-v3, if a module of yours registers it)\n"
    with pytest.raises(SystemExit, match="tuned.yml: algorithm TUNED: must be one of PPO, A2C, DQN, SAC, TD3, DDPG: give --algorithm"):
        main(["--zoo", str(tmp_path / "tuned.yml"), "BipedalWalker-v3"])
    with pytest.raises(SystemExit, match="tuned.yml: has no CartPole-v1, only BipedalWalker-v3"):
        main(["--zoo", str(tmp_path / "tuned.yml"), "CartPole-v1", "--algorithm", "a2c"])
    with pytest.raises(SystemExit, match="the entry has no n_timesteps"):
        translated(tmp_path, capsys, "ppo", "CartPole-v1", "n_envs: 8")


# --- Settings of JaxMARL and EPyMARL ---------------------------------------------------------------------------------

JAX_QMIX = """\
"TOTAL_TIMESTEPS": 2e6
"NUM_ENVS": 8
"NUM_STEPS": 26
"BUFFER_SIZE": 5000
"BUFFER_BATCH_SIZE": 32
"HIDDEN_SIZE": 64
"MIXER_EMBEDDING_DIM": 16
"MIXER_HYPERNET_HIDDEN_DIM": 128
"MIXER_INIT_SCALE": 0.001
"EPS_START": 1.0
"EPS_FINISH": 0.05
"EPS_DECAY": 0.1
"MAX_GRAD_NORM": 25
"TARGET_UPDATE_INTERVAL": 200
"TAU": 1.
"NUM_EPOCHS": 1
"LR": 0.005
"LEARNING_STARTS": 10000
"LR_LINEAR_DECAY": True
"GAMMA": 0.9
"REW_SCALE": 1.
"ENV_NAME": "MPE_simple_spread_v3"
"ALG_NAME": "qmix"
"""
JAX_MAPPO = "LR: 0.002\nNUM_ENVS: 16\nNUM_STEPS: 128\nTOTAL_TIMESTEPS: 2e6\nUPDATE_EPOCHS: 4\nNUM_MINIBATCHES: 4\nGAMMA: 0.99\nGAE_LAMBDA: 0.95\n" \
            "CLIP_EPS: 0.2\nENT_COEF: 0.01\nVF_COEF: 0.5\nMAX_GRAD_NORM: 0.5\nACTIVATION: tanh\nSEED: 30\nNUM_SEEDS: 2\nANNEAL_LR: True\n"
JAX_PQN = "alg: {NUM_ENVS: 32, NUM_STEPS: 26, TOTAL_TIMESTEPS: 2e6, NUM_EPOCHS: 2, NUM_MINIBATCHES: 4, LR: 0.001, LAMBDA: 0.5, EPS_START: 1, " \
          "EPS_FINISH: 0.1, EPS_DECAY: 0.2, HIDDEN_SIZE: 32, NORM_TYPE: layer_norm}\nENV_NAME: MPE_simple_tag_v3\n"
EPY_QMIX = "name: qmix\nenv_args: {key: pz-mpe-simple-speaker-listener-v4, time_limit: 25}\nepsilon_finish: 0.1\nbatch_size: 32\nbuffer_size: 1000\n" \
           "target_update_interval_or_tau: 200\nmixer: qmix\nmixing_embed_dim: 16\nhidden_dim: 128\nuse_rnn: True\nt_max: 2050000\nlearner: q_learner\n"
EPY_MAPPO = "name: mappo\nenv_args: {key: 'pz-mpe-simple-spread-v3', time_limit: 25}\nbatch_size_run: 10\nbatch_size: 10\nbuffer_size: 10\nepochs: 4\n" \
            "use_rnn: False\nq_nstep: 5\nstandardise_rewards: True\nobs_agent_id: True\nt_max: 20050000\n"


@pytest.mark.parametrize("file, text, env, trainer, policy, model, notes", [
    ("ql.yaml", JAX_QMIX, "simple_spread", {"num_envs": 8, "train_batch_size": 208, "total_steps": 1999920},
     {"algorithm": "QMIX", "lr": [[0, 0.005], [1999920, 0]], "epsilon": [[0, 1], [199992, 0.05]], "gamma": 0.9, "max_grad_norm": 25,
      "buffer_size": 130000, "batch_size": 832, "replay_ratio": 4, "learning_starts": 10000, "target_every": 41600, "mixer_dim": 16,
      "hypernet_dims": [128]}, {"fc_dims": [64, 64]}, ["MIXER_INIT_SCALE"]),
    ("mappo_ff.yaml", JAX_MAPPO + "ENV_NAME: MPE_simple_spread_v3", "simple_spread", {"num_envs": 16, "train_batch_size": 2048, "seed": 30},
     {"algorithm": "MAPPO", "vf_loss_coeff": 0.25, "vf_clip_param": 0.2, "num_epochs": 4, "num_minibatches": 4, "gae_lambda": 0.95,
      "lr": [[0, 0.002], [1998848, 0]]}, {"activation": "tanh", "separate_value": True}, ["NUM_SEEDS"]),
    ("ippo.yaml", JAX_MAPPO + "GRU_HIDDEN_DIM: 32\nFC_DIM_SIZE: 16\nENV_NAME: MPE_simple_tag_v3", "simple_tag", {}, {"algorithm": "IPPO"},
     {"type": "gru", "width": 32}, ["model.activation tanh", "FC_DIM_SIZE", "NUM_SEEDS"]),
    ("pqn_vdn_rnn.yaml", JAX_PQN, "simple_tag", {"train_batch_size": 832},
     {"algorithm": "PQN-VDN", "lambda": 0.5, "num_epochs": 2, "num_minibatches": 4, "lr": 0.001}, {"type": "gru", "width": 32}, ["model.layer_norm True"]),
    ("pqn_vdn_ff.yaml", JAX_PQN, "simple_tag", {}, {"algorithm": "PQN-VDN"}, {"fc_dims": [32, 32], "layer_norm": True}, []),
    ("iql.yaml", JAX_QMIX.replace("qmix", "iql"), "simple_spread", {}, {"algorithm": "DQN"}, {},
     ["MIXER_EMBEDDING_DIM", "MIXER_HYPERNET_HIDDEN_DIM", "MIXER_INIT_SCALE"]),
    ("qmix.yaml", EPY_QMIX, "simple_speaker_listener", {"num_envs": 1, "train_batch_size": 25, "total_steps": 2050000},
     {"algorithm": "QMIX", "epsilon": [[0, 1], [50000, 0.1]], "buffer_size": 25000, "batch_size": 800, "replay_ratio": 32, "target_every": 5000,
      "tau": 1, "mixer_dim": 16}, {"fc_dims": [128, 128], "reads": ["observation", "agent_id"]}, ["recurrent networks", "learner"]),
    ("vdn.yaml", EPY_QMIX.replace("qmix", "vdn").replace("_tau: 200", "_tau: 0.01"), "simple_speaker_listener", {},
     {"algorithm": "VDN", "tau": 0.01, "target_every": 25}, {}, ["recurrent networks", "learner", "mixing_embed_dim"]),
    ("mappo.yaml", EPY_MAPPO, "simple_spread", {"num_envs": 10, "train_batch_size": 250},
     {"algorithm": "MAPPO", "num_epochs": 4, "n_step": 5, "normalize_reward": True, "vf_loss_coeff": 1}, {"fc_dims": [64, 64]}, ["buffer_size"]),
])
def test_settings_of_jaxmarl_and_epymarl(tmp_path, capsys, file, text, env, trainer, policy, model, notes):
    (tmp_path / file).write_text(text)
    capsys.readouterr()
    main(["--jaxmarl", str(tmp_path / file), "--out", str(tmp_path / "ours.yaml")])
    said = capsys.readouterr().err
    given = wdtrain("--config", tmp_path / "ours.yaml", "--device", "cpu", "--print_config")
    assert given.returncode == 0 and "warning" not in given.stderr, given.stderr
    found = yaml.safe_load((tmp_path / "ours.yaml").read_text())
    assert found["name"] == env and trainer.items() <= found["trainer"].items()
    for section in found["policy"].values():
        assert policy.items() <= section.items() and model.items() <= section["model"].items()
    assert len(said.splitlines()) == len(notes) and all(f"note: {note}" in said for note in notes), said


def test_settings_of_unknown_algorithms_and_environments(tmp_path, capsys):
    (tmp_path / "x.yaml").write_text(JAX_MAPPO + "ENV_NAME: hanabi")
    with pytest.raises(SystemExit, match="x.yaml: no algorithm that is here: give --algorithm IQL, VDN"):
        main(["--jaxmarl", str(tmp_path / "x.yaml")])
    main(["--jaxmarl", str(tmp_path / "x.yaml"), "--algorithm", "IPPO"])
    said = capsys.readouterr()
    assert yaml.safe_load(said.out)["policy"]["shared"]["algorithm"] == "IPPO" and "note: hanabi: is no environment of wdtrain: name one" in said.err
    (tmp_path / "x.yaml").write_text(JAX_MAPPO.replace("NUM_ENVS: 16\n", ""))
    with pytest.raises(SystemExit, match="the entry has no NUM_ENVS"):
        main(["--jaxmarl", str(tmp_path / "x.yaml"), "--algorithm", "IPPO"])
