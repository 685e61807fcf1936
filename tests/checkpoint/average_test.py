"""policy.NAME.average: a moving average of the weights, in files, in players and after a kill."""

import json
import shutil
import signal

import numpy
import pytest
from safetensors.numpy import load_file

from checkpoint.runs import left, options, resume, run
from cli.program import output, wdtrain

TRAININGS = [("tag_gridworld", "PPO, normalize_value: true", "tagger"), ("cartpole", "A2C, model: {normalize_input: true, separate_value: true}", "shared"),
             ("pendulum", "SAC, batch_size: 16, replay_ratio: 0.6, buffer_size: 300, learning_starts: 150, model: {separate_value: false, distribution: gsde, noise_every: 5}", "shared"),
             ("cartpole", "DQN, batch_size: 16, replay_ratio: 0.6, buffer_size: 300, learning_starts: 150", "shared")]
STATISTICS = ("_norm", "_moments")  # end the names of what no optimizer changes


def training(env, algorithm, policy, iterations=8, average=0.9):
    return [*options(env, algorithm, iterations, "trainer.intervals=iterations"), "--set", f"policy.{policy}.average={average}", "--set", f"policy.{policy}.lr=0.01"]


@pytest.fixture(scope="module", params=TRAININGS, ids=lambda one: " ".join(one)[:20])
def trained(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("average") / "run"
    done = run(*training(*request.param), "--set", "saving.checkpoint_freq=1", "--set", "saving.keep_last=100", "--run_dir", folder)
    assert done.returncode == 0, done.stderr
    return folder, request.param


def test_it_moves_once_after_each_iteration(trained):
    folder, (_, _, policy) = trained
    tau, average = numpy.float32(1 - 0.9), None
    for k in range(9):
        weights, found = (load_file(folder / f"checkpoints/{k:08}/weights/{name}.safetensors") for name in (policy, f"{policy}.average"))
        assert weights.keys() == found.keys()
        average = average or weights
        for name in weights:
            is_statistic = name.endswith(STATISTICS)
            average[name] = weights[name] if is_statistic or k == 0 else (1 - tau) * average[name] + tau * weights[name]
            assert numpy.array_equal(found[name], average[name]), (k, name)
    assert any((weights[name] != average[name]).any() for name in weights)
    last = folder / "weights" / f"{policy}.average.safetensors"
    assert all((array == average[name]).all() for name, array in load_file(last).items())
    assert len(list((folder / "weights").glob("*.average.safetensors"))) == 1, "policies without one have none"


def test_it_goes_on_with_the_same_bits(trained, tmp_path):
    _, param = trained
    for name, failpoint in (("whole", None), ("killed", "checkpoint.complete:3")):
        done = run(*training(*param), "--run_dir", tmp_path / name, failpoint=failpoint)
        assert done.returncode == (0 if failpoint is None else -signal.SIGKILL), done.stderr
    assert resume(tmp_path / "killed") == left(tmp_path / "whole")


@pytest.fixture(scope="module")
def cart(tmp_path_factory):
    """A run whose average is far behind its weights, and a copy that has the average as its weights."""
    place = tmp_path_factory.mktemp("cart")
    assert run(*training("cartpole", "PPO", "shared", 30, 0.98), "--set", "eval.every=10", "--set", "eval.episodes=20", "--run_dir", place / "run").returncode == 0
    shutil.copytree(place / "run", place / "copy", symlinks=True)
    shutil.copy(place / "run/weights/shared.average.safetensors", place / "copy/weights/shared.safetensors")
    return place


def evaluated(run, *words):
    return json.loads(output("eval", run, "--json", "--episodes", 20, *words))


def test_it_plays_by_name(cart):
    expected, plain = evaluated(cart / "copy"), evaluated(cart / "run")
    assert expected["returns"] != plain["returns"]
    for player, name in (("average", "average"), (f"{cart}/run:shared.average", f"{cart}/run:shared.average"),
                         (f"{cart}/run/checkpoints/latest:shared.average", f"{cart}/run/checkpoints/latest:shared.average")):
        found = evaluated(cart / "run", "--policy", f"cart={player}")
        assert (found["returns"], found["players"]) == (expected["returns"], {"cart": name})
    output("play", cart / "run", "--policy", "cart=average", "--out", cart / "average.json")
    output("play", cart / "copy", "--out", cart / "copy.json")
    steps = [json.loads((cart / f"{name}.json").read_text())["episodes"] for name in ("average", "copy")]
    assert len(steps[0]) == len(steps[1]) and [one["steps"] for one in steps[0]] == [one["steps"] for one in steps[1]]


def test_evaluations_of_a_training_judge_it_too(cart):
    rows = [json.loads(line) for line in (cart / "run/metrics.jsonl").read_text().splitlines()]
    last = [row for row in rows if "eval/cart/return" in row][-1]
    assert last["eval/cart_average/return_low"] <= last["eval/cart_average/return"] <= last["eval/cart_average/return_high"]
    assert last["eval/cart_average/return"] != last["eval/cart/return"]


def test_a_warm_start_begins_it_and_takes_it(cart, tmp_path):
    for name, there in (("weights", "shared"), ("average", "shared.average")):
        assert run(*training("cartpole", "PPO", "shared", 1), "--warm_start", f"shared={cart}/run:{there}", "--run_dir", tmp_path / name).returncode == 0
        taken = load_file(cart / f"run/weights/{there}.safetensors")
        for own in ("shared", "shared.average"):
            begun = load_file(tmp_path / name / f"checkpoints/{0:08}/weights/{own}.safetensors")
            assert all((begun[tensor] == taken[tensor]).all() for tensor in taken), (name, own)


def test_it_is_an_opponent(tmp_path):
    folder = tmp_path / "old"
    assert run(*training("tag_gridworld", "PPO", "tagger", 2), "--run_dir", folder).returncode == 0
    command = [*options("tag_gridworld", "PPO", 4), "--set", f"opponents.tagger=[self, \"{folder}:tagger.average\"]", "--run_dir", tmp_path / "new"]
    assert run(*command).returncode == 0
    average, kept = load_file(folder / "weights/tagger.average.safetensors"), load_file(tmp_path / "new/checkpoints/latest/opponents/tagger.1.safetensors")
    assert all((kept[f"1/{name}"] == array).all() for name, array in average.items())
    assert run("--resume", tmp_path / "new", "--total_steps", 336).returncode == 0


def test_workers_agree(tmp_path):
    command = [*training("cartpole", "PPO", "shared", 4), "--set", "trainer.canary_freq=1", "--num_workers", 2, "--run_dir", tmp_path / "two"]
    assert run(*command).returncode == 0
    assert run(*training("cartpole", "PPO", "shared", 4), "--run_dir", tmp_path / "one").returncode == 0
    one, two = (load_file(tmp_path / name / "weights/shared.average.safetensors") for name in ("one", "two"))
    assert all(numpy.allclose(one[name], two[name], rtol=1e-3, atol=1e-4) for name in one)


def test_reproduce_compares_it(cart, tmp_path):
    done = wdtrain("reproduce", cart / "run", "--run_dir", tmp_path / "again")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "shared.average.safetensors: the same bytes"), done.stderr


