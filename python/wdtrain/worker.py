"""A process that makes and steps environments for wdtrain (src/outside/python_process.cpp starts it, and needs no more than this file).

Requests come as JSON through a socket; steps through memory that both processes share. Numbers are in the byte order of the machine.
"""

import contextlib
import ctypes
import faulthandler
import importlib
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
    if isinstance(space, spaces.Box):
        return [(name, path, "numbers", math.prod(space.shape), space.shape)]
    if isinstance(space, spaces.MultiBinary):
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
        if self.size == 0:
            raise RefusedError("an observation has no numbers")
        self.plain = len(self.parts) == 1 and not self.parts[0][1] and self.parts[0][2] == "numbers" and len(self.parts[0][4]) == 1
        self.shape = self.parts[0][4]
        self.write = self.write_row if self.plain else self.write_parts

    def write_row(self, observation, row):
        if type(observation) is not np.ndarray or observation.shape != self.shape:
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
        return value

    @staticmethod
    def index(value, start, size, name):
        index = int(value) - int(start)
        if not 0 <= index < size:
            raise ValueError(f"the observation {name!r} is {value}, which its space does not hold")
        return index


class Actor:
    """Reads actions of one space from words."""

    def __init__(self, space):
        from gymnasium import spaces

        self.heads = self.bounds = None
        self.start = 0
        if isinstance(space, spaces.Discrete):
            self.heads, self.start = [int(space.n)], int(space.start)
            # As the space samples them: env.step() may ask for their type.
            self.read = lambda words: np.int64(words[0]) + self.start
        elif isinstance(space, spaces.MultiDiscrete):
            shape, start, dtype = space.shape, np.asarray(getattr(space, "start", np.zeros(space.shape))).astype(np.int64), space.dtype
            self.heads = [int(n) for n in np.ravel(space.nvec)]
            self.read = lambda words: (words.reshape(shape) + start).astype(dtype)
        elif isinstance(space, spaces.MultiBinary):
            shape, dtype = space.shape, space.dtype
            self.heads = [2] * math.prod(shape)
            self.read = lambda words: words.reshape(shape).astype(dtype)
        elif isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating):
            shape, dtype = space.shape, space.dtype
            low, high = np.ravel(space.low).astype(float), np.ravel(space.high).astype(float)
            if np.isnan([low, high]).any():
                raise RefusedError(f"the action has the bounds {low.tolist()} and {high.tolist()}: give numbers, or infinity where there is no bound")
            self.bounds = [[None if math.isinf(a) else a, None if math.isinf(b) else b] for a, b in zip(low, high, strict=True)]
            self.read = lambda words: words.view(np.float32).reshape(shape).astype(dtype)
        else:
            kind = f"{type(space).__name__} of {space.dtype}" if isinstance(space, spaces.Box) else type(space).__name__
            raise RefusedError(f"the action is a {kind}, and can be Discrete, MultiDiscrete, MultiBinary or a Box of floats: convert it with a wrapper")
        if not (self.heads or self.bounds):
            raise RefusedError("an action has no numbers")
        self.width = len(self.heads or self.bounds)
        self.choices = sum(self.heads or [])

    def read_mask(self, mask, row):
        """A mask by Gymnasium's and PettingZoo's conventions: an array, or for several heads a tuple of arrays."""
        if mask is None:
            row[:] = 1
            return
        if isinstance(mask, tuple | list) and len(self.heads) > 1:
            mask = np.concatenate([np.ravel(one) for one in mask])
        mask = np.ravel(np.asarray(mask))
        if mask.shape != (self.choices,):
            raise ValueError(f"an action_mask has {mask.size} numbers, and the action has {self.choices} choices")
        row[:] = mask != 0


# --- environments ---------------------------------------------------------------------------------------------------------------------


def maker(name, kwargs):
    """A function without arguments that makes the environment of this name."""
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


def make(name, kwargs, pictures=False):
    need("numpy")
    Env = need("gymnasium").Env
    function = maker(name, kwargs)
    if pictures and "render_mode" not in kwargs:
        try:
            env = function(render_mode="rgb_array")
        except TypeError:  # it has no such argument: picture() says so if it shows nothing
            env = function()
    else:
        env = function()
    if isinstance(env, Env):
        return Single(env)
    if hasattr(env, "possible_agents") and hasattr(env, "observation_space") and hasattr(env, "step") and not hasattr(env, "agent_iter"):
        return Several(env)
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
        return float(np.asarray(reward).item())
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"the reward is {reward!r:.200}, of type {type(reward).__name__}, and must be a number: return float(...)") from error


