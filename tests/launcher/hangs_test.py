"""L11: workers that make no progress."""

import os
import re
import signal
import time

import pytest

from launcher.gangs import (GRACE, LONG, SLACK, ended, is_alive, iteration, run, started, wait_for,
                            wait_for_workers)


def test_L11_a_stopped_worker_is_found_and_the_launcher_is_not_fooled_by_those_who_wait(tmp_path):
    with started("--workers", 4, *LONG, "--step", 0.6, "--run_dir", tmp_path) as process:
        pids = wait_for_workers(process, 4)
        wait_for(lambda: iteration(tmp_path) > 2)
        os.kill(pids[2], signal.SIGSTOP)
        begin = time.monotonic()
        code, text = ended(process)
        assert 0.5 < time.monotonic() - begin < 0.6 + 0.5 + GRACE + SLACK
    assert code == 124, text
    assert f"rank 2 (process {pids[2]}) failed" in text, text
    assert "it is stopped (SIGSTOP)" in text
    assert not any(map(is_alive, pids))


def test_L11_each_phase_has_its_own_limit(tmp_path):
    silent = ["--silent", "1:2:checkpoint:900", "--silent", "0:3:checkpoint:900"]
    done = run("--workers", 2, "--step", 0.4, "--start", 5, "--start_ms", 700, "--iterations", 4, *silent, "--run_dir", tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("phase, limit", [("starting", "start"), ("rollout", "step"), ("checkpoint", "checkpoint")])
def test_L11_and_is_found_within_it(phase, limit):
    silent = ["--start_ms", 60000] if phase == "starting" else ["--silent", f"1:2:{phase}:60000"]
    done = run("--workers", 2, f"--{limit}", 0.5, *silent)
    assert done.returncode == 124, done.stderr
    seconds = float(re.search(rf"phase {phase}: made no progress for ([0-9.]+) s", done.stderr)[1])
    assert 0.5 <= seconds < 2.5  # up to half a second of it is spent asking where it hangs


def test_L11_a_launcher_that_was_stopped_itself_blames_nobody(tmp_path):
    with started("--workers", 3, "--iterations", 5, "--silent", "1:3:rollout:3500", "--step", 2.5, "--run_dir", tmp_path) as process:
        wait_for(lambda: iteration(tmp_path) == 2)
        time.sleep(0.3)  # the launcher has seen the phase in which rank 1 is silent
        process.send_signal(signal.SIGSTOP)
        time.sleep(2.7)
        process.send_signal(signal.SIGCONT)
        code, text = ended(process)
    assert code == 0, text
