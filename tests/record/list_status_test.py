"""list_status_test.py: `wdtrain list` and `wdtrain status` tell what the runs of a folder do and how they ended."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time

import pytest

from cli.program import output, wdtrain

SHORT = ["--env", "cartpole", "--total_steps", 4096, "--quiet"]
ENDLESS = ["--env", "cartpole", "--total_steps", "1G", "--stop_return", "none", "--max_seconds", 200, "--quiet"]


def begin(folder):
    command = [os.environ["WDTRAIN"], *map(str, ENDLESS), "--run_dir", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    metrics = folder / "metrics.jsonl"
    while not metrics.exists() or metrics.read_text().count("\n") < 3:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    return process


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One run of every status."""
    folder = tmp_path_factory.mktemp("runs")
    assert wdtrain(*SHORT, "--run_dir", folder / "a" / "finished").returncode == 0
    assert wdtrain(*SHORT, "--run_dir", folder / "failed", "--fault", "rank=0,iter=2,kind=nan:reward").returncode == 1
    stopped = begin(folder / "stopped")
    stopped.send_signal(signal.SIGINT)
    assert stopped.wait(30) == 128 + signal.SIGINT
    killed = begin(folder / "killed")
    killed.kill()
    killed.wait(30)
    (folder / "broken").mkdir()
    (folder / "broken" / "summary.json").write_text('{"status": "fini')
    (folder / "empty").mkdir()
    running = begin(folder / "running")
    yield folder
    running.kill()
    running.wait(30)


def listed(folder, *options):
    return json.loads(output("list", folder, "--json", *options))


def test_every_status(runs):
    status = {os.path.basename(run["run"]): run["status"] for run in listed(runs)}
    assert status == {
        "finished": "finished", "failed": "failed", "stopped": "stopped", "killed": "killed", "running": "running",
        "broken": "unreadable",
    }


def test_numbers_are_those_of_the_run(runs):
    folder = runs / "a" / "finished"
    (run,) = listed(folder)
    summary = json.loads((folder / "summary.json").read_text())
    manifest = json.loads((folder / "checkpoints" / "latest" / "manifest.json").read_text())["checkpoint"]
    assert run["steps"] == summary["env_steps"] == 4096 == run["total_steps"]
    assert run["return"] == summary["mean_return"]["shared"] and run["best"] == manifest["best_return"]
    assert (run["env"], run["algorithm"], run["seed"], run["device"]) == ("cartpole", "PPO", 1, "cpu")
    assert run["size"] == sum(f.stat().st_size for f in folder.rglob("*") if f.is_file() and not f.is_symlink()
                              and not any(parent.is_symlink() for parent in f.parents))
    assert 0 <= run["age"] < 600


def test_order_and_filter(runs):
    steps = [run["steps"] for run in listed(runs, "--sort", "steps", "--reverse")]
    assert steps == sorted(steps, reverse=True)
    assert [run["status"] for run in listed(runs, "--filter", "status=killed")] == ["killed"]
    assert listed(runs, "--filter", "status=killed", "--filter", "env=pendulum") == []
    assert "none of the 6 runs" in output("list", runs, "--filter", "env=pendulum")
    best = [run["best"] for run in listed(runs, "--sort", "best")]
    assert best == sorted(best, key=lambda value: (value is None, value)), "unknown values come last"


@pytest.mark.parametrize("arguments, message", [
    (["list", "/nowhere"], "/nowhere: there is no such folder"),
    (["list", ".", "--sort", "stepps"], 'did you mean "steps"?'),
    (["list", ".", "--filter", "env"], "--filter env: must be KEY=VALUE"),
    (["status"], "name a run's folder"),
    (["status", "/"], "/: not a run's folder"),
])
def test_what_cannot_be_shown(tmp_path, arguments, message):
    done = wdtrain(*arguments, cwd=tmp_path)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_a_folder_without_runs(tmp_path):
    assert output("list", tmp_path) == f"no run is below {tmp_path}\n"
    assert listed(tmp_path) == []


def run_in_terminal(columns, *arguments):
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    command = [os.environ["WDTRAIN"], *map(str, arguments)]
    process = subprocess.Popen(command, stdout=follower, env=dict(os.environ, TERM="xterm"))
    os.close(follower)
    text = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:
            piece = b""
        if not piece:
            break
        text += piece
    process.wait(30)
    os.close(leader)
    return text.decode().replace("\r\n", "\n")


def test_a_narrow_terminal_gets_fewer_columns(runs):
    wide, narrow = run_in_terminal(300, "list", runs), run_in_terminal(len(str(runs)) + 45, "list", runs)
    assert "SIZE" in wide.splitlines()[0]
    assert "RETURN" in narrow.splitlines()[0] and "SIZE" not in narrow
    assert max(map(len, narrow.splitlines())) <= len(str(runs)) + 45 < max(map(len, wide.splitlines()))


@pytest.mark.parametrize("name, code, words", [
    ("running", 0, ["running, process ", "steps/s, eta ", "policy    return"]),
    ("a/finished", 0, ["finished, total_steps", "4.10k of 4.10k (100 %) steps", "PPO in cartpole, seed 1, cpu"]),
    ("stopped", 0, ["stopped, signal"]),
    ("failed", 1, ["failed, "]),
    ("killed", 1, ["killed (process ", "--resume "]),
    ("broken", 1, ["unreadable"]),
])
def test_status(runs, name, code, words):
    done = wdtrain("status", runs / name)
    assert done.returncode == code, done.stderr
    for word in words:
        assert word in done.stdout


def test_following_a_run_to_its_end(tmp_path):
    training = begin(tmp_path / "run")
    command = [os.environ["WDTRAIN"], "status", "--follow", str(tmp_path / "run")]
    follower = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    first = follower.stdout.readline()
    second = follower.stdout.readline()
    training.send_signal(signal.SIGINT)
    training.wait(30)
    rest = follower.stdout.read().splitlines()
    assert follower.wait(30) == 0
    iterations = [int(re.search(r"iteration (\d+)", line)[1]) for line in [first, second, *rest]]
    assert iterations == sorted(iterations) and iterations[0] < iterations[1]
    assert first.startswith("running | ") and rest[-1].startswith("stopped | ")


def test_following_does_not_keep_a_run_from_beginning(tmp_path):
    """Readers take the run's lock for an instant. A run that is resumed meanwhile must not fail because of that."""
    folder = tmp_path / "run"
    assert wdtrain(*SHORT, "--run_dir", folder).returncode == 0
    lock = os.open(folder / ".lock", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_SH)
    command = [os.environ["WDTRAIN"], "--resume", str(folder), "--total_steps", "8k", "--quiet"]
    refused = subprocess.run(command, capture_output=True, text=True)
    assert refused.returncode == 2 and "is in use by" in refused.stderr
    os.close(lock)
    assert subprocess.run(command, capture_output=True).returncode == 0
