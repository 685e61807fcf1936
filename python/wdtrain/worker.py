"""A process that makes and steps environments for wdtrain (src/outside/python_process.cpp starts it, and needs no more than this file).

Requests come as JSON through a socket; steps through memory that both processes share. Numbers are in the byte order of the machine.
"""

import contextlib
import ctypes
import faulthandler
import importlib.util
import itertools
import json
import math
import mmap
import operator
import os
import re
import signal
import socket
import struct
import sys
import time
import traceback

try:
    import numpy as np
except ImportError:
    np = None  # make() says so, with a remedy

REQUEST, END = -1, -2  # rooms
POSTED, ROOM, FAILED, DONE = 0, 4, 8, 64  # offsets in the memory that announces work: PythonProcess::Control
NOTHING, STEP, RESET, SEEDED_RESET = range(4)  # what a step does with a replica
WAIT_MILLISECONDS = 1000
MOST_ROLES = 8
STOPS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
LONGEST_TEXT = 20_000  # of an exception
MOST_NUMBERS = 1 << 24  # of an observation, choices of an action
MOST_STATISTICS = 16  # wd::kMaxStatistics
FEW_STEPS, MOST_STEPS, PLAY_SECONDS = 20, 1000, 5.0  # of the play that finds statistics: always; at most; beyond FEW_STEPS
SHAPE = operator.attrgetter("shape")


class RefusedError(Exception):
    """The environment cannot be trained in as it is: the text says why, and what to do."""


# --- spaces ---------------------------------------------------------------------------------------------------------------------------


def parts_of(space, path=(), name=""):
    """The numbers of an observation: a list of (name, path to it, kind, size, shape). Dictionaries are in the order of their space."""
    from gymnasium import spaces

    if isinstance(space, spaces.Dict):
        return [part for key, inner in space.spaces.items() for part in parts_of(inner, (*path, key), f"{name}.{key}" if name else str(key))]
    if isinstance(space, spaces.Tuple):
        return [part for k, inner in enumerate(space.spaces) for part in parts_of(inner, (*path, k), f"{name}.{k}" if name else str(k))]
    name = name or "observation"
    if isinstance(space, spaces.Box | spaces.MultiBinary):
        return [(name, path, "numbers", math.prod(space.shape), space.shape)]
    if isinstance(space, spaces.Discrete):
        return [(name, path, ("choice", int(space.start)), int(space.n), ())]
    if isinstance(space, spaces.MultiDiscrete):
        return [(name, path, ("choices", np.asarray(space.nvec).ravel(), np.asarray(getattr(space, "start", 0)).ravel()), int(np.sum(space.nvec)), space.shape)]
    raise RefusedError(
        f"the observation {name!r} is a {type(space).__name__}, and can be Box, Discrete, MultiDiscrete, MultiBinary, or a Dict or Tuple of these: "
        "convert it with a wrapper"
    )


class Observer:
    """Writes observations of one space to rows of float32."""

    def __init__(self, space):
        from gymnasium import spaces

        # PettingZoo's convention: the mask is beside the observation.
        self.has_mask = isinstance(space, spaces.Dict) and "action_mask" in space.spaces
        if self.has_mask:
            space = spaces.Dict({key: inner for key, inner in space.spaces.items() if key != "action_mask"})
        self.parts = parts_of(space)
        self.size = sum(part[3] for part in self.parts)
        if not 0 < self.size <= MOST_NUMBERS:
            raise RefusedError("an observation has no numbers" if self.size == 0 else f"an observation has {self.size:,} numbers, and may have {MOST_NUMBERS:,}")
        self.plain = len(self.parts) == 1 and not self.parts[0][1] and self.parts[0][2] == "numbers" and len(self.parts[0][4]) == 1
        self.shape = self.parts[0][4]
        self.write = self.write_row if self.plain else self.write_parts

    def write_row(self, observation, row):
        if type(observation) is not np.ndarray or observation.shape != self.shape or observation.dtype.kind != "f":
            observation = self.array(observation, "observation", self.shape)
        row[:] = observation

    def write_parts(self, observation, row):
        at = 0
        for name, path, kind, size, shape in self.parts:
            value = observation
            try:
                for key in path:
                    value = value[key]
            except (KeyError, IndexError, TypeError) as error:
                raise ValueError(f"the observation has no part {name!r}: {error!r}") from error
            if kind == "numbers":
                row[at : at + size] = self.array(value, name, shape).ravel()
            elif kind[0] == "choice":
                row[at : at + size] = 0
                row[at + self.index(value, kind[1], size, name)] = 1
            else:
                row[at : at + size] = 0
                begin = at
                for k, one in enumerate(self.array(value, name, shape).ravel()):
                    row[begin + self.index(one, kind[2][k] if len(kind[2]) > 1 else kind[2][0], kind[1][k], name)] = 1
                    begin += kind[1][k]
            at += size

    @staticmethod
    def array(value, name, shape):
        value = np.asarray(value)
        if value.shape != shape:
            raise ValueError(f"the observation {name!r} has the shape {value.shape}, and the space says {shape}")
        if value.dtype.kind not in "biuf":
            raise ValueError(f"the observation {name!r} is an array of {value.dtype}, and must be one of numbers")
        return value

    @staticmethod
    def index(value, start, size, name):
        index = int(value) - int(start)
        if not 0 <= index < size:
            raise ValueError(f"the observation {name!r} is {value}, which its space does not hold")
        return index


