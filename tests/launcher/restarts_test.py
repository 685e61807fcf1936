"""L14: restart of all workers."""

import signal

from launcher.gangs import LONG, ended, error, iteration, run, started, wait_for


def test_L14_all_start_again_from_the_newest_checkpoint(tmp_path):
    done = run("--workers", 3, "--restarts", 2, "--fault", "rank=1,iter=4,kind=kill", "--run_dir", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("restart 1 of 2") == 1
    assert "warning: rank 1 " in done.stderr
    assert iteration(tmp_path) == 10
    first, second = (tmp_path / "rank_2.log").read_text().split("--- restart 1 ---\n")
    assert sorted(first.splitlines()) == ["rank 2 begins", "stdout of rank 2"]
    assert sorted(second.splitlines()) == ["rank 2 begins", "rank 2 goes on with iteration 4", "stdout of rank 2"]
    assert error(tmp_path)["restart"] == 0


def test_L14_it_ends_early_where_a_restart_comes_no_further(tmp_path):
    done = run("--workers", 2, "--restarts", 5, "--fault", "rank=1,times=9,iter=4,kind=exit:3", "--run_dir", tmp_path)
    assert done.returncode == 3
    assert done.stderr.count(" of 5") == 1
    assert "no restart: the attempt before failed in iteration 4, and this one came no further" in done.stderr
    assert error(tmp_path)["restart"] == 1


def test_L14_no_more_restarts_than_asked_for(tmp_path):
    """Each attempt advances one iteration further."""
    faults = [part for k in range(9) for part in ("--fault", f"rank=1,iter={k + 2},times={k + 1},kind=throw")]
    done = run("--workers", 2, "--restarts", 3, *faults, "--run_dir", tmp_path)
    assert done.returncode == 1
    assert [done.stderr.count(f"restart {k} of 3") for k in (1, 2, 3, 4)] == [1, 1, 1, 0]
    assert error(tmp_path)["iteration"] == 5


def test_L14_a_signal_ends_restarts(tmp_path):
    with started("--workers", 2, *LONG, "--restarts", 5, "--careless", "yes", "--run_dir", tmp_path) as process:
        wait_for(lambda: iteration(tmp_path) > 2)
        process.send_signal(signal.SIGTERM)
        code, text = ended(process)
    assert (code, "restart 1" in text) == (143, False), text
