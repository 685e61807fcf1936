"""Every command once on a GPU: train, resume, eval, trace, check, bench and --auto_scale. Also runs that end
by time and by a signal, which must keep what a GPU has computed."""

import json
import os
import signal
import subprocess
import time

import pytest

from checkpoint.runs import WDTRAIN, wait_for
from cli.program import output, wdtrain

DEVICE = "cuda"
TAG = ["--env", "tag_gridworld", "--device", DEVICE, "--num_envs", 64, "--train_batch_size", 1280, "--quiet", "--set",
       "saving.metrics_log_freq=5"]


@pytest.fixture(scope="module", autouse=True)
def gpu(tmp_path_factory):
    done = wdtrain("--env", "cartpole", "--device", DEVICE, "--total_steps", 1024, "--quiet", "--run_dir", tmp_path_factory.mktemp("first") / "run")
    if "no GPU can be used" in done.stderr:
        (pytest.fail if os.environ.get("WD_NEED_GPU") == "1" else pytest.skip)(f"no GPU: {done.stderr}")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "tag"
    output(*TAG, "--total_steps", 25600, "--run_dir", folder, "--strict_device")
    return folder


def summary(folder):
    return json.loads((folder / "summary.json").read_text())


def rows(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_train(trained):
    assert (summary(trained)["status"], summary(trained)["env_steps"]) == ("finished", 25600)
    assert len(rows(trained)) == 4


def test_resume(trained):
    output("--resume", trained, "--total_steps", 51200, "--device", DEVICE, "--quiet")
    assert (summary(trained)["status"], summary(trained)["env_steps"]) == ("finished", 51200)
    assert [row["iteration"] for row in rows(trained)] == list(range(5, 41, 5))


def test_eval(trained):
    result = json.loads(output("eval", "--run", trained, "--json", "--device", DEVICE, "--episodes", 50))
    assert result["episodes"] == 50


def evaluated(folder, *settings):
    """A training with graphs, evaluated and recorded in between or not."""
    output("--env", "tag_gridworld", "--device", DEVICE, "--num_envs", 16, "--train_batch_size", 160, "--quiet", "--total_steps", 960,
           "--strict_device", "--run_dir", folder, *settings)
    return folder


def test_evaluations_and_recordings_during_training(tmp_path):
    folder = evaluated(tmp_path / "run", "--set", "eval.every=2", "--set", "eval.episodes=20", "--set", "play.every=3")
    assert [row["iteration"] for row in rows(folder) if row.get("eval/tagger/return") is not None] == [2, 4, 6]
    assert sorted(page.name for page in (folder / "rollouts").iterdir()) == ["iteration_3.html", "iteration_6.html"]


def test_trace(tmp_path):
    (tmp_path / "in.json").write_text(json.dumps({"actions": []}))
    output("trace", "--script", tmp_path / "in.json", "--out", tmp_path / "out.json", "--env", "cartpole")
    assert json.loads((tmp_path / "out.json").read_text())["environment"] == "cartpole"


@pytest.mark.parametrize("environment", ["cartpole", "tag_gridworld"])
def test_check(environment):
    output("check", "--env", environment, "--device", DEVICE, "--seconds", 2)


def test_bench():
    result = json.loads(output("bench", "--env", "cartpole", "--device", DEVICE, "--seconds", 1, "--json"))
    assert result["env_steps_per_s"] > 0


def test_auto_scale(tmp_path):
    output("--env", "cartpole", "--device", DEVICE, "--auto_scale", "--stop_return", "none", "--total_steps", 10**12, "--max_seconds", 2, "--quiet", "--run_dir",
           tmp_path / "run", "--set", "autoscale.max_seconds=60", "--set", "autoscale.max_envs=4096", "--set", "autoscale.probe_seconds=0.2",
           timeout=300)
    assert summary(tmp_path / "run")["stop_reason"] == "max_seconds"


def test_max_seconds_ends_between_iterations(tmp_path):
    output(*TAG, "--total_steps", 10**9, "--max_seconds", 3, "--run_dir", tmp_path / "run")
    end = summary(tmp_path / "run")
    assert (end["status"], end["stop_reason"]) == ("stopped", "max_seconds")
    assert end["env_steps"] % 1280 == 0 and rows(tmp_path / "run")[-1]["iteration"] == end["iterations"]


def test_a_signal_is_heard_before_metrics_are_due(tmp_path):
    command = [*TAG, "--set", "saving.metrics_log_freq=1000000", "--total_steps", 10**9, "--run_dir", tmp_path / "run"]
    process = subprocess.Popen([WDTRAIN, *map(str, command)])
    wait_for((tmp_path / "run" / "config.yaml").exists, 60)
    time.sleep(3)  # some iterations
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert time.monotonic() - begin < 10
    assert summary(tmp_path / "run")["stop_reason"] == "signal"