class Actor:
    """Reads actions of one space from words: [..., width], of one agent or of many."""

    def __init__(self, space):
        from gymnasium import spaces

        self.heads, self.bounds = [], []
        self.read = self.reader(space, "action")
        if self.heads and self.bounds:
            raise RefusedError("the action has choices and numbers at once, which is not supported: make choices of the numbers, or numbers of the choices")
        self.width = len(self.heads or self.bounds)
        if not self.width:
            raise RefusedError("an action has no numbers")
        self.choices = sum(self.heads)
        if self.choices > MOST_NUMBERS:
            raise RefusedError(f"an action has {self.choices:,} choices, and may have {MOST_NUMBERS:,}")
        self.plain = not isinstance(space, spaces.Dict | spaces.Tuple)

    def reader(self, space, name):
        """A function that makes an action of words, as the space samples it: env.step() may ask for types. Adds heads or bounds."""
        from gymnasium import spaces

        if isinstance(space, spaces.Dict):
            parts = {key: self.reader(inner, f"{name}.{key}") for key, inner in space.spaces.items()}
            return lambda words: {key: read(words) for key, read in parts.items()}
        if isinstance(space, spaces.Tuple):
            several = [self.reader(inner, f"{name}.{k}") for k, inner in enumerate(space.spaces)]
            return lambda words: tuple(read(words) for read in several)
        begin, start = len(self.heads) + len(self.bounds), getattr(space, "start", 0)
        shape, dtype = getattr(space, "shape", None), getattr(space, "dtype", None)
        if isinstance(space, spaces.Discrete):
            self.heads.append(int(space.n))
            return lambda words: words[..., begin].astype(np.int64) + int(start)
        if isinstance(space, spaces.Box) and np.issubdtype(dtype, np.floating):
            low, high = space.low, space.high
            if np.isnan([low, high]).any():
                raise RefusedError(f"the {name} has the bounds {low.tolist()} and {high.tolist()}: give numbers, or infinity where there is no bound")
            self.bounds += [[None if math.isinf(a) else a, None if math.isinf(b) else b] for a, b in zip(np.ravel(low).tolist(), np.ravel(high).tolist(), strict=True)]
            end = len(self.bounds)
            # Bounds of float64 are no numbers of float32: what is at them must be in the space.
            return lambda words: np.minimum(np.maximum(words[..., begin:end].view(np.float32).astype(dtype).reshape(words.shape[:-1] + shape), low), high)
        if isinstance(space, spaces.MultiDiscrete):
            self.heads += np.ravel(space.nvec).tolist()
        elif isinstance(space, spaces.MultiBinary):
            self.heads += [2] * math.prod(shape)
        elif isinstance(space, spaces.Box):
            low, high = np.ravel(space.low).tolist(), np.ravel(space.high).tolist()
            self.heads += [int(b) - int(a) + 1 for a, b in zip(low, high, strict=True)]
            if max(self.heads, default=0) > MOST_NUMBERS:
                raise RefusedError(f"the {name} is a Box of {dtype} with {max(self.heads):,} choices: give it smaller bounds, or make it a Box of floats")
            start = space.low
        else:
            raise RefusedError(
                f"the {name} is a {type(space).__name__}, and can be Discrete, MultiDiscrete, MultiBinary, Box, or a Dict or Tuple of these: convert it with a wrapper"
            )
        end, start = len(self.heads), np.asarray(start, np.int64)
        return lambda words: (words[..., begin:end].reshape(words.shape[:-1] + shape) + start).astype(dtype)

    def draw(self, mask, random):
        """Words of a random legal action: integers, or the bits of float32."""
        if self.bounds:
            bounds = [(-1.0 if low is None else low, 1.0 if high is None else high) for low, high in self.bounds]
            return np.array([random.uniform(min(low, high), max(low, high)) for low, high in bounds], np.float32).view(np.int32)
        words, at = np.zeros(self.width, np.int32), 0
        for k, choices in enumerate(self.heads):
            legal = np.arange(choices) if mask is None else np.flatnonzero(mask[at : at + choices])
            words[k] = random.choice(legal) if len(legal) else 0
            at += choices
        return words

    def read_mask(self, mask, row):
        """A mask by Gymnasium's and PettingZoo's conventions: an array, or for several heads a tuple of arrays."""
        if mask is None:
            row[:] = 1
            return
        if isinstance(mask, dict):
            mask = tuple(mask.values())
        if isinstance(mask, tuple | list) and len(self.heads) > 1:
            mask = np.concatenate([np.ravel(one) for one in mask])
        mask = np.ravel(np.asarray(mask))
        if mask.shape != (self.choices,):
            raise ValueError(f"an action_mask has {mask.size} numbers, and the action has {self.choices} choices")
        row[:] = mask != 0


# --- environments ---------------------------------------------------------------------------------------------------------------------


