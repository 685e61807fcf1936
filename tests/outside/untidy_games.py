"""Games for untidy_test.py. Episodes have ten steps if nothing else is said."""

import os
import sys

import gymnasium
import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

PAIR = spaces.Box(-1, 1, (2,), np.float32)


class One(gymnasium.Env):
    def __init__(self, action=None):
        self.observation_space, self.action_space = PAIR, action or spaces.Discrete(2)

    def see(self):
        return np.array([self.t / 10, 0], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.see(), {}

    def step(self, action):
        assert self.action_space.contains(action), f"{action!r} is not in {self.action_space}"
        self.t += 1
        return self.see(), 1.0, self.t == 10, False, {}


def arguments(**given):
    print("KWARGS", repr(given), file=sys.stderr, flush=True)
    return One()


def strict(box):
    return One({
        "half": spaces.Box(0, np.inf, (2,), np.float32),
        "double": spaces.Box(-0.1, 0.1, (2,), np.float64),
        "huge": spaces.Box(-1e30, 1e30, (1,), np.float32),
        "parts": spaces.Dict({"move": spaces.Tuple([spaces.Discrete(3, start=1), spaces.MultiBinary(2)]), "whole": spaces.Box(-2, 2, (2,), np.int64)}),
    }[box])


class Masks(One):
    def action_masks(self):
        return np.array([self.t % 2 == 0, True, False])

    def step(self, action):
        assert self.action_masks()[action], action
        return super().step(action)


def masks():
    return Masks(spaces.Discrete(3))


class Plain(gymnasium.Wrapper):
    pass


class Longer(gymnasium.ObservationWrapper):
    def __init__(self, env):
        super().__init__(env)
        self.observation_space = spaces.Box(-1, 1, (3,), np.float32)

    def observation(self, observation):
        return np.append(observation, np.float32(0))


class Counts(One):
    def reset(self, **given):
        self.ones = 0
        return super().reset(**given)

    def step(self, action):
        self.ones += int(action)
        observation, _, over, _, _ = super().step(action)
        return observation, float(action), over, False, {"ones": self.ones, "text": "x", "nested": {"a": 1}} | ({"is_success": self.ones > 5} if over else {})


def counts():
    return Counts()


class Trio(ParallelEnv):
    """a_0, a_1 and a_2 are paid 1 a step. stay: all: `agents` names them behind the end; one: a_2 ends in step 4 and stays; gone: it leaves."""

    metadata = {"name": "trio"}
    possible_agents = ["a_0", "a_1", "a_2"]

    def __init__(self, stay=None, state=None, silent=False):
        self.stay, self.kind, self.silent, self.agents = stay, state, silent, []
        if state:
            self.state_space = spaces.Box(-1, 1, (200_000 if state == "large" else 6,), np.float32)

    def observation_space(self, agent):
        return PAIR

    def action_space(self, agent):
        return spaces.Discrete(3)

    def all(self, value):
        return dict.fromkeys(self.agents, value)

    def reset(self, seed=None, options=None):
        self.t, self.agents, self.ended = 0, list(self.possible_agents), set()
        return self.all(np.zeros(2, np.float32)), self.all(None if self.silent else {})

    def step(self, actions):
        self.t += 1
        over = self.t >= 10
        ends = self.all(over)
        if self.t >= 4 and self.stay in ("one", "gone") and "a_2" in ends:
            ends["a_2"] = True
        result = self.all(np.zeros(2, np.float32)), self.all(1.0), ends, self.all(False), {agent: None if self.silent and agent == "a_1" else {"step": self.t} for agent in self.agents}
        if over and self.stay != "all":
            self.agents = ["a_2"] if self.stay == "one" else []
        elif self.stay == "gone":
            self.agents = [agent for agent in self.agents if not ends[agent]]
        return result

    def state(self):
        if self.kind == "never" or not self.agents:
            raise RuntimeError("there is no state")
        return np.zeros(self.state_space.shape, np.float32)


def trio(**given):
    return Trio(**given)


class Unfit(One):
    made = 0

    def __init__(self, how):
        super().__init__()
        Unfit.made += 1
        self.how = how
        other = Unfit.made > 2 or (how == "by_process" and not first_process())
        if how in ("other_action", "by_process") and other:
            self.action_space = spaces.Discrete(5)
        if how == "other_observation" and other:
            self.observation_space = spaces.Box(-1, 1, (3,), np.float32)
        if how == "huge":
            self.action_space = spaces.Discrete(2**32 + 2)
        if how == "huge_observation":
            self.observation_space = spaces.Discrete(2**40)
        if how == "limit":
            self.spec = gymnasium.envs.registration.EnvSpec(id="X-v0", entry_point="x", max_episode_steps=2**40)

    def reset(self, **given):
        observation, info = super().reset(**given)
        self.steps = getattr(self, "steps", 0)
        return observation if self.how == "only_observation" else (observation, info)

    def step(self, action):
        observation, reward, over, cut, info = super().step(action)
        self.steps += 1
        if self.how == "four":
            return observation, reward, over, info
        if self.how == "texts" and self.steps > 15:
            observation = np.array(["0.5", "0.5"])
        return observation, "1" if self.how == "text_reward" else reward, over, cut, info


def first_process():
    try:
        os.mkdir(f"process_{os.getppid()}")
        Unfit.first = True
    except FileExistsError:
        pass
    return getattr(Unfit, "first", False)


class UnfitTrio(Trio):
    def __init__(self, how):
        super().__init__()
        self.how = how
        if how == "twice":
            self.possible_agents = ["a_0", "a_1", "a_0"]

    def reset(self, **given):
        result = super().reset(**given)
        if self.how == "unknown":
            self.agents.append("stranger")
            result[0]["stranger"] = np.zeros(2, np.float32)
        return result

    def step(self, actions):
        observations, rewards, ends, cuts, infos = super().step(actions)
        if self.how == "later" and self.t == 3:
            self.agents.append("stranger")
        if self.how == "rllib":
            ends = {"__all__": self.t >= 10}
        if self.how == "endless_reward":
            rewards["a_1"] = 10**400
        if self.how == "no_reward":
            del rewards["a_1"]
        return observations, rewards, ends, cuts, infos


SAME = []


def unfit(how):
    if how == "one_object":
        SAME.append(One())
        return SAME[0]
    return (UnfitTrio if how in ("twice", "unknown", "later", "rllib", "no_reward", "endless_reward") else Unfit)(how)


class InLists(gymnasium.Env):
    """Two agents in EPyMARL's form; agent k is paid k + 0.2 a step."""

    def __init__(self):
        self.observation_space, self.action_space = spaces.Tuple([PAIR, PAIR]), spaces.Tuple([spaces.Discrete(3), spaces.Discrete(3)])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return tuple(np.zeros(2, np.float32) for _ in range(2)), {}

    def step(self, actions):
        assert self.action_space.contains(actions), actions
        self.t += 1
        return tuple(np.zeros(2, np.float32) for _ in range(2)), [0.2, 1.2], self.t == 10, False, {}


def listed():
    return InLists()


class Mixed(ParallelEnv):
    """Two drones and a truck, with other observations and choices. Raises if one makes a choice that it does not have."""

    metadata = {"name": "mixed", "is_parallelizable": True}
    possible_agents = ["drone_0", "drone_1", "truck_0"]
    render_mode = None

    def __init__(self):
        self.agents = []
        self.spaces = {agent: (spaces.Box(-1, 1, (3 if agent[0] == "d" else 5,), np.float32), spaces.Discrete(4 if agent[0] == "d" else 2)) for agent in self.possible_agents}
        self.state_space = spaces.Box(-10, 10, (4,), np.float32)

    def observation_space(self, agent):
        return self.spaces[agent][0]

    def action_space(self, agent):
        return self.spaces[agent][1]

    def see(self):
        return {agent: self.random.uniform(-1, 1, self.spaces[agent][0].shape).astype(np.float32) for agent in self.agents}

    def reset(self, seed=None, options=None):
        if seed is not None:
            self.random = np.random.default_rng(seed)
        self.t, self.agents = 0, list(self.possible_agents)
        return self.see(), {agent: {} for agent in self.agents}

    def step(self, actions):
        for agent, action in actions.items():
            assert self.spaces[agent][1].contains(action), (agent, action)
        self.t += 1
        over = self.t == 10
        result = self.see(), {agent: float(actions[agent]) for agent in self.agents}, *({agent: flag for agent in self.agents} for flag in (over, False)), {agent: {} for agent in self.agents}
        if over:
            self.agents = []
        return result

    def state(self):
        return np.zeros(4, np.float32)

    def render(self):
        return None

    def close(self):
        pass


def mixed():
    return Mixed()
