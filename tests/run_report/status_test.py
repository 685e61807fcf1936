"""`wdtrain status`: what a run does, while it trains and afterward, without disturbing it."""

import json
import os
import signal
import subprocess

import pytest

from checkpoint.runs import wait_for
from cli.program import output, wdtrain
from run_report.folders import make_run

PROGRAM = os.environ["WDTRAIN"]
DEMO = os.path.join(os.environ["WD_BUILD_DIR"], "run_demo")
SHORT = ["--env", "cartpole", "--device", "cpu", "--quiet", "--num_envs", 8, "--train_batch_size", 80, "--stop_return", "none"]


def fields(text):
    return dict(line.split(None, 1) for line in text.splitlines())


def demo(folder, intervals, milliseconds):
    """A run that does nothing but write its files."""
    settings = {"WD_DEMO_DIR": str(folder), "WD_DEMO_INTERVALS": str(intervals), "WD_DEMO_MS": str(milliseconds)}
    process = subprocess.Popen([DEMO], env={**os.environ, **settings}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: (folder / "summary.json").exists() and (folder / "metrics.jsonl").read_text())
    return process


def test_a_finished_run(tmp_path):
    output(*SHORT, "--total_steps", 800, "--run_dir", tmp_path / "run", "--set", "eval.every=5", "--set", "eval.episodes=5")
    found = fields(output("status", tmp_path / "run"))
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert found["status"].startswith("finished: total_steps")
    assert found["training"] == "cartpole, PPO, seed 1, on cpu, 1 worker"
    assert found["progress"].startswith("iteration 10, 800 of 800 steps (100.0 %), ") and "ETA" not in found["progress"]
    assert found["return"] == f"shared [cart] {rows[-1]['shared/recent_return']:.2f}"
    assert found["evaluation"].startswith(f"cart {rows[-1]['eval/cart/return']:.2f} [") and found["evaluation"].endswith("in iteration 10")
    assert found["checkpoint"].startswith("iteration 10, ")
    assert found["metrics"].startswith("iteration 10, ")
    assert found["policy"].split()[:4] == ["return", "length", "entropy", "KL"]
    assert found["shared"].split()[2] == f"{rows[-1]['shared/entropy']:.4f}"


def test_eta_and_percent_of_a_running_run(tmp_path):
    run = make_run(tmp_path / "run", {"shared/entropy": [1.0] * 100, "time/env_steps_per_s": [2000.0] * 100}, status="running")
    with open(run / ".lock", "w") as lock:
        lock.write(f"process {os.getpid()} on {os.uname().nodename}\n")
        lock.flush()
        subprocess.run(["flock", "-x", "-n", str(lock.fileno())], pass_fds=[lock.fileno()], check=True)
        found = fields(output("status", run))
    assert found["status"].startswith(f"running: process {os.getpid()} on ")
    assert found["progress"] == "iteration 100, 10.0k of 100k steps (10.0 %), 2.00k steps/s, ETA 7m30s"  # 90,000 at 200/s, the mean speed


def test_a_killed_run_shows_its_last_metrics(tmp_path):
    run = make_run(tmp_path / "run", {"shared/recent_return": [1.0 * k for k in range(49)]}, status="running", iterations=28, env_steps=2800, wall_s=14.0,
                   mean_return={"shared": 27.0})
    found = fields(output("status", run))
    assert found["status"].startswith("killed: ") and found["progress"].startswith("iteration 49, 4.90k of 100k steps")
    assert found["return"].endswith(" 48.00") and found["metrics"].startswith("iteration 49, ")


def locked(run, *arguments):
    """status of a run that a process uses."""
    with open(run / ".lock", "w") as lock:
        lock.write(f"process {os.getpid()} on {os.uname().nodename}\n")
        lock.flush()
        subprocess.run(["flock", "-x", "-n", str(lock.fileno())], pass_fds=[lock.fileno()], check=True)
        return output("status", run, *arguments)


def test_a_time_limit_that_ends_the_run_first(tmp_path):
    run = make_run(tmp_path / "run", {"shared/entropy": [1.0] * 100, "time/env_steps_per_s": [2000.0] * 100}, status="running")
    text = (run / "config.yaml").read_text()
    wall = json.loads((run / "summary.json").read_text())["wall_s"]
    for limit, words, ends_by in ((wall + 20, "stops in 20s", "max_seconds"), (wall + 1e6, "ETA 7m30s", "total_steps")):
        (run / "config.yaml").write_text(text.replace("max_seconds: 0\n", f"max_seconds: {limit}\n", 1))
        assert fields(locked(run))["progress"].endswith(f" steps/s, {words}")
        found = json.loads(locked(run, "--json"))
        assert found["ends_by"] == ends_by and found["seconds_left"] == pytest.approx(20 if ends_by == "max_seconds" else 450)
        assert (found["status"], found["process"], found["host"]) == ("running", os.getpid(), os.uname().nodename)