def maker(name, kwargs):
    """A function that makes the environment of this name; its arguments go to the function of the user."""
    kind, _, rest = name.partition(":")
    gymnasium = need("gymnasium")
    # A module that is named here is the working folder's, if it is there; others are looked up there last, so that none hides what gymnasium imports.
    if "" not in sys.path:
        sys.path.insert(len(sys.path) if kind in ("gym", "pettingzoo", "pickle") else 0, "")
    if kind == "gym":
        # What passive checks find, Observer finds too.
        return lambda **more: gymnasium.make(rest, disable_env_checker=True, **{**kwargs, **more})
    if kind == "pettingzoo":
        module = imported(rest, f"pettingzoo.{rest}")
        if not hasattr(module, "parallel_env"):
            raise RefusedError(f"the module {module.__name__} has no parallel_env: environments with turns need pettingzoo.utils.conversions.aec_to_parallel")
        return lambda **more: module.parallel_env(**{**kwargs, **more})
    if kind == "pickle":
        import pickle

        try:
            with open(rest, "rb") as file:
                function = pickle.load(file)  # noqa: S301: it is the user's function: code like any other
        except OSError as error:
            raise RefusedError(f"{error}: wdtrain.train(FUNCTION) writes it: work in the folder in which the run was begun") from error
        return lambda **more: function(**{**kwargs, **more})
    function = imported(kind)
    for part in rest.split("."):
        if not hasattr(function, part):
            raise RefusedError(f"the module {kind} ({getattr(function, '__file__', None)}) has no {rest!r}")
        function = getattr(function, part)
    if not callable(function):
        raise RefusedError(f"{name} is a {type(function).__name__}, and must be a function that returns an environment")
    return lambda **more: function(**{**kwargs, **more})


def need(module):
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise RefusedError(
            f"{error}: install it for {sys.executable} (pip install {module}), or name another Python with env.python or WDTRAIN_PYTHON"
        ) from error


def imported(*names):
    """The first of these modules that exists."""
    for name in names:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            missing = error
            if error.name is None or not (name == error.name or name.startswith(error.name + ".")):
                raise  # the module exists, and lacks another one
    raise RefusedError(f"{missing}, in {sys.executable} (names are looked up in the working folder, too): install it, or name another Python with env.python")


def make(request, pictures=False):
    """The environment that a request of wdtrain describes."""
    need("numpy")
    Env = need("gymnasium").Env
    name, kwargs = request["environment"], json.loads(request["kwargs"] or "{}")
    function = maker(name, kwargs)
    if pictures and "render_mode" not in kwargs:
        try:
            env = function(render_mode="rgb_array")
        except TypeError:  # it has no such argument: picture() says so if it shows nothing
            env = function()
    else:
        env = function()
    for wrapper in request["wrappers"]:
        module, _, attribute = wrapper.rpartition(".")
        function = getattr(imported(module), attribute, None) if module else None
        if not callable(function):
            raise RefusedError(f"env.wrappers: {wrapper!r} is not found: give MODULE.CLASS, as gymnasium.wrappers.FlattenObservation")
        env = function(env)
    if isinstance(env, Env) and not is_listed(env):
        if request["one_role"]:
            raise RefusedError("env.one_role is for environments with several agents, and this one has one")
        return Single(env)
    env = Listed(env) if isinstance(env, Env) else env
    if hasattr(env, "possible_agents") and hasattr(env, "observation_space") and hasattr(env, "step") and not hasattr(env, "agent_iter"):
        return Several(env, request["one_role"])
    if hasattr(env, "agent_iter"):
        raise RefusedError("it is an AECEnv, whose agents take turns: convert it with pettingzoo.utils.conversions.aec_to_parallel")
    raise RefusedError(f"{name} gives a {type(env).__name__}, and must give a gymnasium.Env or a pettingzoo.ParallelEnv")


def name_of(text):
    """A name that wdtrain takes: letters, digits, _ . and -."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", str(text))[:100] or "_"


def different(names):
    """The names, of which those that stand there already get a number."""
    found = []
    for name in names:
        found.append(next(one for k in itertools.count(1) if (one := name if k == 1 else f"{name}_{k}") not in found))
    return found


def number(reward):
    """A reward that numpy does not take: an array with one number counts as one, as for gymnasium."""
    try:
        if isinstance(reward, str | bytes):
            raise TypeError
        return float(np.asarray(reward).item())
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"the reward is {reward!r:.200}, of type {type(reward).__name__}, and must be a number: return float(...)") from error


def is_listed(env):
    """Whether it has several agents in EPyMARL's form: Tuple spaces, and rewards in a list."""
    from gymnasium.spaces import Tuple

    if not (isinstance(env.action_space, Tuple) and isinstance(env.observation_space, Tuple)) or len(env.action_space) != len(env.observation_space):
        return False
    env.reset(seed=0)
    return np.shape(env.step(env.action_space.sample())[1]) == (len(env.action_space),)


