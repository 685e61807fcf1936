"""Commands on the emulated GPU: those that cli/commands_gpu_test.py runs on a GPU, and trainings of two workers, whose
sums take the way that NCCL has on GPUs."""

import json
import os
import pathlib

import pytest

os.environ["WDTRAIN"] = str(pathlib.Path(os.environ["WD_BUILD_DIR"]) / "wdtrain_emulated")

from checkpoint.played_test import at, same, weights  # noqa: E402
from checkpoint.runs import left  # noqa: E402
from cli.commands_gpu_test import *  # noqa: E402, F403
from cli.commands_gpu_test import evaluated, rows, summary  # noqa: E402
from cli.program import output, wdtrain  # noqa: E402
from launcher.nvml import driver  # noqa: E402, F401

SMALL = ["--env", "tag_gridworld", "--device", "cuda", "--num_envs", 16, "--train_batch_size", 160, "--quiet", "--stop_return", "none",
         "--set", "saving.metrics_log_freq=1", "--set", "saving.checkpoint_freq=4"]


@pytest.fixture(autouse=True)
def gpus(driver, monkeypatch):  # noqa: F811
    for name, value in driver(2).items():
        monkeypatch.setenv(name, value)


def learned(folder):
    """The metrics of each iteration that depend on learning and are of all ranks; those that a row lacks are null."""
    is_chosen = lambda name: name.startswith(("tagger/", "runner/", "episode/")) and "action_std" not in name  # noqa: E731
    return [{name: value for name, value in row.items() if is_chosen(name) and value is not None} for row in rows(folder)]


def test_a_profile_is_of_iterations_alone(tmp_path):
    """Neither the start of the tracer nor the evaluation after iteration 4 is in its window."""
    output(*SMALL, "--num_gpus", 1, "--total_steps", 160 * 8, "--profile=4", "--set", "eval.every=4", "--set", "eval.episodes=10",
           "--run_dir", tmp_path / "run")
    profile = json.loads((tmp_path / "run" / "profile.json").read_text())
    assert (profile["device"], profile["iterations"], profile["env_steps"]) == ("cuda", 2, 2 * 160)
    assert 0.5 * profile["seconds"] < sum(profile["phases_s"].values()) <= profile["seconds"]


@pytest.mark.parametrize("graphs", ["true", "false"])
def test_two_workers_learn_what_one_learns(tmp_path, graphs):
    for workers in (1, 2):
        output(*SMALL, "--num_gpus", workers, "--total_steps", 1280, "--set", f"trainer.cuda_graphs={graphs}", "--run_dir", tmp_path / str(workers))
    one, two = learned(tmp_path / "1"), learned(tmp_path / "2")
    assert len(one) == 8 and len(one[-1]) > 20
    for a, b in zip(one, two, strict=True):
        assert a == pytest.approx(b, rel=1e-3, abs=1e-4)


def test_a_memory_that_no_gpu_holds_is_refused_with_the_reason(tmp_path):
    done = wdtrain(*SMALL, "--total_steps", 320, "--run_dir", tmp_path / "run", "--set", "policy={shared: {model: {type: gru, width: 513}}}")
    assert done.returncode == 2
    assert "model.type = gru: width = 513: a GPU holds at most 512 units: lower it, or take mingru" in done.stderr


def test_a_training_on_the_cpu_is_evaluated_on_the_gpu(tmp_path):
    """Which cannot hold its network: so an evaluation was tried there."""
    settings = [word.replace("cuda", "cpu") if isinstance(word, str) else word for word in SMALL]
    done = wdtrain(*settings, "--total_steps", 320, "--set", "eval.every=2", "--set", "eval.device=cuda", "--run_dir", tmp_path / "run",
                   "--set", "policy={shared: {model: {type: gru, width: 513}}}")
    assert done.returncode != 0 and "a GPU holds at most 512 units" in done.stderr, done.stderr
    assert (tmp_path / "run" / "checkpoints").exists()  # training had begun


def test_evaluations_change_no_bit_of_training(tmp_path):
    plain = evaluated(tmp_path / "plain")
    often = evaluated(tmp_path / "often", "--set", "eval.every=1", "--set", "eval.episodes=10", "--set", "play.every=2")
    assert (plain / "weights" / "tagger.safetensors").read_bytes() == (often / "weights" / "tagger.safetensors").read_bytes()


@pytest.mark.parametrize("training, evaluation", [("cuda", "cpu"), ("cpu", "cuda")])
def test_evaluations_run_on_another_device(tmp_path, training, evaluation):
    """The weights are those of a run without them, the numbers those of `eval` there, and a run that goes on keeps the place."""
    settings = [*(SMALL if training == "cuda" else [word.replace("cuda", "cpu") if isinstance(word, str) else word for word in SMALL]),
                "--set", "eval.every=2", "--set", "eval.episodes=10", "--set", f"eval.device={evaluation}", "--strict_device"]
    output(*settings, "--set", "eval.every=0", "--total_steps", 960, "--run_dir", tmp_path / "plain")
    output(*settings, "--total_steps", 960, "--run_dir", tmp_path / "whole")
    output(*settings, "--total_steps", 640, "--run_dir", tmp_path / "parts")
    output("--resume", tmp_path / "parts", "--total_steps", 960, "--device", training, "--quiet")
    for role in ("tagger", "runner"):
        learned = [(tmp_path / run / "weights" / f"{role}.safetensors").read_bytes() for run in ("plain", "whole", "parts")]
        assert learned[0] == learned[1] == learned[2]
    values = [{name: value for name, value in rows(tmp_path / run)[-1].items() if name.startswith("eval/")} for run in ("whole", "parts")]
    assert values[0] == values[1]
    said = json.loads(output("eval", "--run", tmp_path / "whole", "--json", "--device", evaluation, "--episodes", 10))
    for role in ("tagger", "runner"):
        assert values[0][f"eval/{role}/return"] == pytest.approx(said["returns"][role]["mean"], rel=1e-6)


