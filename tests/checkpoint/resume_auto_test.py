"""`--resume auto`: the same command begins a run, goes on with it and says that it has finished."""

import json
import os
import signal
import subprocess
import time

import pytest

from checkpoint.runs import EVERY, WDTRAIN, iterations, left, run, wait_for

SHORT = ["--env", "cartpole", "--num_envs", 8, "--train_batch_size", 56, *EVERY, "--set", "trainer.stop_return=1e9"]


def auto(folder, *more, steps=56 * 12, **settings):
    return run(*SHORT, "--total_steps", steps, "--run_dir", folder, "--resume", "auto", *more, **settings)


def starts(folder):
    return len((folder / "starts.jsonl").read_text().splitlines())


@pytest.fixture(scope="module")
def unharmed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unharmed") / "run"
    assert run(*SHORT, "--total_steps", 56 * 12, "--run_dir", folder).returncode == 0
    return left(folder)


@pytest.mark.parametrize("point", ["checkpoint.begun:1", "checkpoint.renamed:1", "checkpoint.begun:3", "checkpoint.linked:5", "write:150", "rename:2"])
def test_the_same_command_again_goes_on_from_wherever_it_was_killed(point, unharmed, tmp_path):
    folder = tmp_path / "someone's run"
    assert auto(folder, failpoint=point).returncode == -signal.SIGKILL
    done = auto(folder)
    assert (done.returncode, left(folder)) == (0, unharmed), done.stderr
    before = (folder / "summary.json").read_bytes()
    again = subprocess.run([WDTRAIN, *map(str, SHORT), "--total_steps", str(56 * 12), "--run_dir", folder, "--resume", "auto"], capture_output=True, text=True)
    assert again.returncode == 0 and "nothing is left to do" in again.stderr
    assert (folder / "summary.json").read_bytes() == before and starts(folder) == 2


def test_it_begins_in_an_empty_folder(unharmed, tmp_path):
    assert auto(tmp_path).returncode == 0
    assert left(tmp_path) == unharmed


def test_the_folder_may_be_a_setting_and_must_be_known(tmp_path):
    words = ["train", "cartpole", "--device", "cpu", "--total_steps", 56, "--resume", "auto"]
    assert run(*words, "--set", f"saving.run_dir={tmp_path / 'run'}").returncode == 0
    assert (tmp_path / "run" / "summary.json").exists()
    done = run(*words, cwd=tmp_path)
    assert (done.returncode, "give --run_dir" in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "runs").exists()


def test_another_folder_is_refused_as_without_it(tmp_path):
    (tmp_path / "precious").write_text("x")
    done = auto(tmp_path)
    assert (done.returncode, "is not empty (it holds precious)" in done.stderr) == (2, True), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]
    ended = tmp_path / "ended"
    assert auto(ended, steps=56).returncode == 0
    for path in (ended / "checkpoints").iterdir():
        path.rename(tmp_path / path.name)
    rows = (ended / "metrics.jsonl").read_text()
    done = auto(ended, steps=56)
    assert (done.returncode, "is not empty" in done.stderr, (ended / "metrics.jsonl").read_text()) == (2, True, rows), "it was trained, though its checkpoints are gone"


def test_settings_that_differ_from_the_run_are_refused(tmp_path):
    folder = tmp_path / "run"
    assert auto(folder, steps=112).returncode == 0
    for more, words in ((["--set", "policy.shared.lr=0.5"], "policy.shared.lr: "), (["--algorithm", "A2C"], "A2C"), (["--seed", 9], "trainer.seed: ")):
        done = auto(folder, *more)
        assert (done.returncode, words in done.stderr, "--allow_drift" in done.stderr) == (2, True, True), done.stderr
    (tmp_path / "mine.yaml").write_text("policy: {shared: {lr: 0.25}}")
    done = auto(folder, "--config", tmp_path / "mine.yaml")
    assert (done.returncode, " -> 0.25" in done.stderr) == (2, True), done.stderr
    other = run("--env", "pendulum", "--device", "cpu", "--run_dir", folder, "--resume", "auto")
    assert (other.returncode, 'name: "cartpole" -> "pendulum"' in other.stderr) == (2, True), other.stderr
    assert auto(folder, "--set", "policy.shared.lr=0.5", "--allow_drift", steps=168).returncode == 0
    assert iterations(folder) == 3 and json.loads((folder / "summary.json").read_text())["env_steps"] == 168


def test_it_waits_for_a_process_that_still_writes(tmp_path):
    folder = tmp_path / "run"
    words = [WDTRAIN, *map(str, SHORT), "--total_steps", "1G", "--run_dir", folder, "--resume", "auto"]
    before = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: iterations(folder) > 3)
    after = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert f"in use by process {before.pid} " in after.stderr.readline()
    time.sleep(0.5)
    assert after.poll() is None
    before.send_signal(signal.SIGTERM)
    assert before.wait(30) == 128 + signal.SIGTERM
    last = iterations(folder)
    wait_for(lambda: iterations(folder) > last)
    after.send_signal(signal.SIGTERM)
    assert after.wait(30) == 128 + signal.SIGTERM
    after.stderr.close()
    rows = [json.loads(line)["iteration"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert rows == list(range(1, len(rows) + 1)) and starts(folder) == 2


def test_weights_are_taken_where_it_begins(tmp_path):
    assert auto(tmp_path / "first", steps=112).returncode == 0
    words = [tmp_path / "second", "--warm_start", tmp_path / "first"]
    assert auto(*words, steps=112).returncode == 0
    once = left(tmp_path / "second")
    assert auto(*words, steps=168).returncode == 0
    assert left(tmp_path / "second")[0][:2] == once[0] and iterations(tmp_path / "second") == 3


def test_workers_and_restarts(tmp_path):
    words = ["--num_workers", 2, "--max_restarts", 1]
    assert run(*SHORT, "--total_steps", 56 * 12, "--run_dir", tmp_path / "once", *words).returncode == 0
    folder = tmp_path / "run"
    done = auto(folder, *words[:2], "--fault", "rank=1,iter=5,kind=kill")
    assert done.returncode == 137 and iterations(folder) < 12
    assert auto(folder, *words, "--fault", "rank=0,iter=9,kind=kill").returncode == 0
    assert left(folder) == left(tmp_path / "once") and starts(folder) == 3