class Listed:
    """An environment in EPyMARL's form, as a pettingzoo.ParallelEnv."""

    def __init__(self, env):
        self.env, self.agents, self.possible_agents = env, [], [f"agent_{k}" for k in range(len(env.action_space))]
        self.spec, self.render, self.close = env.spec, env.render, env.close

    @property
    def unwrapped(self):
        return self.env.unwrapped

    def observation_space(self, agent):
        return self.env.observation_space[self.possible_agents.index(agent)]

    def action_space(self, agent):
        return self.env.action_space[self.possible_agents.index(agent)]

    def by_agent(self, values):
        return dict(zip(self.possible_agents, values, strict=True))

    def reset(self, seed=None):
        observations, info = self.env.reset(seed=seed)
        self.agents = list(self.possible_agents)
        return self.by_agent(observations), self.by_agent([info] * len(self.agents))

    def step(self, actions):
        observations, rewards, terminated, truncated, info = self.env.step(tuple(actions[agent] for agent in self.possible_agents))
        ends = [bool(np.all(flag)) for flag in (terminated, truncated)]  # one for all agents, or one for each: the game ends with the last
        everyone, self.agents = self.agents, [] if any(ends) else self.agents
        return self.by_agent(observations), self.by_agent(rewards), *(dict.fromkeys(everyone, end) for end in ends), self.by_agent([info] * len(everyone))


class PaddedObserver:
    """Of an agent in env.one_role: zeros up to `size`, and which agent it is, as supersuit.pad_observations_v0 and agent_indicator_v0 write them."""

    def __init__(self, inner, size, agents, index):
        self.inner, self.has_mask, self.size, self.place = inner, inner.has_mask, size + agents, size + index
        self.parts = [("observation", (), "numbers", size, ()), ("agent_id", (), "numbers", agents, ())]

    def write(self, observation, row):
        row[:] = 0
        self.inner.write(observation, row[: self.inner.size])
        row[self.place] = 1


class PaddedActor:
    """Of an agent in env.one_role: the heads or bounds of all; choices that the agent does not have are masked, and components are not read."""

    draw = Actor.draw

    def __init__(self, inner, heads, bounds):
        self.inner, self.heads, self.bounds, self.width, self.choices = inner, heads, bounds, len(heads or bounds), sum(heads)

    def read(self, words):
        return self.inner.read(words[..., : self.inner.width])

    def read_mask(self, mask, row):
        own, at, begin = np.empty(self.inner.choices, np.uint8), 0, 0
        self.inner.read_mask(mask, own)
        row[:] = 0
        for choices, mine in itertools.zip_longest(self.heads, self.inner.heads):
            row[at : at + (mine or 1)] = own[begin : begin + mine] if mine else 1
            at, begin = at + choices, begin + (mine or 0)


def padded(observers, actors):
    """The observers and actors of all agents, with the same sizes."""
    if len({bool(one.heads) for one in actors}) > 1:
        raise RefusedError("env.one_role: some agents have choices, and others numbers: one policy cannot act for both")
    size, n = max(one.size for one in observers), len(observers)
    heads = [max(some) for some in itertools.zip_longest(*(one.heads for one in actors), fillvalue=1)]
    bounds = []
    for some in itertools.zip_longest(*(one.bounds for one in actors)):
        lows, highs = zip(*filter(None, some), strict=True)
        bounds.append([None if None in lows else min(lows), None if None in highs else max(highs)])
    return [PaddedObserver(one, size, n, k) for k, one in enumerate(observers)], [PaddedActor(one, heads, bounds) for one in actors]


def mask_method(env):
    """sb3-contrib's action_masks() of an environment, which wrappers may hide; None: it has none."""
    while env is not None:
        if callable(method := getattr(env, "action_masks", None)):
            return method
        env = getattr(env, "env", None)
    return None


class Made:
    """An environment of either kind. roles: [(name, [(agent, observer, actor)])]; the agent of a gymnasium.Env is None."""

    mask_in_info, mask_method = False, None

    def game(self):
        """What plays, without wrappers."""
        return getattr(self.env, "unwrapped", self.env)

    def all_agents(self):
        return {agent: kinds for _, members in self.roles for agent, *kinds in members}

    def mask(self, observer, observation, info):
        """The action_mask of an agent, as the environment gives it; None: there is none."""
        if observer.has_mask:
            return observation["action_mask"]
        return self.mask_method() if self.mask_method else info.get("action_mask")


class Single(Made):
    """A gymnasium.Env."""

    def __init__(self, env):
        self.env = env
        observer, actor = Observer(env.observation_space), Actor(env.action_space)
        self.roles = [("agent", [(None, observer, actor)])]
        self.mask_method = mask_method(env) if actor.heads and not observer.has_mask else None
        self.state_size, self.limit = 0, env.spec and env.spec.max_episode_steps


class Several(Made):
    """A pettingzoo.ParallelEnv. one_role: all agents in one, by padded observations and actions."""

    def __init__(self, env, one_role=False):
        self.env, agents = env, list(env.possible_agents)
        if not agents:
            raise RefusedError("possible_agents is empty: it must name all agents that there may be")
        if len(set(agents)) < len(agents):
            raise RefusedError(f"possible_agents names an agent twice: {agents}")
        forms, members = {}, {}  # members: of each role, by (stem, spaces)
        for agent in agents:
            spaces = env.observation_space(agent), env.action_space(agent)
            stem = re.sub(r"_?\d+$", "", str(agent)) or "agent"
            key = next((key for key, (known, *_) in forms.items() if key[0] == stem and known == spaces), (stem, len(forms)))
            if key not in forms:
                forms[key] = (spaces, Observer(spaces[0]), Actor(spaces[1]))
            members.setdefault(key, []).append(agent)
        if one_role:
            kinds = {agent: forms[key][1:] for key, some in members.items() for agent in some}
            observers, actors = zip(*(kinds[agent] for agent in agents), strict=True)
            self.roles = [("agent", list(zip(agents, *padded(observers, actors), strict=True)))]
        else:
            stems = [stem for stem, _ in forms]
            # Agents with one stem and different spaces are roles of their own.
            names = [key[0] if stems.count(key[0]) == 1 else f"{key[0]}_of_{members[key][0]}" for key in forms]
            names = different(map(name_of, names))
            self.roles = [(name, [(agent, *forms[key][1:]) for agent in members[key]]) for name, key in zip(names, forms, strict=True)]
        if len(self.roles) > MOST_ROLES:
            raise RefusedError(
                f"its agents have {len(self.roles)} different kinds, and at most {MOST_ROLES} are possible: set env.one_role=true, "
                "or give agents names that differ only in a number at the end"
            )
        space = getattr(env, "state_space", None)
        self.state_size = math.prod(space.shape) if type(space).__name__ == "Box" else 0
        self.limit = getattr(getattr(env, "spec", None), "max_episode_steps", None)


