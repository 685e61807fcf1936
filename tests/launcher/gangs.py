"""Starts the program of gang.cpp and inspects the processes that it starts."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import time

GANG = str(pathlib.Path(os.environ["WD_BUILD_DIR"]) / "gang")
GRACE, SLACK = 1, 2  # [s] from SIGTERM to SIGKILL, and the extra time allowed to the launcher
QUICK = ["--grace", str(GRACE)]
LONG = ["--iterations", "100000"]


def environment(**changes):
    """The environment without variables that a launcher around these tests may have set; None removes a
    variable."""
    result = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "WD_TOKEN", "CUDA_VISIBLE_DEVICES")}
    result.update({k: v for k, v in changes.items() if v is not None})
    return result


def command(*arguments):
    return [GANG, *QUICK, *map(str, arguments)]


def run(*arguments, variables=None, timeout=60, **settings):
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=timeout, env=environment(**(variables or {})),
                          **settings)


@contextlib.contextmanager
def started(*arguments, variables=None, **settings):
    """The running launcher; at the end, all of its remaining processes are killed."""
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **settings}
    process = subprocess.Popen(command(*arguments), env=environment(**(variables or {})), **settings)
    try:
        yield process
    finally:
        pids = workers(process.pid)
        process.kill()
        process.wait()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def ended(process, timeout=30):
    """The return code and stderr."""
    _, error = process.communicate(timeout=timeout)
    return process.returncode, error


def children(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(word) for word in text.split()]


def variables_of(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/environ").read_bytes().decode()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return {}
    return dict(entry.split("=", 1) for entry in text.split("\0") if "=" in entry)


def workers(pid):
    """Process ids of the launcher's workers in rank order; workers whose program has not started yet are
    omitted."""
    ranks = {child: variables_of(child).get("RANK") for child in children(pid)}
    return sorted((child for child, rank in ranks.items() if rank is not None), key=lambda child: int(ranks[child]))


def is_alive(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def wait_for(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.005)
    return result


def wait_for_workers(process, count):
    return wait_for(lambda: (found := workers(process.pid)) and len(found) == count and found)


def iteration(folder):
    path = folder / "iteration"
    text = path.read_text() if path.exists() else ""
    return int(text) if text.strip() else 0


def error(folder, rank=None):
    return json.loads((folder / ("error.json" if rank is None else f"error_rank_{rank}.json")).read_text())
