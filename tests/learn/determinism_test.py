# determinism_test.py: the same command gives the same bytes, for any number of threads.
import json
import os
import pathlib
import subprocess

import pytest

WDTRAIN = os.environ["WDTRAIN"]


def train(folder, *options):
    subprocess.run([WDTRAIN, *options, "--run_dir", str(folder), "--quiet"], check=True, timeout=250)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    metrics = [{k: v for k, v in row.items() if not k.startswith("time/")} for row in rows]
    weights = {p.name: p.read_bytes() for p in sorted((folder / "weights").iterdir())}
    return metrics, weights


@pytest.mark.parametrize("env,options", [
    ("cartpole", ["--total_steps", "6000"]),
    ("tag_gridworld", ["--num_envs", "64", "--train_batch_size", "6400", "--total_steps", "12800"]),
    ("tag_continuous", ["--set", "env.num_runners=20", "--num_envs", "40", "--train_batch_size", "800", "--total_steps", "1600",
                        "--set", "env.episode_length=15"]),
    ("pendulum", ["--total_steps", "5000"]),
    ("cartpole", ["--total_steps", "6000", "--set", "trainer.precision=bf16"]),
    ("tag_continuous", ["--set", "env.num_runners=20", "--num_envs", "40", "--train_batch_size", "800", "--total_steps", "1600",
                        "--set", "env.episode_length=15", "--set", "trainer.precision=bf16"]),
    ("tag_continuous", ["--set", "env.num_runners=20", "--num_envs", "40", "--train_batch_size", "800", "--total_steps", "1600",
                        "--set", "env.episode_length=15", "--set", "trainer.observations=table"]),
    ("cartpole", ["--total_steps", "6000", "--set", "policy.shared.model.layer_norm=true"]),
])
def test_metrics_and_weights_are_the_same_for_1_2_and_4_threads(tmp_path: pathlib.Path, env, options):
    first = train(tmp_path / "1", "--env", env, "--threads", "1", *options)
    assert first[0], "no metrics were written"
    assert train(tmp_path / "again", "--env", env, "--threads", "1", *options) == first
    assert train(tmp_path / "2", "--env", env, "--threads", "2", *options) == first
    assert train(tmp_path / "4", "--env", env, "--threads", "4", *options) == first


@pytest.mark.parametrize("env,policies,form", [
    ("tag_continuous", "{tagger: {algorithm: A2C, normalize_value: false%s}, runner: {algorithm: REINFORCE%s}}", "rows"),
    ("tag_continuous", "{tagger: {algorithm: A2C, normalize_value: false%s}, runner: {algorithm: REINFORCE%s}}", "table"),
    ("pendulum", "{shared: {algorithm: PPO, normalize_value: false, num_epochs: 1, num_minibatches: 1, model: {separate_value: true}%s}}", "rows"),
    ("tag_continuous", "{tagger: {algorithm: A2C, normalize_value: false, model: {layer_norm: true}%s}, runner: {algorithm: A2C, normalize_value: false%s}}", "table"),
])
def test_activations_kept_from_the_rollout_change_nothing(tmp_path: pathlib.Path, env, policies, form):
    """With normalize_value the values of the rollout are converted, and results differ by rounding."""
    reuse = ", reuse_activations: true"
    options = ["--env", env, "--set", "env.episode_length=10", "--set", f"trainer.observations={form}", "--num_envs", "24", "--train_batch_size", "480", "--total_steps", "1920"]
    runs = [train(tmp_path / name, *options, "--set", "policy=" + policies.replace("%s", given)) for name, given in (("anew", ""), ("kept", reuse))]
    assert runs[0] == runs[1]


def test_another_seed_gives_other_weights(tmp_path: pathlib.Path):
    options = ["--env", "cartpole", "--total_steps", "2000"]
    assert train(tmp_path / "1", *options, "--seed", "1") != train(tmp_path / "2", *options, "--seed", "2")
