"""convert_test.py: networks of SB3 and CleanRL keep their outputs when they are converted."""

import os
import pathlib
import sys
import zipfile

import numpy
import pytest
import torch
from torch import nn

from cli.program import output

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


def test_bounds_in_the_wrong_order():
    with pytest.raises(RunError, match="must be below"):
        convert(numpy_state(SB3(4, 1, True)), [1.0], [-1.0])
