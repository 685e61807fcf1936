"""Short training runs with several workers: how to start them, and what they leave."""

import os
import pathlib
import subprocess

import numpy
from safetensors.numpy import load_file

from checkpoint import runs
from checkpoint.runs import WDTRAIN, iterations, left, options

GRIDWORLD = options("tag_gridworld", "PPO")
SLOWDOWN = int(os.environ.get("WD_SLOWDOWN", "1"))  # how much slower a build with a sanitizer is


def start(*arguments, workers=2, env=None, on=(), **settings):
    """Starts the launcher and returns its process; `on` is put before its command."""
    job = [*on, WDTRAIN, *map(str, arguments), "--quiet", *(["--num_workers", str(workers)] if workers else [])]
    return subprocess.Popen(job, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})}, **settings)


def finish(process, timeout=120):
    process.stdout_text, process.stderr_text = process.communicate(timeout=timeout * SLOWDOWN)
    return process


def run(*arguments, timeout=120, **settings):
    return finish(start(*arguments, **settings), timeout)


def trained(folder, *arguments, workers=2, **settings):
    """A run that must succeed; returns what it leaves."""
    done = run(*arguments, "--run_dir", folder, workers=workers, **settings)
    assert done.returncode == 0, done.stderr_text
    return left(folder)


def shell_loop(folder, size, *arguments, variables=None, per_rank=None):
    """Starts workers by hand, as a shell loop would; returns their finished processes in rank order."""
    names = variables or (lambda rank: {"RANK": str(rank), "WORLD_SIZE": str(size)})
    port = str(free_port())
    processes = []
    for rank in range(size):
        env = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, **names(rank)}
        more = per_rank(rank) if per_rank else []
        processes.append(start(*arguments, *more, "--run_dir", folder, workers=0, env=env))
    return [finish(process) for process in processes]


def free_port():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def children(pid):
    """Process ids of a launcher's workers, in rank order."""
    try:
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for(condition, timeout=60):
    runs.wait_for(condition, timeout)


def tensors(folder, name):
    """Arrays of the file NAME.safetensors in the newest checkpoint."""
    return load_file(folder / "checkpoints" / "latest" / f"{name}.safetensors")


def distance(one, other):
    """Distance between two arrays, relative to the norm of the first."""
    return numpy.linalg.norm((one - other).ravel()) / numpy.linalg.norm(one.ravel())