class Single:
    """A gymnasium.Env."""

    def __init__(self, env):
        self.env = env
        self.observer, self.actor = Observer(env.observation_space), Actor(env.action_space)
        self.mask_in_info, self.state_size = False, 0

    def describe(self):
        spec = self.env.spec
        _, info = self.env.reset(seed=0)
        self.mask_in_info = isinstance(info, dict) and "action_mask" in info
        return {"roles": roles_of(self, ["agent"]), "time_limit": spec and spec.max_episode_steps, "state": 0}


class Several:
    """A pettingzoo.ParallelEnv."""

    def __init__(self, env):
        self.env, self.agents = env, list(env.possible_agents)
        if not self.agents:
            raise RefusedError("possible_agents is empty: it must name all agents that there may be")
        forms = {}
        self.members = {}  # of each role, by (stem, spaces)
        for agent in self.agents:
            spaces = env.observation_space(agent), env.action_space(agent)
            stem = re.sub(r"_?\d+$", "", str(agent)) or "agent"
            key = next((key for key, (known, *_) in forms.items() if key[0] == stem and known == spaces), (stem, len(forms)))
            if key not in forms:
                forms[key] = (spaces, Observer(spaces[0]), Actor(spaces[1]))
            self.members.setdefault(key, []).append(agent)
        stems = [stem for stem, _ in forms]
        self.roles = []  # (name, agents, observer, actor)
        for key, (_, observer, actor) in forms.items():
            # Agents with one stem and different spaces are roles of their own.
            name = key[0] if stems.count(key[0]) == 1 else f"{key[0]}_of_{self.members[key][0]}"
            self.roles.append((name_of(name), self.members[key], observer, actor))
        self.roles = [(name, *rest) for name, (_, *rest) in zip(different(role[0] for role in self.roles), self.roles, strict=True)]
        if len(self.roles) > MOST_ROLES:
            raise RefusedError(
                f"its agents have {len(self.roles)} different kinds, and at most {MOST_ROLES} are possible: give agents the same spaces "
                "(supersuit.pad_observations_v0, pad_action_space_v0), or names that differ only in a number at the end"
            )
        self.mask_in_info = False
        space = getattr(env, "state_space", None)
        self.state_size = math.prod(space.shape) if type(space).__name__ == "Box" else 0

    def describe(self):
        _, infos = self.env.reset(seed=0)
        self.mask_in_info = any(isinstance(info, dict) and "action_mask" in info for info in infos.values())
        return {"roles": roles_of(self, [name for name, *_ in self.roles]), "time_limit": None, "state": self.state_size}


def roles_of(env, names):
    roles = []
    for name, (count, observer, actor, choices) in zip(names, kinds_of(env), strict=True):
        if observer.has_mask and actor.heads is None:
            raise RefusedError("the observation has an action_mask, and the action has no choices")
        role = {"name": name, "count": count, "observation": [[name_of(part[0]), part[3]] for part in observer.parts], "names": [], "mask": choices > 0}
        roles.append(role | ({"heads": actor.heads} if actor.heads else {"bounds": actor.bounds}))
    return roles


# --- rooms ----------------------------------------------------------------------------------------------------------------------------


# The arrays of a room by name: their types, and whether they have several numbers for each replica.
ARRAYS = {"deeds": ("u1", False), "seeds": ("i8", False), "actions": ("i4", True), "observations": ("f4", True), "rewards": ("f4", True),
          "in_game": ("u1", True), "masks": ("u1", True), "states": ("f4", True), "terminated": ("u1", False), "truncated": ("u1", False)}


def kinds_of(env):
    """Of each role: number of agents, observer, actor, and number of choices that have masks."""
    roles = [(1, env.observer, env.actor)] if isinstance(env, Single) else [(len(agents), observer, actor) for _, agents, observer, actor in env.roles]
    return [(count, observer, actor, actor.choices if actor.heads and (observer.has_mask or env.mask_in_info) else 0) for count, observer, actor in roles]


