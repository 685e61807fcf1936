"""sb3_test.py: wdtrain.sb3.VecEnv is what Stable-Baselines3 expects of a VecEnv."""

import os
import pathlib
import sys

import numpy
import pytest
import torch

sys.path.insert(0, str(pathlib.Path(os.environ["WD_BUILD_DIR"]) / "python"))

import wdtrain  # noqa: E402
import wdtrain.sb3  # noqa: E402
from stable_baselines3 import PPO  # noqa: E402
from stable_baselines3.common.evaluation import evaluate_policy  # noqa: E402
from stable_baselines3.common.monitor import Monitor  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv  # noqa: E402


def test_it_plays_what_a_vecenv_of_single_environments_plays():
    ours = wdtrain.sb3.VecEnv("cartpole", num_envs=1, seed=4, episode_length=30)
    theirs = DummyVecEnv([lambda: Monitor(wdtrain.make("cartpole", seed=4, episode_length=30))])
    assert numpy.array_equal(ours.reset(), theirs.reset()) and ours.action_space == theirs.action_space
    ends = 0
    for t in range(200):
        one, other = ours.step(numpy.array([t // 2 % 2])), theirs.step(numpy.array([t // 2 % 2]))
        for a, b in zip(one[:3], other[:3], strict=True):
            assert numpy.array_equal(a, b), t
        mine, info = one[3][0], other[3][0]
        if one[2][0]:
            ends += 1
            assert numpy.array_equal(mine.pop("terminal_observation"), info.pop("terminal_observation"))
            assert mine["episode"]["l"] == info["episode"]["l"] and abs(mine["episode"]["r"] - info["episode"]["r"]) < 1e-3
            assert mine["TimeLimit.truncated"] == info["TimeLimit.truncated"]
            assert {k: v for k, v in mine.items() if k != "episode"} == {k: v for k, v in info.items() if k != "episode"}
        else:
            assert mine == {}
    assert ends > 5


def test_what_it_returned_stays():
    env = wdtrain.sb3.VecEnv("cartpole", num_envs=8)
    kept = [env.reset(), *env.step(numpy.zeros(8, int))[:3]]
    copies = [one.copy() for one in kept]
    infos = [env.step(numpy.zeros(8, int))[3] for _ in range(12)]
    assert all(numpy.array_equal(a, b) for a, b in zip(kept, copies, strict=True))
    last = [info["terminal_observation"] for row in infos for info in row if info]
    assert len(last) >= 8 and all(abs(one[2]) > 0.2 for one in last)  # the pole had fallen, and the next episode did not overwrite it


def test_seeds_begin_the_same_episodes():
    env, other = wdtrain.sb3.VecEnv("cartpole", num_envs=4, seed=1), wdtrain.sb3.VecEnv("cartpole", num_envs=4, seed=9)
    first = other.reset()
    env.seed(9)
    assert numpy.array_equal(env.reset(), first)
    assert not numpy.array_equal(env.reset(), first)


def test_calls_by_name():
    env = wdtrain.sb3.VecEnv("cartpole", num_envs=3)
    assert env.get_attr("device", [0, 2]) == ["cpu", "cpu"] and env.render_mode is None
    assert env.env_is_wrapped(Monitor) == [True] * 3 and env.env_is_wrapped(DummyVecEnv, 1) == [False]
    assert not env.has_attr("action_masks")
    for call in (lambda: env.env_method("fly"), lambda: env.set_attr("gravity", 1), lambda: env.env_method("action_masks")):
        with pytest.raises(AttributeError):
            call()


def test_an_environment_with_masks_gives_them(tmp_path, monkeypatch):
    (tmp_path / "masked_game.py").write_text("""
import gymnasium
import numpy as np

class Game(gymnasium.Env):
    observation_space, action_space = gymnasium.spaces.Box(0, 9, (1,)), gymnasium.spaces.Discrete(3)
    def _info(self): return {"action_mask": np.array([1, 0, self.t % 2], np.int8)}
    def reset(self, seed=None, options=None):
        self.t = 0
        return np.zeros(1, np.float32), self._info()
    def step(self, action):
        self.t += 1
        return np.full(1, self.t, np.float32), 1.0, self.t == 5, False, self._info()
""")
    monkeypatch.chdir(tmp_path)
    env = wdtrain.sb3.VecEnv("masked_game:Game", num_envs=2)
    env.reset()
    assert env.has_attr("action_masks") and [row.tolist() for row in env.env_method("action_masks")] == [[True, False, False]] * 2
    env.step(numpy.zeros(2, int))
    assert env.action_masks().tolist() == [[True, False, True]] * 2
    env.close()


def test_what_does_not_fit_is_refused():
    for make, words in ((lambda: wdtrain.sb3.VecEnv("simple_tag", num_envs=2), "4 agents"), (lambda: wdtrain.sb3.VecEnv(wdtrain.make("cartpole", 2)), "same_step"),
                        (lambda: wdtrain.sb3.VecEnv(wdtrain.make("cartpole", 2), seed=3), "made already")):
        with pytest.raises(wdtrain.UsageError, match=words):
            make()
    made = wdtrain.make("cartpole", 2, autoreset_mode="same_step", arrays="numpy", device="cpu")
    assert wdtrain.sb3.VecEnv(made).num_envs == 2


def test_stable_baselines_learns_on_the_batch():
    torch.set_num_threads(1)
    model = PPO("MlpPolicy", wdtrain.sb3.VecEnv("cartpole", num_envs=8), n_steps=32, batch_size=256, gae_lambda=0.8, gamma=0.98, n_epochs=20, learning_rate=1e-3,
                clip_range=0.2, seed=1, device="cpu")
    model.learn(30_000)
    assert model.ep_info_buffer  # returns are logged without a wrapper
    assert evaluate_policy(model, wdtrain.sb3.VecEnv("cartpole", num_envs=16, seed=99), n_eval_episodes=32)[0] > 200
