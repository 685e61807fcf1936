"""L1 to L4: one worker fails, all end, and the cause is named."""

import datetime
import os
import random
import re
import signal
import socket
import time

import pytest

from launcher.gangs import (GRACE, LONG, SLACK, ended, error, is_alive, iteration, run, started, wait_for,
                            wait_for_workers)


@pytest.mark.parametrize("deaf", ["no", "yes"])
def test_L1_killed_at_random_moments_nothing_is_left(deaf, tmp_path):
    """Deaf workers stay in their collective when a peer is gone, so the launcher must end them."""
    source = random.Random(deaf)
    for k in range(5 if deaf == "no" else 3):
        with started("--workers", 4, *LONG, "--ms", 1, "--deaf", deaf, "--run_dir", tmp_path / str(k)) as process:
            pids = wait_for_workers(process, 4)
            time.sleep(source.uniform(0, 0.15))
            victim = source.randrange(4)
            os.kill(pids[victim], signal.SIGKILL)
            begin = time.monotonic()
            code, text = ended(process)
            assert time.monotonic() - begin < GRACE + SLACK
        assert code == 137, text
        assert f"rank {victim} (process {pids[victim]}) failed" in text, text
        assert not any(map(is_alive, pids))


def test_L1_a_worker_that_reports_a_failure_and_does_not_end_is_ended(tmp_path):
    arguments = ["--fault", "rank=1,iter=3,kind=throw", "--linger", "1:60000", "--deaf", "yes"]
    with started("--workers", 3, *LONG, *arguments, "--run_dir", tmp_path) as process:
        wait_for(lambda: iteration(tmp_path) == 2)
        begin = time.monotonic()
        code, text = ended(process)
        assert time.monotonic() - begin < 2 * GRACE + SLACK
    assert code == 1, text
    assert error(tmp_path)["message"] == "fault on purpose in iteration 3"


def test_L1_one_that_ends_early_in_good_order_is_no_failure_but_the_others_must_not_wait_for_ever(tmp_path):
    done = run("--workers", 3, *LONG, "--leave", "1:3", "--deaf", "yes", "--step", 0.4, "--run_dir", tmp_path)
    assert done.returncode == 124, done.stderr
    assert "all workers of this node wait in the same collective" in done.stderr


ENDS = {
    "finished": ([], 0),
    "throw": (["--fault", "rank=1,iter=2,kind=throw"], 1),
    "usage": (["--usage", "1:2"], 2),
    "oom": (["--fault", "rank=1,iter=2,kind=oom"], 1),
    "exit:7": (["--fault", "rank=1,iter=2,kind=exit:7"], 7),
    "exit:255": (["--fault", "rank=0,iter=2,kind=exit:255"], 255),
    "exit:0": (["--fault", "rank=1,iter=2,kind=exit:0"], 1),  # exits without reporting that it had finished
    "kill": (["--fault", "rank=0,iter=2,kind=kill"], 128 + signal.SIGKILL),
    "segv": (["--fault", "rank=2,iter=2,kind=segv"], 128 + signal.SIGSEGV),
    "hang": (["--fault", "rank=1,iter=2,kind=hang", "--step", "0.3"], 124),
    "usage, restarts left": (["--usage", "1:2", "--restarts", "3"], 2),
}


@pytest.mark.parametrize("end", ENDS)
def test_L2_exit_codes(end, tmp_path):
    arguments, code = ENDS[end]
    done = run("--workers", 3, *arguments, "--run_dir", tmp_path)
    assert done.returncode == code, done.stderr
    assert ("error: rank" in done.stderr) == (code != 0)
    assert "restart 1" not in done.stderr


def test_L2_a_program_that_cannot_be_started_ends_with_1_and_its_name():
    done = run("--program", "/no/such/program")
    assert (done.returncode, done.stderr) == (1, "error: /no/such/program: cannot start it: No such file or directory\n")


@pytest.mark.parametrize("first", [0, 2])
def test_L3_of_two_failures_10_ms_apart_the_first_is_the_cause(first, tmp_path):
    """Both ranks report; the rank that fails first ends last."""
    second = 2 - first
    faults = ["--fault", f"rank={first},iter=3,kind=throw", "--fault", f"rank={second},iter=3,kind=throw", "--silent", f"{second}:3:rollout:10"]
    done = run("--workers", 3, *faults, "--linger", f"{first}:150", "--run_dir", tmp_path / "both")
    assert done.returncode == 1
    assert f"error: rank {first} " in done.stderr, done.stderr
    assert f"the same: rank {second}" in done.stderr
    assert "as a consequence: rank 1" in done.stderr
    assert error(tmp_path / "both")["rank"] == first
    assert error(tmp_path / "both", second)["secondary"] is False
    assert error(tmp_path / "both", 1)["secondary"] is True


