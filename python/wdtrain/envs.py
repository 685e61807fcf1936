"""Environments of wd in Python: they are stepped by the same code as in training, on the CPU or a GPU.

>>> env = wdtrain.make("cartpole", num_envs=1024, seed=1)   # a gymnasium.vector.VectorEnv
>>> observation, info = env.reset()
>>> observation, reward, terminated, truncated, info = env.step(actions)

What a step returns are the buffers that the next step overwrites: clone what you keep.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from wdtrain.files import UsageError
from wdtrain.batch import Batch, native, spaces_of
from wdtrain.single import make_env, make_parallel


def make(name: str, num_envs: int | None = None, *, device: str = "auto", seed: int | None = None, autoreset_mode: Any = "next_step", arrays: str = "torch",
         settings: Sequence[str] = (), **params: Any) -> Any:  # with a union, type checkers would find faults in good programs
    """An environment of wd, by its name (`wdtrain envs` lists them).

    num_envs: replicas that are stepped together. None: one environment, a gymnasium.Env if it has one agent, a
        pettingzoo.ParallelEnv if it has several. Otherwise a gymnasium.vector.VectorEnv, or, with several agents, a MultiAgentEnv.
    device: auto, cpu, cuda or cuda:N.
    seed: replica e plays the episodes of replica e of a training with trainer.seed = seed. None: 1, and without num_envs a drawn one.
    autoreset_mode: what follows the end of an episode: next_step, same_step or disabled, or a gymnasium.vector.AutoresetMode.
    arrays: what observations, rewards and flags are: torch tensors on the device, or numpy arrays, on the CPU only.
    settings: further settings, as for --set: ["env.reset=fixed"].
    params: parameters of the environment, as env.NAME: episode_length=200.

    What it returns can be pickled and copied: each copy is a fresh environment with the same arguments and seed.

    Raises UsageError, a ValueError, if a setting is wrong.
    """
    if not isinstance(name, str):
        raise UsageError(f"make({name!r}): give the name of an environment, a str; to train in what a function makes, call wdtrain.train(FUNCTION)")
    if num_envs is None:
        game = Batch(make, name, 1, "cpu" if device == "auto" else device, secrets.randbelow(2**31) if seed is None else seed, "disabled",
                    "torch" if str(device).startswith("cuda") else "numpy", settings, params)
        return make_env(game) if game.num_agents == 1 else make_parallel(game)
    game = Batch(make, name, num_envs, device, 1 if seed is None else seed, autoreset_mode, arrays, settings, params)
    if game.num_agents > 1:
        return MultiAgentEnv(game)
    from wdtrain.vector import VectorEnv  # needs gymnasium, which others do not

    return VectorEnv(game)


class MultiAgentEnv:
    """Replicas of an environment with several agents: dictionaries by role, of tensors [replicas, agents, ...].

    Actions have a number for each head or component: [E, A, heads], or [E, A] if there is one head.
    """

    def __init__(self, game):
        self.game, self.num_envs, self.device, self.time_limit = game, game.num_envs, game.device, game.time_limit
        self.roles = {role.name: role for role in game.roles}
        self.num_agents = game.num_agents
        self._shapes = {name: tuple(role.action.shape[:2]) if len(role.heads) == 1 else tuple(role.action.shape) for name, role in self.roles.items()}

    def observation_space(self, role):
        return spaces_of(self.roles[role])[0]

    def action_space(self, role):
        return spaces_of(self.roles[role])[1]

    def reset(self, *, seed=None, options=None):
        """Returns observations by role, and infos: `active` by role, and see Batch.info."""
        self.game.reset(seed, options)
        return self._of_roles(lambda role: role.observations), self._info()

    def step(self, actions=None):
        """Actions by role; None: those that were written to env.roles[NAME].action. Returns observations and rewards by role, and by
        replica whether the episode has terminated and was truncated, and infos."""
        if actions is not None:
            if set(actions) != set(self.roles):
                raise native().UsageError(f"{self.game.name}: actions of {', '.join(sorted(actions))}, and the roles are {', '.join(self.roles)}")
            for name, role in self.roles.items():
                self.game.put(role, actions[name], self._shapes[name])
        self.game.step()
        return (self._of_roles(lambda role: role.observations), self._of_roles(lambda role: role.reward), self.game.terminated,
                self.game.truncated, self._info())

    def close(self):
        self.game.close()

    def __reduce__(self):
        return self.game.again()

    def _of_roles(self, what):
        return {name: what(role) for name, role in self.roles.items()}

    def _info(self):
        info = self.game.info(self._of_roles)
        info["active"] = self._of_roles(lambda role: role.active)
        info["agent_terminated"] = self._of_roles(lambda role: role.terminated)
        return info
