"""The output of workers: where it goes, and what happens if it cannot be written."""

import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from launcher.gangs import command, ended, environment, is_alive, iteration, run, started, wait_for, wait_for_workers


def test_lines_of_workers_are_shown_with_their_rank_and_kept_in_their_logs(tmp_path):
    done = run("--workers", 2, "--talk_before", 300, "--iterations", 2, "--run_dir", tmp_path)
    assert done.returncode == 0
    assert done.stdout == "stdout of rank 0\n"
    line = "x" * 99 + "\n"
    assert (tmp_path / "rank_0.log").read_text() == 3 * line + "rank 0 begins\n"
    said = "stdout of rank 1\n"  # comes by a pipe of its own: between which lines of stderr it stands is not fixed
    log = (tmp_path / "rank_1.log").read_text()
    assert log.splitlines(keepends=True).count(said) == 1 and log.replace(said, "") == 3 * line + "rank 1 begins\n"
    assert done.stderr.count("[rank 0] " + line) == done.stderr.count("[rank 1] " + line) == 3
    assert "[rank 1] stdout of rank 1\n" in done.stderr


def test_what_a_worker_writes_cannot_drive_a_terminal_and_long_lines_are_cut(tmp_path):
    text = "\x1b[2Jred\x07\r\n" + "é" * 5000 + "\nno end of line"
    done = run("--workers", 1, "--iterations", 1, "--say", text, "--run_dir", tmp_path)
    log = (tmp_path / "rank_0.log").read_text()
    assert log.startswith("rank 0 begins\n?[2Jred?\n")
    assert log.endswith("no end of line\n")
    assert log.count("é") == 5000 and max(map(len, log.splitlines())) <= 4096
    assert "\x1b" not in done.stderr and "[rank 0] no end of line\n" in done.stderr


def test_ten_megabytes_block_nobody(tmp_path):
    """Neither with a reader of stderr nor without one: a stalled reader misses lines, but the logs are
    complete."""
    size, lines = 10_000_000, 100_000
    done = run("--workers", 2, "--iterations", 1, "--talk", size, "--run_dir", tmp_path / "read")
    assert done.returncode == 0
    read_end, write_end = os.pipe()
    process = subprocess.Popen(command("--workers", 2, "--iterations", 1, "--talk", size, "--run_dir", tmp_path / "stalled"), env=environment(),
                               stdout=subprocess.DEVNULL, stderr=write_end)
    os.close(write_end)
    assert process.wait(timeout=30) == 0
    os.close(read_end)
    for folder in (tmp_path / "read", tmp_path / "stalled"):
        for rank in (0, 1):
            text = (folder / f"rank_{rank}.log").read_text()
            assert text.count("x" * 99 + "\n") == lines


def test_before_the_run_has_a_folder_a_bounded_part_is_kept(tmp_path):
    done = run("--workers", 1, "--talk_before", 3_000_000, "--iterations", 1, "--run_dir", tmp_path)
    text = (tmp_path / "rank_0.log").read_text()
    kept = text.count("x" * 99 + "\n")
    assert 9_000 < kept <= (2**20 + 2**16) / 100  # plus one pipe buffer of later output
    left_out = int(re.search(r"\((\d+) bytes left out here: the run had no folder yet\)", text)[1])
    assert left_out >= 3_000_000 - 100 * kept
    assert "rank 0 begins" in done.stderr


@pytest.mark.parametrize("closed", ["stdout", "stderr", "both", "reader"])
def test_closed_streams_change_nothing(closed, tmp_path):
    arguments = command("--workers", 2, "--iterations", 20, "--talk", 5000, "--run_dir", tmp_path)
    redirection = {"stdout": ">&-", "stderr": "2>&-", "both": ">&- 2>&-", "reader": "2>&1 | head -1"}[closed]
    script = f'set -o pipefail; "$@" {redirection}'
    done = subprocess.run(["bash", "-c", script, "bash", *arguments], env=environment(), capture_output=True, timeout=30)
    assert done.returncode == 0
    assert iteration(tmp_path) == 20
    assert (tmp_path / "rank_1.log").read_text().count("x" * 99) == 20 * 50


def test_a_log_folder_that_is_deleted_changes_nothing(tmp_path):
    folder = tmp_path / "run"
    with started("--workers", 2, "--iterations", 60, "--talk", 500, "--run_dir", folder) as process:
        wait_for(lambda: iteration(folder) > 2)
        folder.rename(tmp_path / "away")  # rename first, because workers write into the folder all the time
        shutil.rmtree(tmp_path / "away")
        assert ended(process)[0] == 0


def test_the_last_words_of_a_worker_are_kept(tmp_path):
    """The launcher is stopped until all workers have ended: it must read their remaining output from the
    pipes afterwards."""
    with started("--workers", 2, "--iterations", 30, "--talk", 1000, "--run_dir", tmp_path) as process:
        pids = wait_for_workers(process, 2)
        wait_for(lambda: iteration(tmp_path) > 2)
        process.send_signal(signal.SIGSTOP)
        wait_for(lambda: not any(map(is_alive, pids)))
        process.send_signal(signal.SIGCONT)
        code, text = ended(process)
    assert code == 0, text
    for rank in (0, 1):
        assert (tmp_path / f"rank_{rank}.log").read_text().count("x" * 99) == text.count(f"[rank {rank}] " + "x" * 99) == 300


def test_a_child_of_a_worker_that_keeps_the_pipe_open_holds_nobody_up(tmp_path):
    begin = time.monotonic()
    done = subprocess.run(command("--workers", 2, "--iterations", 2, "--grandchild", "yes", "--run_dir", tmp_path), env=environment(),
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=30)
    assert (done.returncode, time.monotonic() - begin < 8) == (0, True)