def form_of(env):
    """What wdtrain must know of an environment, and what all replicas must have alike."""
    roles = []
    for (name, _), (count, observer, actor, choices) in zip(env.roles, kinds_of(env), strict=True):
        if observer.has_mask and not actor.heads:
            raise RefusedError("the observation has an action_mask, and the action has no choices")
        role = {"name": name, "count": count, "observation": [[name_of(part[0]), part[3]] for part in observer.parts], "names": [], "mask": choices > 0}
        roles.append(role | ({"heads": actor.heads} if actor.heads else {"bounds": actor.bounds}))
    return {"roles": roles, "state": env.state_size}


# --- rooms ----------------------------------------------------------------------------------------------------------------------------


# The arrays of a room by name: their types, and whether they have several numbers for each replica.
ARRAYS = {"deeds": ("u1", False), "seeds": ("i8", False), "actions": ("i4", True), "observations": ("f4", True), "rewards": ("f4", True),
          "in_game": ("u1", True), "masks": ("u1", True), "states": ("f4", True),
          "statistics": ("f4", True), "terminated": ("u1", False), "truncated": ("u1", False)}


def kinds_of(env):
    """Of each role: number of agents, observer, actor, and number of choices that have masks. In one role, every agent has the same sizes."""
    roles = [(len(members), *members[0][1:]) for _, members in env.roles]
    masked = env.mask_in_info or env.mask_method is not None
    return [(count, observer, actor, actor.choices if actor.heads and (masked or observer.has_mask or isinstance(actor, PaddedActor)) else 0)
            for count, observer, actor in roles]


def widths_of(env, statistics=()):
    """Numbers of each replica in the arrays that have several."""
    agents, observations, actions, masks = (sum(count * width for count, width in pairs) for pairs in zip(
        *(((count, 1), (count, observer.size), (count, actor.width), (count, mask)) for count, observer, actor, mask in kinds_of(env)), strict=True))
    return {"actions": actions, "observations": observations, "rewards": agents, "in_game": agents, "masks": masks, "states": env.state_size,
            "statistics": len(statistics)}


class Arrays:
    """The memory of a room: numbers of n replicas."""

    def __init__(self, memory, offsets, n, widths):
        for name, (dtype, several) in ARRAYS.items():
            shape = (n, widths[name]) if several else (n,)
            setattr(self, name, np.frombuffer(memory, dtype, math.prod(shape), offsets[name]).reshape(shape))


def room_of(envs, first, arrays, statistics=()):
    """`first`: global id of the first replica. `statistics`: names in `info`. The first environment must know whether it has masks in `info`."""
    return (SingleRoom if isinstance(envs[0], Single) else SeveralRoom)(envs, first, arrays, statistics)


def is_statistic(value):
    return isinstance(value, int | float | np.number | np.bool_) or (isinstance(value, np.ndarray) and value.shape == () and value.dtype.kind in "biuf")


class Room:
    """Replicas of an environment."""

    where = who = None  # the replica that is stepped, and its agent

    def __init__(self, envs, first, arrays, statistics):
        self.made, self.envs, self.first, self.arrays, self.statistics = envs, [one.env for one in envs], first, arrays, statistics

    def close(self):
        for env in self.envs:
            with contextlib.suppress(Exception):
                env.close()