def test_two_workers_on_the_cpu_are_evaluated_on_a_gpu(tmp_path):
    settings = [word.replace("cuda", "cpu") if isinstance(word, str) else word for word in SMALL]
    output(*settings, "--num_workers", 2, "--total_steps", 320, "--set", "eval.every=1", "--set", "eval.episodes=10", "--set", "eval.device=cuda",
           "--set", "play.every=2", "--run_dir", tmp_path / "run")
    assert [row["iteration"] for row in rows(tmp_path / "run") if "eval/tagger/return" in row] == [1, 2]
    assert (tmp_path / "run" / "rollouts" / "iteration_2.html").exists()


def test_two_workers_resume_exactly(tmp_path):
    for name, steps in (("whole", 1280), ("parts", 640)):
        output(*SMALL, "--num_gpus", 2, "--total_steps", steps, "--run_dir", tmp_path / name)
    output("--resume", tmp_path / "parts", "--num_gpus", 2, "--total_steps", 1280, "--device", "cuda", "--quiet")
    assert left(tmp_path / "parts") == left(tmp_path / "whole")


def test_an_algorithm_of_ones_own_learns_the_same_on_both_devices(tmp_path):
    """HYSTERETIC of examples/off_policy, whose loss is a kernel of its own; the race detector watches the device."""
    options = ["--env", "cartpole", "--num_envs", 4, "--train_batch_size", 16, "--total_steps", 1280, "--quiet", "--set", "saving.metrics_log_freq=160",
               "--set", "policy={shared: {algorithm: HYSTERETIC, replay_ratio: 4, learning_starts: 100, model: {fc_dims: [16], separate_value: false}}}"]
    for device in ("cuda", "cpu"):
        output(*options, "--device", device, "--run_dir", tmp_path / device)
    learned = [[{name: row[f"shared/{name}"] for name in ("value_loss", "value_mean", "negative_errors", "grad_norm")} for row in rows(tmp_path / device)]
               for device in ("cuda", "cpu")]
    assert len(learned[0]) == 8 and learned[0][-1]["value_mean"] > 0
    for cuda, cpu in zip(*learned, strict=True):
        assert cuda == pytest.approx(cpu, rel=1e-3, abs=1e-4, nan_ok=True)


GOAL = ["--env", "cartpole", "--device", "cuda", "--num_envs", 8, "--train_batch_size", 64, "--quiet", "--set", "env.episode_length=30",
        "--set", "policy={shared: {algorithm: PPO, lr: 0.002, normalize_value: true, model: {fc_dims: [16], normalize_input: true}}}"]


def test_a_goal_is_seen_when_returns_are_read_and_its_update_is_not_in_the_result(tmp_path):
    """The host reads returns every seventh iteration; the weights are those that played, and training goes on exactly."""
    often = ["--set", "saving.metrics_log_freq=1", "--set", "saving.checkpoint_freq=1", "--set", "saving.keep_last=1000"]
    whole = tmp_path / "whole"
    output(*GOAL, *often, "--total_steps", 64 * 66, "--stop_return", "none", "--run_dir", whole)
    returns = [row["shared/recent_return"] for row in rows(whole)]
    wanted = max(returns[55], returns[62])
    for name, reads in (("metrics", ["saving.metrics_log_freq=7", "saving.checkpoint_freq=100"]), ("checkpoints", ["saving.metrics_log_freq=1000", "saving.checkpoint_freq=7"])):
        options = [*GOAL, "--set", reads[0], "--set", reads[1], "--total_steps", 64 * 66]
        run = tmp_path / name
        output(*options, "--stop_return", wanted, "--run_dir", run)
        last = summary(run)["iterations"]
        assert last in (49, 56, 63) and returns[last - 1] >= wanted and summary(run)["stop_reason"] == "stop_return"
        checkpoint, played, after = run / "checkpoints" / f"{last:08}", at(whole, last - 1), at(whole, last)
        for place in (run, checkpoint):
            assert same(weights(place), weights(played)) and not same(weights(place), weights(after))
        assert same(weights(checkpoint, "trained"), weights(after))
        output("--resume", run, "--stop_return", "none", "--device", "cuda", "--quiet")
        assert left(run)[1]["weights/shared.safetensors"] == left(whole)[1]["weights/shared.safetensors"]


def test_the_best_checkpoint_is_the_same_however_seldom_returns_are_read(tmp_path):
    noisy = [word.replace("lr: 0.002", "lr: 0.00001") if isinstance(word, str) else word for word in GOAL]  # returns go up and down
    found = []
    for every in (1, 1000):
        run = tmp_path / str(every)
        output(*noisy, "--stop_return", "none", "--total_steps", 64 * 66, "--set", f"saving.metrics_log_freq={every}", "--set", "saving.checkpoint_freq=5", "--run_dir", run)
        found.append(json.loads((run / "checkpoints" / "latest" / "manifest.json").read_text())["checkpoint"])
    best = int(found[0]["best"])
    assert 0 < best <= 66 and found[0]["judged"]["steps"] > 0
    assert (found[1]["best"], found[1]["best_return"]) == (found[0]["best"], found[0]["best_return"])


def test_a_rank_that_fails_ends_the_other(tmp_path):
    done = wdtrain(*SMALL, "--num_gpus", 2, "--total_steps", 10**6, "--run_dir", tmp_path / "run", "--fault", "rank=1,iter=3,kind=throw")
    assert done.returncode == 1, done.stderr
    assert summary(tmp_path / "run")["status"] == "failed"
