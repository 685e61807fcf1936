"""A game that never ends (tests/learn/geometric.cu): training says so once, and no evaluation waits for ever."""

import json
import os
import pathlib
import subprocess

FAULTY = pathlib.Path(os.environ["WD_BUILD_DIR"]) / "faulty"
WORDS = "env: an episode has not ended after {} steps, and no limit is known: set env.time_limit, or in C++ Spec::time_limit"


def faulty(*arguments):
    return subprocess.run([FAULTY, *map(str, arguments)], capture_output=True, text=True, timeout=300)


def train(run, *settings, steps=48_000):
    return faulty("--env", "geometric", "--device", "cpu", "--run_dir", run, "--num_envs", 4, "--train_batch_size", 4000, "--total_steps", steps,
                  *(word for setting in ["saving.metrics_log_freq=1", "policy={player: {algorithm: PPO, num_epochs: 1, model: {fc_dims: []}}}", *settings] for word in ("--set", setting)))


def test_an_episode_without_end_is_named_once_and_an_evaluation_gives_it_up(tmp_path):
    done = train(tmp_path / "run", "env.end=0")
    said = done.stdout + done.stderr
    assert done.returncode == 0 and said.count("has not ended") == 1 and WORDS.format(10_000) in said, said
    done = faulty("eval", tmp_path / "run", "--episodes", 2, "--json")
    assert done.returncode == 2 and WORDS.format(30_000) in done.stderr, done.stderr


def test_long_episodes_with_a_limit_are_played(tmp_path):
    done = train(tmp_path / "run", "env.end=0", "env.limit=31000")
    assert done.returncode == 0 and "has not ended" not in done.stdout + done.stderr
    done = faulty("eval", tmp_path / "run", "--episodes", 1, "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["length"]["mean"] == 31_000, done.stderr


def test_training_goes_on_where_its_evaluation_gives_up(tmp_path):
    done = train(tmp_path / "run", "env.end=0", "eval.every=1", "eval.episodes=2", "eval.opponent=none", steps=4000)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert len(lines) == 1 and lines[0]["eval/player/return"] is None
