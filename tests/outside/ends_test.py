"""ends_test.py: however a training in an environment in Python ends, it ends as promised, and no process is left, helpers of the game included."""

import contextlib
import json
import os
import pathlib
import pty
import signal
import subprocess
import sys
import termios
import time

import pytest

ROOT = pathlib.Path(os.environ["WD_SOURCE_DIR"])
sys.path.insert(0, str(ROOT / "tests" / "cli"))
sys.path.insert(0, str(ROOT / "tests" / "outside"))

from outside_games import free_port  # noqa: E402
from program import wdtrain  # noqa: E402

SLOWDOWN = int(os.environ.get("WD_SLOWDOWN", 1))
ENDLESS = ["--total_steps", "1G", "--stop_return", "none", "--num_envs", "8", "--train_batch_size", "256", "--run_dir", "run", "--device", "cpu",
           "-s", "saving.checkpoint_freq=100000", "-s", "trainer.intervals=iterations"]
SHORT = ["--total_steps", 2048, "--num_envs", 8, "--train_batch_size", 512, "--run_dir", "run", "--device", "cpu", "-s", "env.processes=2"]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "outside_games.py").symlink_to(ROOT / "tests" / "outside" / "outside_games.py")
    yield
    wait_for(lambda: not processes_in(tmp_path), 5)


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds * SLOWDOWN
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def processes_in(folder, word=b""):
    """Ids of the processes whose working folder this is, and whose command has this word."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.readlink(path / "cwd") == str(folder) and int(path.name) != os.getpid() and word in (path / "cmdline").read_bytes():
                found.append(int(path.name))
    return found


def parent_of(process):
    return int(pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def games():
    return processes_in(pathlib.Path.cwd(), b"worker.py")


@contextlib.contextmanager
def training(*arguments, iterations=3, **more):
    """The program, once it has trained."""
    with open("said", "w") as said, subprocess.Popen([os.environ["WDTRAIN"], "train", *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                                     stderr=said, start_new_session=True, **more) as program:
        rows = pathlib.Path("run/metrics.jsonl")
        try:
            wait_for(lambda: program.poll() is not None or (rows.exists() and rows.read_bytes().count(b"\n") >= iterations))
            assert program.poll() is None, pathlib.Path("said").read_text()
            yield program
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)


def summary():
    return json.loads(pathlib.Path("run/summary.json").read_text())


@pytest.mark.parametrize("env", ["cartpole", "gym:CartPole-v1"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("to", ["process", "group"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_signal_leaves_a_checkpoint_of_that_moment(workers, to, number, env):
    many = ["--num_workers", 2, "--threads", 1] if workers == 2 else []
    with training("--env", env, *ENDLESS, *many) as program:
        os.killpg(program.pid, number) if to == "group" else program.send_signal(number)
        code = program.wait(30 * SLOWDOWN)
    said = pathlib.Path("said").read_text()
    assert code == 128 + number and "error" not in said, said
    assert summary()["status"] == "stopped" and int(os.readlink("run/checkpoints/latest")) == summary()["iterations"]


def test_a_job_of_which_all_processes_are_told_leaves_a_checkpoint():
    """As service managers and schedulers do it."""
    with training("--env", "gym:CartPole-v1", *ENDLESS) as program:
        for one in [*games(), program.pid]:
            os.kill(one, signal.SIGTERM)
        assert program.wait(30 * SLOWDOWN) == 143
    assert summary()["status"] == "stopped" and int(os.readlink("run/checkpoints/latest")) == summary()["iterations"]


@pytest.mark.parametrize(("how", "code"), [
    ("no", 0), ("raise", 1), ("kill", 1), ("exit", 1), ("hang", 1), ("close hangs", 0), ("close exits", 0), ("thread stays", 0), ("make", 2),
])
def test_helpers_end_with_their_game(how, code):
    begun = time.monotonic()
    done = wdtrain("train", "--env", "outside_games:helped", "-s", f"env.kwargs={{how: {how}}}", "-s", "env.step_seconds=3", *SHORT)
    assert done.returncode == code and time.monotonic() - begun < 40 * SLOWDOWN, done.stderr
    assert how == "kill" or "SIGKILL" not in done.stderr, done.stderr
    assert how != "no" or "warning" not in done.stderr, done.stderr
    if how == "close hangs":
        assert "has not answered for 10 s (close())" in done.stderr and "its environments were to be closed" in done.stderr, done.stderr
    # The place looks for processes.


@pytest.mark.parametrize(("workers", "victim"), [(1, "program"), (1, "game"), (2, "program"), (2, "worker"), (2, "game")])
def test_helpers_end_with_a_process_that_is_killed(workers, victim):
    many = ["--num_workers", 2, "--threads", 1, "--grace_seconds", 2] if workers == 2 else []
    with training("--env", "outside_games:helped", *ENDLESS, "-s", "env.processes=1", *many) as program:
        here = pathlib.Path.cwd()
        worker = max(one for one in processes_in(here, b"wdtrain\0train"))
        os.kill({"program": program.pid, "worker": worker, "game": next(one for one in games() if parent_of(one) == worker)}[victim], signal.SIGKILL)
        assert program.wait(30 * SLOWDOWN) != 0
        wait_for(lambda: not processes_in(here), 5)


def test_a_game_whose_helper_holds_a_port_starts_anew():
    done = wdtrain("train", "--env", "outside_games:helped", "-s", f"env.kwargs={{how: hang, port: {free_port()}, at: 30, once: {os.getcwd()}/once}}", "-s",
                   "env.step_seconds=2", "-s", "env.on_failure=restart", "--num_envs", 1, "--train_batch_size", 128, "--total_steps", 512, "--device", "cpu")
    assert done.returncode == 0 and done.stderr.count("the process starts anew") == 1, done.stderr


def test_an_ignored_sigchld_hides_no_end():
    """Some supervisors ignore it, and what they start does so too."""
    begun = time.monotonic()
    done = wdtrain("train", "--env", "outside_games:failing", "-s", "env.kwargs={how: kill}", *SHORT, preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert done.returncode == 1 and "was killed by signal 9 (SIGKILL)" in done.stderr, done.stderr
    assert time.monotonic() - begun < 15 * SLOWDOWN


def test_a_stopped_game_does_not_stop_the_end():
    with training("--env", "gym:CartPole-v1", *ENDLESS) as program:
        for one in games():
            os.kill(one, signal.SIGSTOP)
        time.sleep(0.5)
        program.send_signal(signal.SIGTERM)
        assert program.wait(10 * SLOWDOWN) == 143
    assert "was stopped (SIGSTOP), and goes on" in pathlib.Path("said").read_text()


def test_the_terminal_stops_no_game():
    """Games are in the background of the terminal: they read nothing, and may write even where `stty tostop` forbids it."""
    master, slave = pty.openpty()
    settings = termios.tcgetattr(slave)
    settings[3] |= termios.TOSTOP
    termios.tcsetattr(slave, termios.TCSANOW, settings)
    command = ["setsid", "--ctty", "--wait", os.environ["WDTRAIN"], "train", "--env", "outside_games:terminal", *map(str, SHORT)]
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave) as program:
        os.close(slave)
        said = b""
        with contextlib.suppress(OSError):  # at the end of the terminal
            while text := os.read(master, 65536):
                said += text
        code = program.wait(60 * SLOWDOWN)
    os.close(master)
    assert code == 0 and b"nothing to read" in said and said.count(b"a step") >= 1000, said[-2000:]
    assert b"was stopped" not in said
