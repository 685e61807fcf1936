"""One environment: gymnasium.Env if it has one agent, pettingzoo.ParallelEnv if it has several. Numpy arrays of its own in every step."""

import numpy as np

from wdtrain.batch import converted, native, spaces_of


def copied(value):
    return value.cpu().numpy() if hasattr(value, "cpu") else np.array(value)


def make_env(game):
    import gymnasium

    class Env(gymnasium.Env):
        """An environment with one agent."""

        metadata = {"render_modes": []}

        def __init__(self):
            self.game, (self.role,) = game, game.roles
            self.observation_space, self.action_space = spaces_of(self.role)
            self.time_limit = game.time_limit

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.game.reset(seed)
            return copied(self.role.observations[0, 0]), self._info()

        def step(self, action):
            if bool(game.terminated[0]) or bool(game.truncated[0]):
                raise native().UsageError("the episode has ended: call reset()")
            self.game.put(self.role, np.asarray(action).reshape(1, 1, -1), tuple(self.role.action.shape))
            self.game.step()
            return (copied(self.role.observations[0, 0]), float(self.role.reward[0, 0]), bool(game.terminated[0]), bool(game.truncated[0]),
                    self._info())

        def close(self):
            game.close()

        def __reduce__(self):
            return game.again(alone=True)

        def _info(self):
            info = {key: copied(value[0]) for key, value in game.streams.items()}
            if self.role.action_mask is not None:
                info["action_mask"] = copied(self.role.action_mask[0, 0]).astype(np.int8)
            if bool(game.ended()[0]):
                info |= {key: float(value[0]) for key, value in game.statistics.items()}
            return info

    return Env()


def make_parallel(game):
    from pettingzoo import ParallelEnv

    class Parallel(ParallelEnv):
        """An environment with several agents, named ROLE_NUMBER. Legal actions are in infos[agent]["action_mask"]."""

        metadata = {"name": game.name, "render_modes": [], "is_parallelizable": True}

        def __init__(self):
            self.game, self.render_mode = game, None
            self._place = {f"{role.name}_{i}": (role, i) for role in game.roles for i in range(role.count)}
            self.possible_agents, self.agents = list(self._place), []
            spaces = {role.name: spaces_of(role) for role in game.roles}
            self.observation_spaces = {agent: spaces[role.name][0] for agent, (role, _) in self._place.items()}
            self.action_spaces = {agent: spaces[role.name][1] for agent, (role, _) in self._place.items()}

        def observation_space(self, agent):
            return self.observation_spaces[agent]

        def action_space(self, agent):
            return self.action_spaces[agent]

        def reset(self, seed=None, options=None):
            self.game.reset(seed)
            self.agents = list(self.possible_agents)
            return self._observations(), self._infos()

        def step(self, actions):
            if not self.agents:
                raise native().UsageError("the episode has ended: call reset()")
            if missing := [agent for agent in self.agents if agent not in actions]:
                raise native().UsageError(f"{game.name}: no action of {', '.join(missing)}")
            if strange := [str(agent) for agent in actions if agent not in self._place]:
                raise native().UsageError(f"{game.name}: there is no agent {', '.join(strange)}, but {', '.join(self._place)}")
            for role in game.roles:
                all_actions = copied(role.action[0]).astype(np.int64 if role.heads else np.float64)
                for i in range(role.count):
                    if (agent := f"{role.name}_{i}") in self.agents:
                        all_actions[i] = converted(game.name, role, actions[agent]).reshape(-1)
                self.game.put(role, all_actions[None], tuple(role.action.shape))
            self.game.step()
            terminated, truncated = bool(game.terminated[0]), bool(game.truncated[0])
            rewards = {agent: float(role.reward[0, i]) for agent, role, i in self._present()}
            terminations = {agent: terminated or not bool(role.active[0, i]) for agent, role, i in self._present()}
            truncations = dict.fromkeys(self.agents, truncated)
            observations, infos = self._observations(), self._infos()
            if terminated or truncated:
                for info in infos.values():
                    info |= {key: float(value[0]) for key, value in game.statistics.items()}
            self.agents = [] if terminated or truncated else [agent for agent in self.agents if not terminations[agent]]
            return observations, rewards, terminations, truncations, infos

        def state(self):
            """What the environment's streams of replicas say, one behind the other."""
            if not game.streams:
                raise NotImplementedError(f"{game.name} has no stream of the whole game")
            return np.concatenate([copied(value[0]).reshape(-1) for value in game.streams.values()])

        def close(self):
            game.close()

        def __reduce__(self):
            return game.again(alone=True)

        def _present(self):
            return [(agent, *self._place[agent]) for agent in self.agents]

        def _observations(self):
            return {agent: copied(role.observations[0, i]) for agent, role, i in self._present()}

        def _infos(self):
            return {agent: {} if role.action_mask is None else {"action_mask": copied(role.action_mask[0, i]).astype(np.int8)}
                    for agent, role, i in self._present()}

    return Parallel()