def test_it_is_no_policy_of_its_own(cart):
    wdtrain_package = pytest.importorskip("wdtrain")
    found = wdtrain_package.Run(cart / "run")
    assert found.policies == ["shared"]
    assert (found.weights("shared.average")["policy_head.bias"] == load_file(cart / "run/weights/shared.average.safetensors")["policy_head.bias"]).all()
    assert found.policy("shared.average") and found.policy()
    with pytest.raises(wdtrain_package.RunError, match="name a policy: shared"):
        found.weights("none.average")


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain") / "run"
    assert run(*options("cartpole", "PPO", 2), "--run_dir", folder).returncode == 0
    return folder


def test_a_run_without_one(plain):
    for player in ("average", f"{plain}:shared.average"):
        done = wdtrain("eval", plain, "--policy", f"cart={player}")
        assert done.returncode == 2 and f"--policy cart={player}: the run has no average of the weights of 'shared': it was trained with policy.shared.average = 0" in done.stderr, done.stderr
    done = run("--resume", plain, "--allow_drift", "--set", "policy.shared.average=0.9", "--total_steps", 224)
    assert done.returncode == 2 and "policy.shared.average: a checkpoint made without an average cannot go on with one: begin a new run with its weights (--warm_start)" in done.stderr
    package = pytest.importorskip("wdtrain")
    with pytest.raises(package.RunError, match=r"there is no shared.average: train with policy.shared.average above 0"):
        package.Run(plain).policy("shared.average")


@pytest.mark.parametrize("setting, message", [
    ("policy.shared.average=1", "policy.shared.average = 1: must be in [0, 0.999999]"),
    ("policy.shared.average=-0.1", "must be in [0, 0.999999]"),
    ("policy.shared={average: 0.9, to_train: false}", "policy.shared.average = 0.9: weights that do not change have no average"),
])
def test_settings_that_cannot_be(setting, message, tmp_path):
    done = run(*options("cartpole", "PPO", 2), "--set", setting, "--run_dir", tmp_path / "run")
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr
