"""A random rank is killed at a random moment, starting right after its launch: the job ends in time and
names the rank, or continues to the same bits."""

import os
import random
import shutil
import signal
import time

import pytest

from checkpoint.runs import left
from distributed.jobs import GRIDWORLD, alive, children, finish, start, trained, wait_for

TIMES, WORKERS, GRACE = 50, 2, 5


@pytest.fixture(scope="module")
def unharmed(tmp_path_factory):
    begun = time.monotonic()
    left = trained(tmp_path_factory.mktemp("unharmed") / "run", *GRIDWORLD)
    return left, time.monotonic() - begun


def kill_one(process, source, longest):
    """The killed rank and the delay; None if the job ended before."""
    wait_for(lambda: len(children(process.pid)) == WORKERS or process.poll() is not None, 20)
    time.sleep(source.uniform(0, longest))
    ranks = children(process.pid)
    if len(ranks) < WORKERS:
        return None
    rank = source.randrange(WORKERS)
    os.kill(ranks[rank], signal.SIGKILL)
    return rank, ranks, time.monotonic()


def test_L1_L3_a_killed_rank_is_named_in_time(unharmed, tmp_path):
    source, killed = random.Random(1), 0
    while killed < TIMES:
        folder = tmp_path / "run"
        process = start(*GRIDWORLD, "--run_dir", folder)
        one = kill_one(process, source, unharmed[1] * 0.8)
        finish(process, 60)
        shutil.rmtree(folder, ignore_errors=True)
        if one is None:
            continue
        rank, ranks, moment = one
        assert time.monotonic() - moment < GRACE + 2
        assert not any(alive(pid) for pid in ranks)
        if process.returncode != 0:  # otherwise it had already finished
            assert process.returncode == 128 + signal.SIGKILL, process.stderr_text
            assert f"rank {rank}" in process.stderr_text.split("consequence")[0], process.stderr_text
            killed += 1


def test_L14_a_killed_job_goes_on_to_the_same_bits(unharmed, tmp_path):
    source, killed = random.Random(2), 0
    while killed < TIMES:
        folder = tmp_path / "run"
        process = start(*GRIDWORLD, "--run_dir", folder, "--max_restarts", 1)
        one = kill_one(process, source, unharmed[1] * 0.8)
        finish(process, 60)
        assert process.returncode == 0, process.stderr_text
        assert left(folder) == unharmed[0], (killed, process.stderr_text)
        shutil.rmtree(folder)
        killed += one is not None
