"""The replicas of an environment as a VecEnv of Stable-Baselines3.

>>> env = wdtrain.sb3.VecEnv("cartpole", num_envs=64, seed=1)
>>> stable_baselines3.PPO("MlpPolicy", env, n_steps=32).learn(100_000)
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from wdtrain import envs
from wdtrain.files import UsageError

try:
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecEnv as Base
except ImportError as error:
    raise ImportError(f"wdtrain.sb3 needs Stable-Baselines3: pip install stable-baselines3 ({error})") from error


class VecEnv(Base):
    """Replicas of an environment with one agent, which are stepped together on the CPU.

    env: the name of an environment, or what make(NAME, num_envs, autoreset_mode="same_step", arrays="numpy") returns.
    The other arguments are those of wdtrain.make(). Where an episode ended, info has terminal_observation, TimeLimit.truncated, what
    the environment reports, and "episode", as SB3's Monitor writes it: returns are logged without a wrapper.
    """

    def __init__(self, env: Any, num_envs: int | None = None, **arguments: Any):
        if isinstance(env, str):
            env = envs.make(env, 1 if num_envs is None else num_envs, **{"device": "cpu", **arguments}, autoreset_mode="same_step", arrays="numpy")
        elif arguments or num_envs not in (None, env.num_envs):
            raise UsageError("sb3.VecEnv: arguments are for an environment's name, and this environment is made already")
        if isinstance(env, envs.MultiAgentEnv):
            raise UsageError(f"{env.game.name} has {env.num_agents} agents, and Stable-Baselines3 trains one: take wdtrain.train()")
        if (env.game.mode, env.game.arrays) != ("same_step", "numpy"):
            raise UsageError("sb3.VecEnv: give a name, or make(NAME, num_envs, autoreset_mode='same_step', arrays='numpy', device='cpu')")
        self.env, self._role, self._game = env, env.role, env.game
        self._returns, self._lengths, self._begin = np.zeros(env.num_envs), np.zeros(env.num_envs, int), time.time()
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)

    def reset(self):
        self.env.reset(seed=self._seeds[0], options=self._options[0] or None)
        self._reset_seeds()
        self._reset_options()
        self._returns[:], self._lengths[:], self.reset_infos = 0, 0, [{} for _ in range(self.num_envs)]
        return self._role.observations[:, 0].copy()

    def step_async(self, actions):
        self._game.put(self._role, actions, self.env._shape)

    def step_wait(self):
        self._game.step()
        reward, ended, infos = self._role.reward[:, 0].copy(), self._game.ended(), [{}] * self.num_envs  # one for all whose episode goes on
        self._returns += reward
        self._lengths += 1
        if (places := np.flatnonzero(ended)).size:
            last, now = self._role.last_observations[places, 0], round(time.time() - self._begin, 6)
            columns = {"r": self._returns, "l": self._lengths, "cut": self._game.truncated & ~self._game.terminated, **self._game.statistics}
            rows = zip(*(value[places].tolist() for value in columns.values()), strict=True)
            for k, seen, (r, n, cut, *numbers) in zip(places.tolist(), last, rows, strict=True):
                infos[k] = {"terminal_observation": seen, "TimeLimit.truncated": cut, "episode": {"r": r, "l": n, "t": now},
                            **dict(zip(self._game.statistics, numbers, strict=True))}
            self._returns[places], self._lengths[places] = 0, 0
        return self._role.observations[:, 0].copy(), reward, ended, infos

    def close(self):
        self.env.close()

    def action_masks(self):
        """[replicas, choices]: what is legal, for MaskablePPO of sb3-contrib."""
        if self._role.action_mask is None:
            raise AttributeError(f"{self._game.name} has no action_masks: all its actions are legal")
        return self._role.action_mask[:, 0].copy()

    def get_attr(self, attr_name, indices=None):
        value = self.action_masks if attr_name == "action_masks" and self.action_masks() is not None else getattr(self.env, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name, value, indices=None):
        raise AttributeError(f"{attr_name} cannot be set: replicas are stepped together; parameters are given to sb3.VecEnv(NAME, ...)")

    def env_method(self, method_name, *method_args, indices=None, **method_kwargs):
        if method_name != "action_masks":
            raise AttributeError(f"replicas are stepped together, and have no method {method_name!r} of their own")
        return list(self.action_masks()[self._get_indices(indices)])

    def env_is_wrapped(self, wrapper_class, indices=None):
        return [wrapper_class is Monitor for _ in self._get_indices(indices)]
