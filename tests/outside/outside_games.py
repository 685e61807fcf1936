"""Games for the tests of environments in Python."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import gymnasium
import numpy as np
from gymnasium import spaces


class Echo(gymnasium.Env):
    """Observes the seed of the reset, the step, and the action of the last step."""

    def __init__(self, action_space, length=7, observation="dict"):
        self.action_space, self.length, self.observation = action_space, length, observation
        numbers = spaces.Box(-np.inf, np.inf, (spaces.flatdim(action_space),), np.float64)
        self.observation_space = {
            "dict": spaces.Dict({"step": spaces.Discrete(length + 1), "seed": spaces.Box(-1, 2**31, (2,), np.float32), "action": numbers,
                                 "pair": spaces.MultiDiscrete([2, 3], start=[1, 5]), "bits": spaces.MultiBinary(2)}),
            "box": spaces.Box(-np.inf, np.inf, (2,), np.float32),
        }[observation]

    def observe(self, action):
        seed = [self.first_seed % 65536, self.first_seed // 65536]
        if self.observation == "box":
            return np.array(seed, np.float32)
        numbers = np.zeros(self.observation_space["action"].shape) if action is None else np.ravel(spaces.flatten(self.action_space, action))
        return {"step": self.t, "seed": np.array(seed, np.float32), "action": numbers, "pair": np.array([1 + self.t % 2, 5 + self.t % 3]),
                "bits": np.array([self.t % 2, 1], np.int8)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.first_seed = seed
        self.t = 0
        return self.observe(None), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.t += 1
        return self.observe(action), 10 * self.t, self.t == self.length, False, {}


ACTIONS = {
    "discrete": spaces.Discrete(3, start=5),
    "multi": spaces.MultiDiscrete([[2, 3], [4, 5]]),
    "binary": spaces.MultiBinary(3),
    "box": spaces.Box(np.array([0.0, -3.0], np.float32), np.array([2.0, 1.0], np.float32)),
    "double": spaces.Box(-1, 1, (2, 2), np.float64),
    "unbounded": spaces.Box(-np.inf, np.inf, (2,), np.float32),
}


def echo(actions, **more):
    return Echo(ACTIONS[actions], **more)


class Seeded(gymnasium.ObservationWrapper):
    """Observes the seed of the first reset, too, in two numbers that float32 can hold."""

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = spaces.Box(-np.inf, np.inf, (env.observation_space.shape[0] + 2,), np.float32)

    def reset(self, *, seed=None, options=None):
        self.first_seed = self.first_seed if seed is None else seed
        return super().reset(seed=seed, options=options)

    def observation(self, observation):
        return np.concatenate([observation, [self.first_seed % 65536, self.first_seed // 65536]]).astype(np.float32)


def seeded(name="CartPole-v1", **more):
    return Seeded(gymnasium.make(name, **more))


class Masked(gymnasium.Env):
    """The choices that are legal are step % 3 and 3."""

    action_space = spaces.Discrete(4)

    def __init__(self, where="info"):
        self.where = where
        numbers = spaces.Box(0, 1, (1,), np.float32)
        self.observation_space = spaces.Dict({"observation": numbers, "action_mask": spaces.Box(0, 1, (4,), np.int8)}) if where == "observation" else numbers

    def result(self):
        mask = np.array([self.t % 3 == k or k == 3 for k in range(4)], np.int8)
        number = np.array([self.t / 10], np.float32)
        return ({"observation": number, "action_mask": mask}, {}) if self.where == "observation" else (number, {"action_mask": mask})

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.result()

    def step(self, action):
        legal = action in (self.t % 3, 3)
        self.t += 1
        observation, info = self.result()
        return observation, 1.0 if legal else -100.0, self.t == 10, False, info


class Crowd:
    """A pettingzoo.ParallelEnv: b_0 leaves in step 3; c_0 comes in step 4; in step 6 all are truncated (or terminated)."""

    metadata = {"name": "crowd"}
    possible_agents = ["a_0", "b_0", "a_1", "c_0"]
    render_mode = None

    def __init__(self, end="truncated", early=False):
        self.end, self.early = end, early
        self.spaces = {agent: (spaces.Box(0, 100, (2 if agent[0] == "a" else 3,), np.float32), spaces.Discrete(2 if agent[0] != "c" else 3)) for agent in self.possible_agents}

    def observation_space(self, agent):
        return self.spaces[agent][0]

    def action_space(self, agent):
        return self.spaces[agent][1]

    def observations(self, agents):
        return {agent: np.full(self.spaces[agent][0].shape, 10 * self.t + self.possible_agents.index(agent), np.float32) for agent in agents}

    def reset(self, seed=None, options=None):
        self.t, self.agents = 0, ["a_0", "a_1", "b_0"]
        return self.observations(self.agents), {agent: {} for agent in self.agents}

    def step(self, actions):
        assert set(actions) == set(self.agents), (actions, self.agents)
        played, self.t = list(self.agents), self.t + 1
        over = self.t == 6
        gone = {"b_0"} if self.t == 3 else set(played) if over and self.end == "terminated" else set()
        cut = set(played) - gone if over else {"a_1"} if self.early and self.t == 2 else set()
        self.agents = [agent for agent in played if agent not in gone | cut] + (["c_0"] if self.t == 4 else [])
        seen = played + (["c_0"] if self.t == 4 else [])
        return (self.observations(seen), {agent: float(self.t) for agent in seen}, {agent: agent in gone for agent in seen},
                {agent: agent in cut for agent in seen}, {agent: {} for agent in seen})

    def render(self):
        return None

    def close(self):
        pass


class Failing(gymnasium.Env):
    """Fails in a step, or where else `how` says."""

    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, how, at=20, once=None):
        self.how, self.at, self.once, self.n, self.t = how, at, once, 0, 0
        if how == "make":
            raise OSError("no such license")

    def observe(self):
        return np.full(3 if self.how == "shape" and self.n == self.at else 2, 0.5, np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.observe(), {}

    def step(self, action):
        self.n, self.t = self.n + 1, self.t + 1
        if self.n == self.at and not (self.once and os.path.exists(self.once)):
            if self.once:
                with open(self.once, "w"):
                    pass
            self.fail()
        return self.observe(), 1.0, self.t == 10, False, {}

    def fail(self):
        if self.how == "raise":
            raise ValueError("the cow jumped over the moon")
        if self.how == "exit":
            os._exit(3)
        if self.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "hang":
            time.sleep(1000)
        if self.how == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        if self.how == "surrogate":
            raise ValueError("no file na\udcefve.txt")
        if self.how == "long":
            raise ValueError("x" * (200 << 20))
        if self.how == "textless":
            raise TextlessError


class TextlessError(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def failing(**more):
    return Failing(**more)


class Helped(Failing):
    """Has helpers: a program, a fork, and on demand one that holds a port."""

    def __init__(self, how="no", port=None, **more):
        super().__init__(how, **more)
        self.helpers = [subprocess.Popen(["sleep", "1000"])]
        self.forked = os.fork()
        if self.forked == 0:
            time.sleep(1000)
            os._exit(0)
        if port:
            bind = f"import socket, time; s = socket.socket(); s.bind(('127.0.0.1', {port})); s.listen(); print('bound', flush=True); time.sleep(1000)"
            self.helpers.append(subprocess.Popen([sys.executable, "-c", bind], stdout=subprocess.PIPE))
            if not self.helpers[1].stdout.readline():
                raise RuntimeError(f"port {port} is still in use")

    def close(self):
        for one in self.helpers[1:]:
            one.terminate()
            one.wait()
        if self.how == "no":  # a fork can be ended as any process
            os.kill(self.forked, signal.SIGTERM)
            os.waitpid(self.forked, 0)
        if self.how == "close hangs":
            time.sleep(1000)
        if self.how == "close exits":
            sys.exit(5)
        if self.how == "thread stays":
            threading.Thread(target=time.sleep, args=(1000,)).start()


def helped(**more):
    return Helped(**more)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Terminal(Failing):
    """Reads from the terminal when it is made, and writes to it in every step."""

    def __init__(self):
        super().__init__("no")
        try:
            input()
        except EOFError:
            print("nothing to read", flush=True)

    def step(self, action):
        print("a step", flush=True)
        return super().step(action)


def terminal():
    return Terminal()


class Pays(Failing):
    """Pays `reward` in the second replica of the only process from step 5 on, and 1 otherwise. The first one that steps shows what `info` has."""

    stepped = 0

    def __init__(self, reward):
        super().__init__("no")
        self.reward = {"array": np.array([1.0]), "two": np.array([1.0, 2.0]), "text": "x", "complex": 1 + 2j, "large": 10**400}[reward]
        self.place = None

    def step(self, action):
        if self.place is None:
            self.place = Pays.stepped = Pays.stepped + 1
        observation, reward, *others = super().step(action)
        return observation, self.reward if self.place == 3 and self.n >= 5 else reward, *others


def pays(**more):
    return Pays(**more)


def number():
    return 7


def turns():
    from mpe2 import simple_spread_v3

    return simple_spread_v3.env()


class Spaces(gymnasium.Env):
    def __init__(self, observation, action):
        self.observation_space, self.action_space = observation, action


def text_observations():
    return Spaces(spaces.Text(5), spaces.Discrete(2))


def whole_box():
    return Spaces(spaces.Box(0, 1, (1,)), spaces.Box(0, 2**40, (2,), np.int64))


def dict_actions():
    return Spaces(spaces.Box(0, 1, (1,)), spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Box(0, 1, (1,))}))


class Alphabets(Crowd):
    """Agents with names of which wdtrain takes no letter."""

    possible_agents = ["\u00e4_0", "\u00f6_0", "\u00e4_1"]

    def __init__(self, reward=1.0):
        self.reward = {"list": [1.0, 2.0]}.get(reward, reward)
        self.spaces = {agent: (spaces.Box(0, 100, (2 + (agent[0] == "\u00f6"),), np.float32), spaces.Discrete(2)) for agent in self.possible_agents}

    def reset(self, seed=None, options=None):
        self.t, self.agents = 0, list(self.possible_agents)
        return self.observations(self.agents), {agent: {} for agent in self.agents}

    def step(self, actions):
        played, self.t = self.agents, self.t + 1
        rewards = {agent: self.reward if agent == "\u00e4_1" else 1.0 for agent in played}
        if self.t == 6:
            self.agents = []
        return self.observations(played), rewards, dict.fromkeys(played, False), dict.fromkeys(played, self.t == 6), {agent: {} for agent in played}


def nan_bounds():
    box = spaces.Box(-1, 1, (2,), np.float32)
    box.low = np.array([np.nan, -1], np.float32)
    return Spaces(spaces.Box(0, 1, (1,)), box)


def many_kinds():
    env = Crowd()
    env.possible_agents = [f"kind{chr(97 + k)}" for k in range(9)]
    env.spaces = {agent: (spaces.Box(0, 1, (1,)), spaces.Discrete(2 + k)) for k, agent in enumerate(env.possible_agents)}
    return env