class SingleRoom(Room):
    """Replicas of a gymnasium.Env."""

    def __init__(self, envs, first, arrays, statistics):
        super().__init__(envs, first, arrays, statistics)
        ((_, self.observer, self.actor, choices),) = kinds_of(envs[0])
        self.masked = choices > 0
        self.flat = arrays.observations.reshape(-1)
        self.steps = [env.step for env in self.envs]
        arrays.in_game[:] = 1

    def step(self):
        arrays, steps = self.arrays, self.steps
        actions, deeds = self.read_actions(), arrays.deeds.tolist()
        masked, statistics = self.masked, self.statistics
        arrays.terminated[:] = 0
        arrays.truncated[:] = 0
        observations, rewards = [None] * len(deeds), [0.0] * len(deeds)
        k = None
        try:
            for k, deed in enumerate(deeds):
                if deed == STEP:
                    observations[k], rewards[k], terminated, truncated, info = steps[k](actions[k])
                    if terminated:
                        arrays.terminated[k] = 1
                    elif truncated:
                        arrays.truncated[k] = 1
                    for i, name in enumerate(statistics):
                        value = info.get(name)
                        arrays.statistics[k, i] = value if is_statistic(value) else math.nan
                elif deed == NOTHING:
                    continue
                else:
                    observations[k], info = self.envs[k].reset(seed=int(arrays.seeds[k])) if deed == SEEDED_RESET else self.envs[k].reset()
                if masked:
                    self.actor.read_mask(self.made[k].mask(self.observer, observations[k], info), arrays.masks[k])
            if not self.write_at_once(observations):
                for k, observation in enumerate(observations):
                    if deeds[k] != NOTHING:
                        self.observer.write(observation, arrays.observations[k])
            try:
                if str in map(type, rewards):
                    raise TypeError
                arrays.rewards[:, 0] = rewards
            except (TypeError, ValueError, OverflowError):
                for k, reward in enumerate(rewards):
                    arrays.rewards[k, 0] = number(reward)
        except BaseException:
            self.where = k
            raise

    def write_at_once(self, observations):
        """Writes the rows of all replicas with one call, a fifth of the time of one each. Returns False if they are not all plain arrays."""
        if not self.observer.plain:
            return False
        if set(map(type, observations)) != {np.ndarray} or set(map(SHAPE, observations)) != {self.observer.shape}:
            return False
        try:
            np.concatenate(observations, out=self.flat, casting="same_kind")
        except TypeError:  # no numbers
            return False
        return True

    def read_actions(self):
        read = self.actor.read
        return list(read(self.arrays.actions)) if self.actor.plain else [read(words) for words in self.arrays.actions]


class SeveralRoom(Room):
    """Replicas of a pettingzoo.ParallelEnv."""

    def __init__(self, envs, first, arrays, statistics):
        super().__init__(envs, first, arrays, statistics)
        self.state_shape = getattr(getattr(self.envs[0], "state_space", None), "shape", None)
        self.agents = []  # (agent, observer, actor, slices), in the order of wdtrain
        observation = action = mask = 0
        for (_, members), (*_, choices) in zip(envs[0].roles, kinds_of(envs[0]), strict=True):
            for agent, observer, actor in members:
                self.agents.append((agent, observer, actor, slice(observation, observation + observer.size), slice(action, action + actor.width), slice(mask, mask + choices)))
                observation, action, mask = observation + observer.size, action + actor.width, mask + choices
        self.known = set(envs[0].all_agents())
        self.live, self.gone = [set() for _ in envs], [set() for _ in envs]  # gone: ended, and still in `agents`
        self.infos = [{} for _ in envs]  # the last one of each agent of the episode
        self.told = False

    def step(self):
        for k, deed in enumerate(self.arrays.deeds.tolist()):
            self.where, self.who = k, None
            if deed == STEP:
                self.step_one(k)
            elif deed != NOTHING:
                self.reset_one(k, int(self.arrays.seeds[k]) if deed == SEEDED_RESET else None)

    def present(self, env):
        present = set(env.agents)
        if strange := present - self.known:
            raise ValueError(f"agent {min(map(str, strange))!r} is in `agents`, and not in possible_agents: name it there")
        return present

    def reset_one(self, k, seed):
        arrays, env = self.arrays, self.envs[k]
        observations, infos = env.reset(seed=seed)
        arrays.terminated[k] = arrays.truncated[k] = 0
        arrays.observations[k] = 0
        arrays.in_game[k] = 0
        self.live[k], self.gone[k], self.infos[k] = self.present(env), set(), {}
        if not self.live[k]:
            raise ValueError("after reset(), `agents` is empty")
        self.write(k, observations, infos, self.live[k], {})

    def step_one(self, k):
        arrays, env, live, gone = self.arrays, self.envs[k], self.live[k], self.gone[k]
        words = arrays.actions[k].copy()
        actions = {agent: actor.read(words[at]) for agent, _, actor, _, at, _ in self.agents if agent in live or agent in gone}
        observations, rewards, terminations, truncations, infos = env.step(actions)
        for name, values in (("terminations", terminations), ("truncations", truncations), ("rewards", rewards)):
            if "__all__" in values:
                raise ValueError(f"{name} have '__all__', which is RLlib's form: give every agent its own entry, and take those that have ended out of `agents`")
            if missing := live - values.keys():
                raise ValueError(f"{name} lack {min(map(str, missing))!r}: give every agent that plays its entry")
        present = self.present(env)
        ended = {agent for agent in live if terminations[agent]}
        cut = {agent for agent in live if truncations[agent]} - ended
        now = present - ended - cut - gone
        over = not now
        if cut and not over and not self.told:
            self.told = True
            why = "it counts as terminated, because only a whole episode can be truncated"
            print(f"wdtrain: agent {min(map(str, cut))} was truncated while others go on: {why}", file=sys.stderr, flush=True)
        arrays.terminated[k] = over and not cut
        arrays.truncated[k] = over and bool(cut)
        # Of an episode that is cut off, those who still played are in the game: what they see last is worth what the network expects of it.
        now = cut if over else now
        arrays.rewards[k] = 0
        arrays.in_game[k] = 0
        self.write(k, observations, infos, now | {agent for agent in live if agent in observations}, rewards, now)
        self.live[k] = set() if over else now
        self.gone[k] = present & (ended | cut | gone)
        for agent in live if self.statistics else ():
            self.infos[k][agent] = infos.get(agent) or {}
        for i, name in enumerate(self.statistics):
            values = [value for info in self.infos[k].values() if is_statistic(value := info.get(name))]
            arrays.statistics[k, i] = np.mean(values) if values else math.nan

    def write(self, k, observations, infos, seen, rewards, in_game=None):
        arrays = self.arrays
        for i, (agent, observer, actor, columns, _, choices) in enumerate(self.agents):
            self.who = agent
            if agent in rewards:
                try:
                    if isinstance(rewards[agent], str | bytes):
                        raise TypeError
                    arrays.rewards[k, i] = rewards[agent]
                except (TypeError, ValueError, OverflowError):
                    arrays.rewards[k, i] = number(rewards[agent])
            playing = agent in (seen if in_game is None else in_game)
            arrays.in_game[k, i] = playing
            if agent in seen:
                if agent not in observations:
                    raise ValueError(f"agent {agent!r} is in `agents`, and has no observation")
                observer.write(observations[agent], arrays.observations[k, columns])
            if choices.stop > choices.start:
                row = arrays.masks[k, choices]
                if not playing:
                    row[:] = 1
                else:
                    actor.read_mask(self.made[k].mask(observer, observations.get(agent), infos.get(agent, {})), row)
        self.who = None
        # Behind the end of a game, its state is worth nothing, and may not exist.
        if arrays.states.shape[1] > 0 and not arrays.terminated[k]:
            arrays.states[k] = Observer.array(self.envs[k].state(), "state()", self.state_shape).ravel()


