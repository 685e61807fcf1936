"""Replicas of an environment of wd, their buffers and spaces: what all forms have in which Python sees them."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import sys

import numpy as np

from wdtrain.files import UsageError

MODES = ("next_step", "same_step", "disabled")  # as wd::AutoReset
DEVICES = "auto, cpu, cuda or cuda:N"


def native():
    """The module that steps environments: it imports torch."""
    from wdtrain import native

    return native


def text_of(value, exact=False):
    """A parameter's value, as YAML. exact: as arguments of a user's function (env.kwargs), in which texts are never anything else."""
    if hasattr(value, "tolist"):  # of numpy
        value = value.tolist()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(text_of(one, exact) for one in value) + "]"
    if isinstance(value, dict):
        pairs = ((json.dumps(str(key)) if exact else key, text_of(one, exact or key == "kwargs")) for key, one in value.items())
        return "{" + ", ".join(f"{key}: {one}" for key, one in pairs) + "}"
    if exact and not isinstance(value, str | int | float | None):
        raise UsageError(f"kwargs: {value!r} is a {type(value).__name__}: numbers, texts, None, lists and dictionaries reach another process")
    if exact:
        return json.dumps(value)
    return "none" if value is None else str(value)


@dataclasses.dataclass(eq=False)
class Role:
    """The agents of one role, and their buffers. Tensors are torch's or numpy's (make(arrays=...)), by replica and agent."""

    name: str
    count: int
    observation: dict  # sizes of the parts of the observation, by name
    heads: list  # number of choices of each head; empty if continuous
    bounds: list  # (low, high) of each component; empty if discrete
    names: list  # of heads or components
    paid_after_leaving: bool
    buffer: object  # what `action` is, as torch's
    action: object  # [E, A, heads] int32, or [E, A, components] float32: step() reads them here
    observations: object  # [E, A, numbers] float32
    action_mask: object  # [E, A, choices] bool, or None
    reward: object  # [E, A] float32
    active: object  # [E, A] bool: the agent is in the game
    terminated: object  # [E, A] bool: the agent has left the game in this step
    last_observations: object  # [E, A, numbers] float32 in mode same_step: what was seen last, where an episode ended
    streams: list  # [E, A, ...] each, or None

    @property
    def size(self):
        return sum(self.observation.values())


class Batch:
    """Replicas of an environment. `make` makes its forms anew."""

    def __init__(self, make, name, num_envs, device, seed, autoreset_mode, arrays, settings, params):
        module = native()
        mode = str(getattr(autoreset_mode, "name", autoreset_mode)).lower()
        if mode not in MODES:
            raise module.UsageError(f"autoreset_mode {autoreset_mode!r} is none of {', '.join(MODES)}")
        if arrays not in ("torch", "numpy"):
            raise module.UsageError(f"arrays {arrays!r} is neither torch nor numpy")
        if not isinstance(num_envs, int | np.integer) or num_envs < 1:
            raise module.UsageError(f"num_envs {num_envs!r} is not a number of replicas, 1 or more")
        kind, _, index = str(device).partition(":")
        if kind not in ("auto", "cpu", "cuda") or (index and (kind != "cuda" or not index.isdecimal())):
            raise module.UsageError(f"device {device!r} is not {DEVICES}")
        module.use_python(sys.executable, modules())
        lines = [f"trainer.device={kind}", *settings, *(f"env.{key}={text_of(value, key == 'kwargs')}" for key, value in params.items())]
        self.make, self.name, self.num_envs, self.seed, self.mode = make, name, int(num_envs), checked_seed(seed), mode
        self.arguments = {"device": device, "settings": tuple(settings), **params}
        self.native = module.Env(name, lines, self.num_envs, self.seed, MODES.index(mode), int(index or 0))
        self.device, self.time_limit = self.native.device, self.native.time_limit
        if arrays == "numpy" and self.device != "cpu":
            raise module.UsageError(f"arrays of numpy are on the CPU, and the environment is on {self.device}: set device='cpu' or arrays='torch'")
        self.arrays = arrays
        self.roles = [Role(buffer=role["action"], **{key: self.shown(value) for key, value in role.items()}) for role in self.native.roles]
        rows = self.native.all
        self.terminated, self.truncated, self.began = (self.shown(rows[key]) for key in ("terminated", "truncated", "reset"))
        self.statistics = {} if rows["statistics"] is None else {
            key: self.shown(rows["statistics"][:, k]) for k, key in enumerate(self.native.statistics)}
        self.streams = {key: self.shown(rows["streams"][k]) for k, key in enumerate(self.native.streams) if rows["streams"][k] is not None}
        self.agent_streams = {key: k for k, key in enumerate(self.native.streams) if rows["streams"][k] is None}
        self.num_agents = sum(role.count for role in self.roles)
        self.begun = False

    def shown(self, value):
        """Tensors, also in lists, as `arrays` says; what is none stays as it is."""
        if isinstance(value, list):
            return [self.shown(one) for one in value]
        return value.numpy() if self.arrays == "numpy" and hasattr(value, "data_ptr") else value

    def reset(self, seed=None, options=None):
        """Begins episodes: in all replicas, or in those that options["reset_mask"] names."""
        mask = (options or {}).get("reset_mask")
        if unknown := set(options or {}) - {"reset_mask"}:
            raise native().UsageError(f"reset(options=...): unknown: {', '.join(sorted(unknown))}; known is reset_mask")
        if mask is not None:
            if seed is not None:
                raise native().UsageError("reset(): a seed is for all replicas, and reset_mask is for some: give one of them")
            mask = np.ascontiguousarray(mask.cpu().numpy() if hasattr(mask, "cpu") else mask)
            if mask.dtype != bool or mask.shape != (self.num_envs,):
                raise native().UsageError(f"reset_mask is {mask.dtype} of shape {mask.shape}, and must be bool of shape ({self.num_envs},)")
            self.native.reset(mask)
        elif seed is not None or not self.begun:
            self.seed = self.seed if seed is None else checked_seed(seed)
            self.native.restart(self.seed)
        else:
            self.native.reset()
        self.begun = True

    def step(self):
        self.native.step()

    def close(self):
        self.native.close()

    def put(self, role, actions, shape):
        """Writes the actions of a role to its buffer: in this shape, or with an axis for the only head."""
        if not hasattr(actions, "shape"):
            actions = np.asarray(actions)
        if len(role.heads) == 1 and tuple(actions.shape) == (*shape, 1):  # as policies give them
            actions = actions.reshape(shape)
        if tuple(actions.shape) != shape:
            raise native().UsageError(f"{self.name}: actions of '{role.name}' have the shape {tuple(actions.shape)}, and must have {shape}")
        if self.device != "cpu":  # a GPU would have to wait for the answer
            role.buffer.view(shape).copy_(as_tensor(actions))
            return
        if not self.native.put(self.roles.index(role), converted(self.name, role, actions)):
            what = f"is none of its choices: heads have {role.heads} of them, counted from 0" if role.heads else "is not finite"
            raise native().UsageError(f"{self.name}: an action of '{role.name}' {what}")

    def ended(self):
        return self.terminated | self.truncated

    def again(self, alone=False):
        """What __reduce__ of an environment returns: a call that makes a fresh one."""
        of_many = {} if alone else {"num_envs": self.num_envs, "autoreset_mode": self.mode, "arrays": self.arrays}
        return functools.partial(self.make, self.name, seed=self.seed, **of_many, **self.arguments), ()

    def info(self, of_agents):
        """What a step tells besides: masks, streams, and statistics of the replicas whose episodes ended."""
        info = dict(self.streams)
        for key, k in self.agent_streams.items():
            info[key] = of_agents(lambda role, k=k: role.streams[k])
        if any(role.action_mask is not None for role in self.roles):
            info["action_mask"] = of_agents(lambda role: role.action_mask)
        ended = self.ended() if self.statistics or self.mode == "same_step" else None
        if self.statistics:
            for key, value in self.statistics.items():
                info[key], info["_" + key] = value, ended
        if self.mode == "same_step":
            info["final_obs"], info["_final_obs"] = of_agents(lambda role: role.last_observations), ended
        return info


def modules():
    """Where this Python finds modules, for processes of Python (PYTHONPATH)."""
    return os.pathsep.join(path or os.getcwd() for path in sys.path if isinstance(path, str))


def checked_seed(seed):
    if isinstance(seed, list | tuple | np.ndarray):
        raise native().UsageError("seed: one number for all replicas: replica e plays its own episodes of it")
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**63:
        raise native().UsageError(f"seed {seed!r} is not a number in [0, 2^63)")
    return int(seed)


def as_tensor(actions):
    import torch

    return actions if isinstance(actions, torch.Tensor) else torch.as_tensor(np.ascontiguousarray(actions))


def converted(name, role, actions):
    """Actions as an array of whole numbers, or of numbers."""
    try:
        if not isinstance(actions, np.ndarray):
            actions = actions.numpy() if hasattr(actions, "numpy") else np.asarray(actions)
    except (TypeError, RuntimeError) as error:
        raise native().UsageError(f"{name}: actions of '{role.name}' cannot be read as an array: {error}") from error
    if actions.dtype.kind not in ("iu" if role.heads else "iuf"):
        raise native().UsageError(f"{name}: actions of '{role.name}' are {actions.dtype}, and must be {'integers' if role.heads else 'numbers'}")
    return actions


def spaces_of(role):
    """The spaces of one agent, as gymnasium's."""
    from gymnasium import spaces

    observation = spaces.Box(-np.inf, np.inf, (role.size,), np.float32)
    if len(role.heads) == 1:
        return observation, spaces.Discrete(role.heads[0])
    if role.heads:
        return observation, spaces.MultiDiscrete(role.heads)
    low, high = (np.array(side, np.float32) for side in zip(*role.bounds, strict=True))
    return observation, spaces.Box(low, high, dtype=np.float32)
