"""Plays scripts with `wdtrain trace` and parses its output."""

import json
import os
import pathlib
import subprocess
import tempfile

import numpy as np


def play(env, settings, actions, state=None, arguments=()):
    """The trace of one episode; actions are [step][agent], given as numbers or lists."""
    with tempfile.TemporaryDirectory() as folder:
        script, out = pathlib.Path(folder) / "in.json", pathlib.Path(folder) / "out.json"
        script.write_text(json.dumps({"state": state or {}, "actions": actions}, default=lambda array: array.tolist()))
        command = [os.environ["WDTRAIN"], "trace", "--env", env, "--script", str(script), "--out", str(out), *arguments]
        for name, value in settings.items():
            command += ["--set", f"env.{name}={json.dumps(value) if isinstance(value, bool) else value}"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(out.read_text())


def field(step, name, dtype=np.float32):
    """A state field of one step of a trace."""
    return np.array(step["state"][name], dtype=dtype)