# --- the process ----------------------------------------------------------------------------------------------------------------------


class Worker:
    checks = checking = None  # checks.py, and what answers for it, once it is asked

    def __init__(self, library, control, connection, spin):
        bell = ctypes.CDLL(library)
        self.ring, self.wait = bell.wd_ring, bell.wd_wait
        self.ring.argtypes, self.ring.restype = [ctypes.c_void_p, ctypes.c_int32], None
        self.wait.argtypes, self.wait.restype = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int, ctypes.c_int], ctypes.c_int
        self.control = mmap.mmap(control, 4096)
        self.words = memoryview(self.control).cast("i")
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.control))
        self.posted, self.done = start + POSTED, start + DONE
        self.socket = socket.socket(fileno=connection)
        bell.wd_end_with(connection)
        self.spin = spin
        self.rooms = {}
        self.spare = None  # (what was described, its game, what that showed last)
        faulthandler.register(signal.SIGUSR1, file=connection, all_threads=True)

    def run(self):
        seen = 0
        while True:
            while not self.wait(self.posted, seen, self.spin, WAIT_MILLISECONDS):
                pass
            seen, room = self.words[POSTED // 4], self.words[ROOM // 4]
            if room == END:
                break
            if room == REQUEST:
                self.answer(seen)
            else:
                self.step(self.rooms[room], seen)
        for room in self.rooms.values():
            room.close()

    def step(self, room, number):
        try:
            room.step()
        except Exception as error:
            where = "" if room.where is None else f" in replica {room.first + room.where}"
            where += "" if room.who is None else f", agent {room.who}"
            advice = self.load_checks().form_fault(sys.modules[__name__], room.made[room.where or 0])
            self.fail(number, f"raised{where}: {said(error)}" + (f"\nwdtrain check finds: {advice}" if advice else ""))
        else:
            self.ring(self.done, number)

    def answer(self, number):
        request, descriptors = self.receive()
        try:
            answer = getattr(self, "do_" + request["do"])(request, *descriptors)
            more = answer.pop("bytes", b"")
            answer = packed(answer) + more
        except RefusedError as error:
            answer = packed({"refused": shortened(str(error))})
        except Exception as error:
            self.fail(number, f"raised in {request['do']}: {said(error)}")
            return
        # The other side reads only after this, and the answer may be longer than the socket holds.
        self.ring(self.done, number)
        self.socket.sendall(answer)

    def do_describe(self, request):
        try:
            made = make(request)
            game = self.load_checks().Checked(sys.modules[__name__], request, made)
            try:
                moment = game.begin()
            except self.checks.FaultError as fault:
                raise RefusedError(str(fault)) from fault
        except Exception as error:
            # What gymnasium says of a name or of arguments says enough.
            if type(error).__module__ != "gymnasium.error":
                raise
            hint = ": a name that a module of yours registers is gym:MODULE:ID, as gym:ale_py:ALE/Pong-v5" if "NotFound" in type(error).__name__ else ""
            raise RefusedError(f"{type(error).__name__}: {error}{hint}") from error
        self.spare = (described(request), game, moment)
        return form_of(made) | {"time_limit": made.limit, "masks_in_info": made.mask_in_info, "statistics": paired(request["statistics"])}

    def do_look(self, request):
        """What numbers the infos of an episode have that random actions play."""
        (_, game, moment), random, names, begun, steps = self.spare, np.random.default_rng(0), [], time.monotonic(), 0
        while game.live and steps < MOST_STEPS and (steps < FEW_STEPS or time.monotonic() - begun < PLAY_SECONDS):
            try:
                moment, steps = game.step(game.actions(moment, random)), steps + 1
            except self.checks.FaultError:
                break  # training says it
            found = [str(name) for info in moment.infos.values() if isinstance(info, dict) for name, value in info.items() if is_statistic(value)]
            names += [name for name in dict.fromkeys(found) if name not in names]
        if len(names) > MOST_STATISTICS:
            print(f"wdtrain: `info` has {len(names)} numbers, and {MOST_STATISTICS} can be statistics (env.statistics chooses them); without {', '.join(names[MOST_STATISTICS:])}",
                  file=sys.stderr, flush=True)
        return {"statistics": paired(names[:MOST_STATISTICS])}

    def do_open(self, request, descriptor):
        n, form = request["replicas"], request["description"]
        envs = []
        if self.spare is not None:
            (of, game, _), self.spare = self.spare, None
            # Some cannot be reset before the end of an episode.
            if game.live or of != described(request) or request["pictures"]:
                with contextlib.suppress(Exception):
                    game.close()
            else:
                envs = [game.made]
        while len(envs) < n:
            envs.append(make(request, request["pictures"]))
        games = [one.game() for room in self.rooms.values() for one in room.made]
        for k, one in enumerate(envs):
            one.mask_in_info = form["masks_in_info"]
            if not form["state"]:
                one.state_size = 0  # nobody reads it
            for name, mine in form_of(one).items():
                if mine != form[name]:
                    raise RefusedError(f"replica {request['first'] + k} has other spaces than the environment that was made first: {mine} instead of {form[name]}")
            if any(one.game() is game for game in games):
                raise RefusedError("the function that makes it returns an environment that it has returned before: each replica needs one of its own")
            games.append(one.game())
        memory = mmap.mmap(descriptor, request["bytes"])
        os.close(descriptor)
        names = [name for name, _ in form["statistics"]]
        self.rooms[request["room"]] = room_of(envs, request["first"], Arrays(memory, request["offsets"], n, widths_of(envs[0], names)), names)
        return {}

    def do_picture(self, request):
        picture = self.rooms[request["room"]].envs[request["replica"]].render()
        picture = None if picture is None else np.asarray(picture)
        if picture is None or picture.ndim != 3 or picture.shape[2] != 3 or picture.dtype != np.uint8:
            what = "nothing" if picture is None else f"an array of {picture.dtype} with the shape {picture.shape}"
            raise RefusedError(f"render() returns {what}, and must return [height, width, 3] of uint8: the function that makes it must take render_mode='rgb_array'")
        return {"height": picture.shape[0], "width": picture.shape[1], "bytes": picture.tobytes()}

    def do_close(self, request):
        self.rooms.pop(request["room"]).close()
        return {}

    def do_check(self, request):
        """`wdtrain check` asks: checks.py beside this file answers."""
        if self.checking is None:
            self.checking = self.load_checks().Checks(sys.modules[__name__])
        return self.checking.answer(request)

    def load_checks(self):
        need("numpy")
        if self.checks is None:
            spec = importlib.util.spec_from_file_location("wdtrain_checks", os.path.join(os.path.dirname(__file__), "checks.py"))
            self.checks = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(self.checks)
        return self.checks

    def fail(self, number, text):
        self.words[FAILED // 4] = 1
        self.ring(self.done, number)
        self.socket.sendall(packed({"error": text}))

    def receive(self):
        head, descriptors, _, _ = socket.recv_fds(self.socket, 4, 1)
        (length,) = struct.unpack("=I", head)
        text = b""
        while len(text) < length:
            text += self.socket.recv(length - len(text))
        return json.loads(text), descriptors


def described(request):
    return [request[key] for key in ("environment", "kwargs", "wrappers", "one_role")]


def paired(statistics):
    """Names in `info`, and those that wdtrain takes."""
    return list(zip(statistics, different(map(name_of, statistics)), strict=True))


def packed(answer):
    """As wdtrain reads it: JSON in UTF-8, which has neither NaN nor halves of a character (as in names of files that are no UTF-8)."""
    text = json.dumps(answer, ensure_ascii=False, allow_nan=False).encode(errors="replace")
    return struct.pack("=I", len(text)) + text


def shortened(text):
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]} ... ({len(text) - LONGEST_TEXT:,} more characters)"


def said(error):
    """An exception with its traceback, without the lines of this file and of checks.py beside it."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if os.path.dirname(frame.filename) != os.path.dirname(__file__)]
    lines = "".join(traceback.format_list(frames)).rstrip()
    try:
        text = str(error)
    except Exception as other:
        text = f"its text cannot be made: {type(other).__name__}"
    return f"{type(error).__name__}: {shortened(text)}\n{shortened(lines)}".rstrip()


def main(arguments):
    os.dup2(2, 1)  # what environments print is no output of wdtrain
    # That training ends is dealt with by wdtrain, also where all processes of a job are told. What is ignored would stay ignored by programs that
    # an environment starts and may want to end, so it is handled.
    for one in STOPS:
        signal.signal(one, lambda *_: None)
        signal.siginterrupt(one, False)
    os.register_at_fork(after_in_child=lambda: [signal.signal(one, signal.SIG_DFL) for one in STOPS])
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
    library, control, connection, spin = arguments
    Worker(library, int(control), int(connection), int(spin)).run()
