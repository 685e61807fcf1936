"""`best` and a run that reaches stop_return have the weights that earned the return, not those of the update after it."""

import json
import signal

import numpy
import pytest
from safetensors.numpy import load_file

from checkpoint.runs import EVERY, left, run
from cli.program import output

EACH = ["--set", "saving.checkpoint_freq=1", "--set", "saving.keep_last=1000", "--set", "trainer.intervals=iterations"]
# The learning rate jumps: the update of iteration 60 ruins the policy, which returned 500.
COLLAPSE = ["--env", "cartpole", *EVERY, *EACH, "--total_steps", 65 * 1024, "--set",
            "policy.shared.lr=[[0, 1e-3], [60415, 1e-3], [60416, 5], [61440, 5], [61441, 1e-4]]"]
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


def manifest(folder):
    return json.loads((folder / "manifest.json").read_text())["checkpoint"]


def test_the_best_checkpoint_returns_what_is_claimed(collapse):
    best = collapse / "checkpoints" / "best"
    assert best.resolve().name < "00000060" and returned(best) >= 0.9 * manifest(best.parent / "latest")["best_return"] >= 400
    assert returned(at(collapse, 60)) < 100


@pytest.mark.parametrize("jump", [1, 5])
@pytest.mark.parametrize("iteration", [45, 52, 58, 65])
@pytest.mark.parametrize("seed", [402, 403, 404])
def test_best_is_no_policy_that_fell_while_its_return_rose(seed, iteration, jump, tmp_path):
    """recent_return rises for some iterations after an update that ruins the policy."""
    step = 1024 * iteration
    rate = f"[[0, 1e-3], [{step - 1}, 1e-3], [{step}, {jump}], [{step + 1024}, {jump}], [{step + 1025}, 1e-4]]"
    folder = trained(tmp_path / "run", "--env", "cartpole", *EVERY, *EACH, "--total_steps", 122_880, "--seed", seed, "--stop_return", "none",
                     "--set", f"policy.shared.lr={rate}")
    best = folder / "checkpoints" / "best"
    assert returned(best) >= 0.9 * manifest(folder / "checkpoints" / "latest")["best_return"]


def test_training_that_reaches_its_return_ends_with_the_weights_that_played(collapse, tmp_path):
    wanted = recent(collapse)[59]
    stopped = trained(tmp_path / "run", *COLLAPSE, "--stop_return", wanted)
    summary = json.loads((stopped / "summary.json").read_text())
    assert (summary["stop_reason"], summary["iterations"], summary["mean_return"]["shared"]) == ("stop_return", 60, wanted)
    assert (stopped / "checkpoints" / "latest").readlink().name == "00000060"
    for place in (stopped, stopped / "checkpoints" / "latest"):
        assert same(weights(place), weights(at(collapse, 59)))
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


def test_the_best_checkpoint_does_not_depend_on_interruptions_and_workers(tmp_path):
    arguments = game([NORMAL], "--stop_return", "none", "--set", "saving.checkpoint_freq=3")
    found = manifest(trained(tmp_path / "whole", *arguments) / "checkpoints" / "latest")
    assert found["judged"]["steps"] > 0 and found["best_return"] > 0
    assert run(*arguments, "--run_dir", tmp_path / "half", "--fault", "iter=50,kind=kill").returncode != 0
    assert run("--resume", tmp_path / "half").returncode == 0
    resumed = manifest(tmp_path / "half" / "checkpoints" / "latest")
    assert {key: resumed[key] for key in ("best", "best_return", "judged")} == {key: found[key] for key in ("best", "best_return", "judged")}
