"""The functions of libwd_python.so (python/native/module.cpp), which steps environments: by ctypes, so that it serves every Python."""

import functools
import json
from ctypes import PyDLL, c_char_p, c_int64, c_uint64, c_void_p, py_object

import numpy as np
import torch  # noqa: F401  before the library, which uses its libraries
from torch.utils.dlpack import from_dlpack

from wdtrain.files import UsageError
from wdtrain.installed import library

_OF_ROLE = ("action", "observations", "action_mask", "reward", "active", "terminated", "last_observations")
_RESULTS = {"make": c_void_p, "description": c_char_p, "tensor": py_object, "state": py_object, "call": py_object}
_library = PyDLL(library())  # which raises what a function sets as Python's error. Arguments that are numbers are of the type int


def _function(name):
    found = getattr(_library, f"wd_{name}")
    found.restype = _RESULTS.get(name)
    return found


def use_python(interpreter, modules):
    _function("start")(py_object(UsageError), interpreter.encode(), modules.encode())


class Env:
    """Replicas of an environment, stepped by wd."""

    def __init__(self, name, settings, num_envs, seed, mode, gpu):
        self._env, self._delete = None, _function("delete")  # which __del__ needs
        texts = (c_char_p * len(settings))(*(text.encode() for text in settings))
        self._env = c_void_p(_function("make")(name.encode(), texts, len(settings), num_envs, c_uint64(seed), mode, gpu))
        self.close, self._restart, self._reset, self._tensor, self._state, self._write, call = (
            functools.partial(_function(name), self._env) for name in ("close", "restart", "reset", "tensor", "state", "write", "call"))
        told = json.loads(_function("description")(self._env))
        self.device, self.time_limit, self.statistics, self.streams, self._fields, roles, of_all, streams = told
        self.roles = [role | dict(zip(_OF_ROLE, self._shared(numbers), strict=True)) | {"streams": self._shared(of_agents)} for role, numbers, of_agents in roles]
        self.all = dict(zip(("terminated", "truncated", "reset", "statistics"), self._shared(of_all), strict=True)) | {"streams": self._shared(streams)}
        self._given = [np.empty(role["action"].numel(), np.int64 if role["heads"] else np.float64) for role in self.roles]
        self.step, *self._puts = call(0, None), *(call(k, c_void_p(given.ctypes.data)) for k, given in enumerate(self._given))

    def __del__(self):
        if self._env:
            self._delete(self._env)

    def _shared(self, numbers):
        return [None if k is None else from_dlpack(self._tensor(k)) for k in numbers]

    def restart(self, seed):
        self._restart(c_uint64(seed))

    def reset(self, mask=None):
        self._reset(None, c_int64(0)) if mask is None else self._reset(c_void_p(mask.ctypes.data), c_int64(mask.size))

    def put(self, role, actions):
        """Writes a role's actions on the CPU, of which the caller has checked how many there are. Returns False, and writes none, if one is wrong."""
        self._given[role].reshape(actions.shape)[...] = actions
        return self._puts[role]()

    def state(self, replica):
        """Fields of the state of one replica."""
        return {key: from_dlpack(self._state(replica, k)).tolist() for k, key in enumerate(self._fields) if key is not None}

    def write(self, replica, text):
        self._write(replica, text.encode())
