"""act_test.py: policies take what environments give, and give what they take."""

import os
import pathlib
import sys

import gymnasium
import numpy
import pytest
import torch

sys.path.insert(0, str(pathlib.Path(os.environ["WD_BUILD_DIR"]) / "python"))

import wdtrain  # noqa: E402

SMALL = {"total_steps": 512, "num_envs": 8, "train_batch_size": 256, "device": "cpu", "progress": False, "threads": 1}
spaces = gymnasium.spaces
ACTIONS = {"one": spaces.Discrete(3, start=5), "several": spaces.MultiDiscrete([[2, 3]]), "numbers": spaces.Box(-2, 2, (2, 1)), "bits": spaces.MultiBinary(2)}


class Game(gymnasium.Env):
    """Observations of all kinds; with one action, those of an odd step are illegal but for one."""

    def __init__(self, kind="one", masked=False):
        self.action_space, self.masked, self.t = ACTIONS[kind], masked, 0
        mask = {"action_mask": spaces.MultiBinary(3)} if masked else {}
        self.observation_space = spaces.Dict({"z": spaces.Discrete(3, start=1), "a": spaces.Box(-1, 1, (2, 2)), **mask,
                                              "t": spaces.Tuple((spaces.MultiDiscrete([2, 3]), spaces.Box(0, 1, (1,))))})

    def seen(self):
        mask = {"action_mask": numpy.array([0, 0, 1] if self.t % 2 else [1, 1, 1], numpy.int8)} if self.masked else {}
        return {"z": 1 + self.t % 3, "t": (numpy.array([self.t % 2, self.t % 3]), numpy.full(1, 0.5, numpy.float32)), "a": numpy.eye(2, dtype=numpy.float32), **mask}

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return self.seen(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.t += 1
        return self.seen(), 1.0, self.t == 10, False, {}


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("kind, masked", [("one", True), ("several", False), ("numbers", False), ("bits", False)])
def test_a_policy_plays_the_game_that_it_learned(kind, masked):
    run = wdtrain.train(Game, env_params={"kwargs": {"kind": kind, "masked": masked}}, **SMALL)
    env = Game(kind, masked)
    policy = run.policy(env=env)
    observation, _ = env.reset()
    parts = {"z": [1, 0, 0], "a": [1, 0, 0, 1], "t": [1, 0, 1, 0, 0, 0.5]}  # in the order of the space, which gymnasium may sort
    assert wdtrain.flatten(env.observation_space, observation).tolist() == [n for key in env.observation_space.spaces if key in parts for n in parts[key]]
    for _ in range(9):
        rows = torch.as_tensor(wdtrain.flatten(env.observation_space, observation))
        legal = observation.get("action_mask")
        action, tensor = policy.act(observation), policy.act(rows, mask=legal)
        assert type(action) is (int if kind == "one" else numpy.ndarray)
        assert numpy.allclose(numpy.ravel(action) - (5 if kind == "one" else 0), tensor.numpy())
        if masked and env.t % 2:
            assert action == 7
        observation, *_ = env.step(action)
    with pytest.raises(wdtrain.UsageError, match=r"run.policy\(env=env\)"):
        run.policy().act(observation)
    with pytest.raises(wdtrain.UsageError, match=r"\[3\], and must be \[..., 13\]"):
        run.policy().act(numpy.zeros(3), mask=numpy.ones(3))
    with pytest.raises(wdtrain.UsageError, match="have 4 numbers, and the policy reads 13"):
        run.policy(env=gymnasium.make("CartPole-v1"))


def test_actions_of_one_observation_and_of_many():
    from stable_baselines3.common.evaluation import evaluate_policy

    run = wdtrain.train("cartpole", **SMALL)
    policy, env = run.policy(), wdtrain.make("cartpole")
    observation, _ = env.reset()
    action = policy.act(observation)
    assert type(action) is int and type(policy.act(observation.tolist())) is int
    env.step(action)
    assert policy.act(torch.as_tensor(observation)).shape == (1,) and policy.act(observation[None]).shape == (1, 1)
    assert policy.predict(observation[None].repeat(3, 0), deterministic=True)[0].tolist() == [action] * 3
    assert evaluate_policy(policy, wdtrain.make("cartpole"), n_eval_episodes=2, warn=False)[0] > 5
    discrete = wdtrain.train("gym:FrozenLake-v1", **SMALL).policy(env=gymnasium.make("FrozenLake-v1"))
    assert discrete.act(3) in range(4)


def test_an_agent_of_several():
    from mpe2 import simple_spread_v3

    env = simple_spread_v3.parallel_env()
    run = wdtrain.train("pettingzoo:mpe2.simple_spread_v3", **SMALL)
    observations, _ = env.reset(seed=1)
    with pytest.raises(wdtrain.UsageError, match="name one of the environment's agents: agent_0, agent_1"):
        run.policy(env=env)
    policy = run.policy(env=env, agent="agent_1")
    assert type(policy.act(observations["agent_1"])) is int
    env.close()


def test_an_agent_names_its_policy():
    from mpe2 import simple_speaker_listener_v4

    env = simple_speaker_listener_v4.parallel_env()
    run = wdtrain.train("pettingzoo:mpe2.simple_speaker_listener_v4", **SMALL)
    observations, _ = env.reset(seed=1)
    assert run.policies == ["listener", "speaker"]
    with pytest.raises(wdtrain.UsageError, match=r"env is the class \w+: give an environment, \w+\(\)"):
        run.policy("speaker", env=type(env))
    assert run.policy(env=env, agent="speaker_0").act(observations["speaker_0"]) in range(3)
    env.close()


def test_actions_of_a_batch_go_into_step():
    run = wdtrain.train("cartpole", total_steps=1024, num_envs=8, train_batch_size=512, device="cpu", progress=False)
    policy, env = run.policy("shared"), wdtrain.make("cartpole", num_envs=8)
    observation, _ = env.reset()
    for _ in range(3):
        action = policy.act(observation)
        assert tuple(action.shape) == (8, 1)
        observation, *_ = env.step(action)
