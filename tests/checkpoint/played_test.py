"""`best` and a run that reaches stop_return have the weights that earned the return, not those of the update after it."""

import json
import signal

import numpy
import pytest
from safetensors.numpy import load_file

from checkpoint.runs import EVERY, left, run
from cli.program import output

EACH = ["--set", "saving.checkpoint_freq=1", "--set", "saving.keep_last=1000", "--set", "trainer.intervals=iterations"]
# The learning rate jumps: the update of iteration 62 ruins the policy, which returned 500.
COLLAPSE = ["--env", "cartpole", *EVERY, *EACH, "--total_steps", 65 * 1024, "--set",
            "policy.shared.lr=[[0, 1e-3], [62463, 1e-3], [62464, 5], [63488, 5], [63489, 1e-4]]"]
NORMAL = "policy={shared: {algorithm: PPO, lr: 0.002, normalize_value: true, model: {fc_dims: [16], normalize_input: true}}}"
REPLAY = "policy={shared: {algorithm: DQN, lr: 0.002, batch_size: 16, replay_ratio: 4, buffer_size: 1000, learning_starts: 100, target_every: 112, model: {fc_dims: [16], separate_value: false}}}"
ENTROPY = "policy={shared: {algorithm: SAC, lr: 0.002, batch_size: 16, replay_ratio: 1, buffer_size: 1000, learning_starts: 100, model: {fc_dims: [16], separate_value: false}}}"
GAMES = {"statistics": [NORMAL], "bf16": [NORMAL, "--set", "trainer.precision=bf16"], "two_workers": [NORMAL, "--num_workers", 2],
         "replay": [REPLAY], "critics": [ENTROPY]}


def game(settings, *more):
    return ["--env", "cartpole", *EVERY, *EACH, "--num_envs", 8, "--train_batch_size", 64, "--total_steps", 64 * 70, "--set", "env.episode_length=30", "--set", *settings, *more]


def trained(folder, *arguments):
    done = run(*arguments, "--run_dir", folder)
    assert done.returncode == 0, done.stderr
    return folder


def weights(folder, part="weights"):
    return load_file(folder / part / "shared.safetensors")


def same(a, b):
    assert a.keys() == b.keys()
    return all(numpy.array_equal(a[name], b[name]) for name in a)


def at(folder, iteration):
    return folder / "checkpoints" / f"{iteration:08}"


def recent(folder):
    """recent_return after each iteration, from the first on."""
    return [json.loads(line)["shared/recent_return"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


def returned(folder):
    return json.loads(output("eval", "--run", folder, "--json", "--device", "cpu", "--episodes", 50))["returns"]["cart"]["mean"]


def goal(folder):
    """The highest return after each replica has played its share: 13 episodes of 30 steps at most."""
    return max(recent(folder)[13 * 30 // 8 : -5])


def iterations(folder):
    return json.loads((folder / "summary.json").read_text())["iterations"]


@pytest.fixture(scope="module")
def collapse(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("collapse") / "run", *COLLAPSE, "--stop_return", "none")


def test_the_best_checkpoint_is_the_one_whose_weights_played(collapse):
    assert max(recent(collapse)) == recent(collapse)[61]
    assert (collapse / "checkpoints" / "best").readlink().name == "00000061"
    assert returned(collapse / "checkpoints" / "best") >= 475
    assert returned(at(collapse, 62)) < 100


def test_training_that_reaches_its_return_ends_with_the_weights_that_played(collapse, tmp_path):
    wanted = recent(collapse)[61]
    stopped = trained(tmp_path / "run", *COLLAPSE, "--stop_return", wanted)
    summary = json.loads((stopped / "summary.json").read_text())
    assert (summary["stop_reason"], summary["iterations"], summary["mean_return"]["shared"]) == ("stop_return", 62, wanted)
    assert (stopped / "checkpoints" / "latest").readlink().name == "00000062"
    for place in (stopped, stopped / "checkpoints" / "latest", stopped / "checkpoints" / "best"):
        assert same(weights(place), weights(at(collapse, 61)))
        assert returned(place) >= 475


@pytest.fixture(scope="module", params=GAMES)
def whole(request, tmp_path_factory):
    arguments = game(GAMES[request.param])
    return arguments, trained(tmp_path_factory.mktemp(request.param) / "run", *arguments, "--stop_return", "none")


def test_no_update_follows_the_goal_and_training_can_go_on_as_if_there_had_been_none(whole, tmp_path):
    arguments, folder = whole
    workers = ["--num_workers", 2] if "--num_workers" in arguments else []
    wanted = goal(folder)
    stopped = trained(tmp_path / "stopped", *arguments, "--stop_return", wanted)
    iteration = iterations(stopped)
    assert iteration < 70 and recent(stopped) == recent(folder)[:iteration] and recent(stopped)[-1] >= wanted
    assert same(weights(stopped), weights(at(folder, iteration - 1))) and not same(weights(stopped), weights(at(folder, iteration)))
    assert same(weights(at(stopped, iteration)), weights(stopped))
    assert same(weights(at(stopped, iteration), "trained"), weights(at(folder, iteration)))
    assert not (at(stopped, iteration - 1) / "trained").exists()
    expected = left(stopped)
    for point in (iteration // 2, iteration):
        assert run(*arguments, "--stop_return", wanted, "--run_dir", tmp_path / f"{point}", "--fault", f"iter={point},kind=kill").returncode != 0
        assert run("--resume", tmp_path / f"{point}", *workers).returncode == 0
        assert left(tmp_path / f"{point}") == expected
    assert run("--resume", stopped, *workers, "--stop_return", "none").returncode == 0
    assert left(stopped) == left(folder)


@pytest.mark.parametrize("point", ["checkpoint.complete", "checkpoint.linked"])
def test_a_run_killed_behind_its_goal_ends_with_the_weights_that_played(tmp_path, point):
    arguments = game([NORMAL])
    arguments += ["--stop_return", goal(trained(tmp_path / "whole", *arguments, "--stop_return", "none"))]
    expected = left(trained(tmp_path / "unharmed", *arguments))
    iteration = iterations(tmp_path / "unharmed")
    assert same(weights(tmp_path / "unharmed"), weights(at(tmp_path / "whole", iteration - 1)))
    done = run(*arguments, "--run_dir", tmp_path / "run", failpoint=f"{point}:{iteration + 1}")
    assert done.returncode == -signal.SIGKILL
    assert run("--resume", tmp_path / "run").returncode == 0
    assert left(tmp_path / "run") == expected


@pytest.mark.parametrize("freq", [1, 3, 7])
def test_a_checkpoint_is_judged_by_the_first_rollout_after_it(tmp_path, freq):
    noisy = NORMAL.replace("lr: 0.002", "lr: 0.00001")  # returns go up and down
    arguments = game([noisy], "--stop_return", "none", "--set", f"saving.checkpoint_freq={freq}")
    folder = trained(tmp_path / "run", *arguments)
    returns = recent(folder)
    manifest = json.loads((folder / "checkpoints" / "latest" / "manifest.json").read_text())["checkpoint"]
    best = int(manifest["best"])
    assert manifest["best_return"] == pytest.approx(returns[best], rel=1e-6), "after the iteration that follows"
    assert best % freq == 0
    assert manifest["best_return"] >= max(returns[k] for k in range(freq, 70, freq) if k >= 13 * 30 // 8)