def widths_of(env):
    """Numbers of each replica in the arrays that have several."""
    agents, observations, actions, masks = (sum(count * width for count, width in pairs) for pairs in zip(
        *(((count, 1), (count, observer.size), (count, actor.width), (count, mask)) for count, observer, actor, mask in kinds_of(env)), strict=True))
    return {"actions": actions, "observations": observations, "rewards": agents, "in_game": agents, "masks": masks, "states": env.state_size}


class Arrays:
    """The memory of a room: numbers of n replicas."""

    def __init__(self, memory, offsets, n, widths):
        for name, (dtype, several) in ARRAYS.items():
            shape = (n, widths[name]) if several else (n,)
            setattr(self, name, np.frombuffer(memory, dtype, math.prod(shape), offsets[name]).reshape(shape))


def room_of(envs, first, arrays):
    """`first`: global id of the first replica. The first environment must have been described."""
    return (SingleRoom if isinstance(envs[0], Single) else SeveralRoom)(envs, first, arrays)


class SingleRoom:
    """Replicas of a gymnasium.Env."""

    def __init__(self, envs, first, arrays):
        self.envs, self.first, self.arrays = [one.env for one in envs], first, arrays
        ((_, self.observer, self.actor, choices),) = kinds_of(envs[0])
        self.masked = choices > 0
        self.flat = arrays.observations.reshape(-1)
        self.steps = [env.step for env in self.envs]
        self.where = None  # the replica that is stepped
        arrays.in_game[:] = 1

    def step(self):
        arrays, steps = self.arrays, self.steps
        actions, deeds = self.read_actions(), arrays.deeds.tolist()
        masked = self.masked
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
                elif deed == NOTHING:
                    continue
                else:
                    observations[k], info = self.envs[k].reset(seed=int(arrays.seeds[k])) if deed == SEEDED_RESET else self.envs[k].reset()
                if masked:
                    mask = observations[k]["action_mask"] if self.observer.has_mask else info.get("action_mask")
                    self.actor.read_mask(mask, arrays.masks[k])
            if not self.write_at_once(observations):
                for k, observation in enumerate(observations):
                    if deeds[k] != NOTHING:
                        self.observer.write(observation, arrays.observations[k])
            try:
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
        np.concatenate(observations, out=self.flat, casting="unsafe")
        return True

    def read_actions(self):
        if self.actor.heads and self.actor.width == 1:
            return list(self.arrays.actions[:, 0].astype(np.int64) + self.actor.start)
        return [self.actor.read(words) for words in self.arrays.actions.copy()]

    def agent(self):
        return ""

    def close(self):
        for env in self.envs:
            with contextlib.suppress(Exception):
                env.close()