def test_L3_a_report_of_a_consequence_is_never_the_cause(tmp_path):
    """Rank 0 notices the failure and ends at once; rank 1, the cause, ends without a report."""
    done = run("--workers", 4, "--fault", "rank=1,iter=3,kind=kill", "--run_dir", tmp_path)
    assert re.search(r"^error: rank 1 \(process \d+\) failed in iteration 3, phase rollout: was killed by SIGKILL \(by the system's "
                     r"out-of-memory killer, or by hand\)\n  as a consequence: ranks 0, 2, 3\n"
                     rf"  log: {tmp_path}/rank_1.log\n  details: {tmp_path}/error_rank_1.json$", done.stderr, re.M), done.stderr


def test_details_that_could_not_be_written_are_not_named(tmp_path):
    (tmp_path / "error_rank_1.json/in_the_way").mkdir(parents=True)
    done = run("--workers", 2, "--fault", "rank=1,iter=3,kind=kill", "--run_dir", tmp_path)
    assert "the failure cannot be written down" in done.stderr and "details:" not in done.stderr, done.stderr
    assert f"  log: {tmp_path}/rank_1.log" in done.stderr, done.stderr


FAULTS = {
    "throw": ("fault on purpose in iteration 3", None, 1),
    "oom": ("std::bad_alloc", None, 1),
    "kill": ("was killed by SIGKILL (by the system's out-of-memory killer, or by hand)", "SIGKILL", None),
    "segv": ("segmentation fault", "SIGSEGV", None),
    "exit:9": ("ended with exit code 9", None, 9),
    "hang": ("; ranks 0, 2 wait for it in a collective", None, None),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_L4_error_json(kind, tmp_path):
    before = datetime.datetime.now(datetime.timezone.utc)
    done = run("--workers", 3, "--fault", f"rank=1,iter=3,kind={kind}", "--step", 0.5, "--run_dir", tmp_path)
    assert done.returncode != 0
    found, (message, name, code) = error(tmp_path), FAULTS[kind]
    assert found == error(tmp_path, 1)
    assert message in found["message"]
    assert (found["signal"], found["exit_code"]) == (name, code)
    assert (found["rank"], found["local_rank"], found["iteration"], found["phase"]) == (1, 1, 3, "rollout")
    assert (found["host"], found["device"], found["secondary"], found["restart"]) == (socket.gethostname(), "cpu", False, 0)
    assert f"(process {found['pid']})" in done.stderr
    time_of_it = datetime.datetime.fromisoformat(found["time"].replace("Z", "+00:00"))
    assert before - datetime.timedelta(seconds=0.01) <= time_of_it <= datetime.datetime.now(datetime.timezone.utc)
    has_stack = any("wd::Fault::inject(long) const" in frame for frame in found["backtrace"])
    assert has_stack == (kind in ("segv", "hang")), found["backtrace"]
    for rank in (0, 2):
        other = error(tmp_path, rank)
        assert (other["secondary"], other["message"], other["exit_code"]) == (True, "connection closed by peer", 1)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT])
def test_L4_every_crash_leaves_a_backtrace_and_its_own_signal(number, tmp_path):
    with started("--workers", 2, *LONG, "--ms", 20, "--run_dir", tmp_path) as process:
        pids = wait_for_workers(process, 2)
        wait_for(lambda: iteration(tmp_path) > 2)
        os.kill(pids[1], number)
        code, text = ended(process)
    assert code == 128 + number, text
    assert error(tmp_path)["signal"] == number.name
    assert error(tmp_path)["backtrace"]


def test_L4_a_worker_that_the_launcher_ends_has_no_report(tmp_path):
    run("--workers", 3, "--fault", "rank=1,iter=3,kind=kill", "--deaf", "yes", "--run_dir", tmp_path)
    assert sorted(path.name for path in tmp_path.glob("error*")) == ["error.json", "error_rank_1.json"]