def test_json(tmp_path):
    output(*SHORT, "--total_steps", 800, "--run_dir", tmp_path / "run", "--set", "eval.every=5", "--set", "eval.episodes=5")
    found = json.loads(output("status", tmp_path / "run", "--json"))
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    expected = {"folder": str(tmp_path / "run"), "status": "finished", "stop_reason": "total_steps", "active": False, "process": None, "host": None, "env": "cartpole",
                "algorithm": "PPO", "device": "cpu", "workers": 1, "seed": 1, "iterations": 10, "steps": 800, "total_steps": 800, "seconds_left": None, "ends_by": None}
    assert {key: found[key] for key in expected} == expected
    assert found["metrics"] == rows[-1] == found["evaluation"]
    assert found["returns"] == {"shared": pytest.approx(rows[-1]["shared/recent_return"])}
    assert found["checkpoint"]["iteration"] == 10 and 0 <= found["checkpoint"]["age_s"] < 600 and 0 <= found["age_s"] < 600
    (line,) = output("status", tmp_path / "run", "--json", "--follow").splitlines()
    assert json.loads(line)["status"] == "finished"


def test_following_a_run_to_its_end(tmp_path):
    process = demo(tmp_path / "run", 18, 100)
    done = wdtrain("status", tmp_path / "run", "--follow")
    assert done.returncode == 0 and process.wait() == 0
    lines = done.stdout.splitlines()
    assert len(lines) >= 2 and len(set(lines)) == len(lines), "one line whenever something changed"
    assert lines[0].startswith("running | iteration ") and lines[-1].startswith("finished | iteration 18, 180k steps")
    assert "return tagger 27.00, runner -40.50" in lines[-1] and "\x1b" not in done.stdout


def test_following_a_run_that_is_killed(tmp_path):
    process = demo(tmp_path / "run", 1000, 50)
    watching = subprocess.Popen([PROGRAM, "status", tmp_path / "run", "--follow"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert watching.stdout.readline().startswith("running | ")
    process.kill()
    process.wait()
    _, errors = watching.communicate(timeout=30)
    assert watching.returncode == 1
    assert f"the run did not end well: killed: process {process.pid} on " in errors and "--resume" in errors


@pytest.mark.parametrize("state, code", [({"status": "finished"}, 0), ({"status": "stopped", "stop_reason": "max_seconds"}, 0),
                                         ({"status": "stopped", "stop_reason": "signal"}, 1), ({"status": "failed", "stop_reason": "no disk"}, 1)])
def test_the_exit_code_says_how_the_run_ended(tmp_path, state, code):
    run = make_run(tmp_path / "run", {"shared/entropy": [1.0]}, **state)
    done = wdtrain("status", run, "--follow")
    assert done.returncode == code
    assert code == 0 or f"the run did not end well: {state['status']}: {state['stop_reason']}" in done.stderr
    assert wdtrain("status", run).returncode == 0


def test_ctrl_c_leaves_the_run_alone(tmp_path):
    process = demo(tmp_path / "run", 12, 100)
    watching = subprocess.Popen([PROGRAM, "status", tmp_path / "run", "--follow"], stdout=subprocess.PIPE, text=True)
    assert watching.stdout.readline().startswith("running | ")
    watching.send_signal(signal.SIGINT)
    assert watching.wait(timeout=10) == -signal.SIGINT
    assert process.wait(timeout=30) == 0
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["status"] == "finished"


def test_a_terminal_is_refreshed_in_place(tmp_path):
    # The demo is stopped once the screen was drawn three times, however slow the machine is.
    process = demo(tmp_path / "run", 2000, 50)
    watching = subprocess.Popen(["script", "-qec", f"{PROGRAM} status {tmp_path / 'run'} --follow", "/dev/null"], stdout=subprocess.PIPE,
                                env={**os.environ, "TERM": "xterm"}, stdin=subprocess.DEVNULL)
    shown = b""
    while shown.count(b"\x1b[J") < 2:
        piece = os.read(watching.stdout.fileno(), 4096)
        assert piece, shown.decode()
        shown += piece
    process.kill()
    process.wait()
    shown += watching.stdout.read()
    assert watching.wait() == 1
    first, *later = shown.decode().split("\x1b[")
    rows = first.count("\n")
    assert first.startswith("status") and rows >= 4
    assert sum(piece == f"{rows}A\r" for piece in later) >= 2, "moves to the first line"
    assert f"killed: process {process.pid} on " in later[-1]


def test_a_folder_of_several_runs_is_refused(tmp_path):
    for name in ("a", "b"):
        make_run(tmp_path / name, {"shared/entropy": [1.0]})
    done = wdtrain("status", tmp_path)
    assert done.returncode == 2 and "holds 2 runs: name one of them" in done.stderr
    assert wdtrain("status").returncode == 2