class SeveralRoom:
    """Replicas of a pettingzoo.ParallelEnv."""

    def __init__(self, envs, first, arrays):
        self.envs, self.first, self.arrays = [one.env for one in envs], first, arrays
        self.where, self.who = None, None
        self.state_shape = getattr(getattr(self.envs[0], "state_space", None), "shape", None)
        self.agents = []  # (agent, observer, actor, slices), in the order of wdtrain
        observation = action = mask = 0
        for (_, agents, *_), (_, observer, actor, choices) in zip(envs[0].roles, kinds_of(envs[0]), strict=True):
            for agent in agents:
                self.agents.append((agent, observer, actor, slice(observation, observation + observer.size), slice(action, action + actor.width), slice(mask, mask + choices)))
                observation, action, mask = observation + observer.size, action + actor.width, mask + choices
        self.live = [set() for _ in envs]
        self.told = False

    def step(self):
        for k, deed in enumerate(self.arrays.deeds.tolist()):
            self.where, self.who = k, None
            if deed == STEP:
                self.step_one(k)
            elif deed != NOTHING:
                self.reset_one(k, int(self.arrays.seeds[k]) if deed == SEEDED_RESET else None)

    def reset_one(self, k, seed):
        arrays, env = self.arrays, self.envs[k]
        observations, infos = env.reset(seed=seed)
        arrays.terminated[k] = arrays.truncated[k] = 0
        arrays.observations[k] = 0
        arrays.in_game[k] = 0
        self.live[k] = set(env.agents)
        if not self.live[k]:
            raise ValueError("after reset(), `agents` is empty")
        self.write(k, observations, infos, self.live[k], {})

    def step_one(self, k):
        arrays, env, live = self.arrays, self.envs[k], self.live[k]
        words = arrays.actions[k].copy()
        actions = {agent: actor.read(words[at]) for agent, _, actor, _, at, _ in self.agents if agent in live}
        observations, rewards, terminations, truncations, infos = env.step(actions)
        over = not env.agents
        ended = {agent for agent in live if terminations.get(agent)}
        cut = {agent for agent in live if truncations.get(agent)} - ended
        if cut and not over and not self.told:
            self.told = True
            print(
                f"wdtrain: agent {min(map(str, cut))} was truncated while others go on: it counts as terminated, because only a whole episode can be truncated",
                file=sys.stderr,
                flush=True,
            )
        arrays.terminated[k] = over and not cut
        arrays.truncated[k] = over and bool(cut)
        # Of an episode that is cut off, those who still played are in the game: what they see last is worth what the network expects of it.
        now = cut if over else set(env.agents) - ended - cut
        arrays.rewards[k] = 0
        arrays.in_game[k] = 0
        self.write(k, observations, infos, now | {agent for agent in live if agent in observations}, rewards, now)
        self.live[k] = set() if over else now

    def write(self, k, observations, infos, seen, rewards, in_game=None):
        arrays = self.arrays
        for i, (agent, observer, actor, columns, _, choices) in enumerate(self.agents):
            self.who = agent
            if agent in rewards:
                try:
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
                elif observer.has_mask:
                    actor.read_mask(observations[agent]["action_mask"], row)
                else:
                    actor.read_mask(infos.get(agent, {}).get("action_mask"), row)
        self.who = None
        if arrays.states.shape[1] > 0:
            arrays.states[k] = Observer.array(self.envs[k].state(), "state()", self.state_shape).ravel()

    def agent(self):
        return "" if self.who is None else f", agent {self.who}"

    def close(self):
        SingleRoom.close(self)


# --- the process ----------------------------------------------------------------------------------------------------------------------


class Worker:
    checks = None  # checks.py, once it is asked

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
        self.spare = None  # (name, kwargs, environment): made to describe it
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
            where = "" if room.where is None else f" in replica {room.first + room.where}{room.agent()}"
            self.fail(number, f"raised{where}: {said(error)}")
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
            env = make(request["environment"], request["kwargs"])
            description = env.describe()
        except Exception as error:
            # What gymnasium says of a name or of arguments says enough.
            if type(error).__module__ != "gymnasium.error":
                raise
            raise RefusedError(f"{type(error).__name__}: {error}") from error
        self.spare = (request["environment"], request["kwargs"], env)
        return description

    def do_open(self, request, descriptor):
        n, name, kwargs = request["replicas"], request["environment"], request["kwargs"]
        spare, self.spare = self.spare, None
        envs = [spare[2]] if spare is not None and spare[:2] == (name, kwargs) and not request["pictures"] else []
        while len(envs) < n:
            envs.append(make(name, kwargs, request["pictures"]))
        envs[0].describe()
        memory = mmap.mmap(descriptor, request["bytes"])
        os.close(descriptor)
        self.rooms[request["room"]] = room_of(envs, request["first"], Arrays(memory, request["offsets"], n, widths_of(envs[0])))
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
        need("numpy")
        if self.checks is None:
            from importlib import util

            spec = util.spec_from_file_location("wdtrain_checks", os.path.join(os.path.dirname(__file__), "checks.py"))
            module = util.module_from_spec(spec)
            spec.loader.exec_module(module)
            self.checks = module.Checks(sys.modules[__name__])
        return self.checks.answer(request)

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


def packed(answer):
    """As wdtrain reads it: JSON in UTF-8, which has neither NaN nor halves of a character (as in names of files that are no UTF-8)."""
    text = json.dumps(answer, ensure_ascii=False, allow_nan=False).encode(errors="replace")
    return struct.pack("=I", len(text)) + text


def shortened(text):
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]} ... ({len(text) - LONGEST_TEXT:,} more characters)"


def said(error):
    """An exception with its traceback, without the lines of this file."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
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
