"""Environments with one agent as gymnasium.vector.VectorEnv."""

import gymnasium
from gymnasium.vector.utils import batch_space

from wdtrain.batch import spaces_of


class VectorEnv(gymnasium.vector.VectorEnv):
    """Replicas of an environment with one agent. Observations, rewards and flags are the buffers themselves."""

    def __init__(self, game):
        self.game, (self.role,) = game, game.roles
        self.num_envs, self.device = game.num_envs, game.device
        self.single_observation_space, self.single_action_space = spaces_of(self.role)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode[game.mode.upper()], "render_modes": []}
        self.spec = None
        self._shape = (self.num_envs,) if len(self.role.heads) == 1 else (self.num_envs, self.role.action.shape[2])
        self.actions = self.role.action.reshape(self._shape)  # write here and call step() without actions
        self._observation, self._reward = self.role.observations[:, 0], self.role.reward[:, 0]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed if isinstance(seed, int) else None)
        self.game.reset(seed, options)
        return self._observation, self._info()

    def step(self, actions=None):
        if actions is not None and actions is not self.actions:
            self.game.put(self.role, actions, self._shape)
        self.game.step()
        return self._observation, self._reward, self.game.terminated, self.game.truncated, self._info()

    def __reduce__(self):
        return self.game.again()

    def close_extras(self, **kwargs):
        self.game.close()

    def _info(self):
        return self.game.info(lambda of: None if of(self.role) is None else of(self.role)[:, 0])
