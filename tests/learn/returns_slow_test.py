# returns_slow_test.py: shipped configurations reach the returns stated in the README, over several seeds.
import json
import os
import pathlib
import statistics
import subprocess

import pytest

WDTRAIN = os.environ["WDTRAIN"]


def summary_of(folder: pathlib.Path, *options):
    subprocess.run([WDTRAIN, *options, "--run_dir", str(folder), "--quiet"], check=True, timeout=600)
    return json.loads((folder / "summary.json").read_text())


# The mean of 36 seeds (1 to 10, 101 to 126), and the standard error of a mean of ten of them (docs/learning).
CARTPOLE_STEPS, CARTPOLE_ERROR = 79_474, 3_700


def test_cartpole_needs_no_more_steps_to_475_than_it_did(tmp_path):
    steps = []
    for seed in range(1, 11):
        summary = summary_of(tmp_path / str(seed), "--env", "cartpole", "--seed", str(seed))
        assert summary["stop_reason"] == "stop_return"
        assert summary["mean_return"]["shared"] >= 475
        steps.append(summary["env_steps"])
    print(f"steps to 475: {steps}, mean {statistics.mean(steps):.0f}, deviation {statistics.stdev(steps):.0f}")
    assert statistics.mean(steps) <= CARTPOLE_STEPS + 3 * CARTPOLE_ERROR


SEEDS = range(1, 9)


def mean_over_training(folder, *options):
    """The return averaged over the whole training: slower learning lowers it even if the final return is the same."""
    summary_of(folder, *options)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return statistics.mean(row["shared/mean_return"] for row in rows if row["shared/mean_return"] is not None)


@pytest.mark.parametrize("env, steps", [("cartpole", 81_920), ("pendulum", 409_600)])
def test_returns_in_bf16_match_fp32_at_equal_steps(tmp_path, env, steps):
    averages = {
        precision: [
            mean_over_training(tmp_path / f"{precision}_{seed}", "--env", env, "--seed", str(seed), "--stop_return", "none",
                               "--total_steps", str(steps), "--set", f"trainer.precision={precision}") for seed in SEEDS
        ]
        for precision in ("fp32", "bf16")
    }
    print(f"{env}: {averages}")
    means = {precision: statistics.mean(values) for precision, values in averages.items()}
    variance = sum(statistics.variance(values) / len(values) for values in averages.values())
    assert abs(means["bf16"] - means["fp32"]) <= 3 * variance**0.5
    # The spread of the seeds must not be what hides a difference.
    assert 3 * variance**0.5 <= 0.25 * abs(means["fp32"])


@pytest.mark.parametrize("seed", range(1, 5))
def test_far_sighted_pendulum_rises_above_minus_250(tmp_path, seed):
    """At gamma 0.99, half of the discounted weight is more than 69 steps away. (This test does not detect
    truncation treated as termination, because a standing pendulum has value 0; chain_test does.)"""
    summary = summary_of(tmp_path / "run", "--env", "pendulum", "--seed", str(seed), "--set", "policy.shared.gamma=0.99")
    print(f"seed {seed}: {summary['wall_s']:.1f} s, return {summary['mean_return']['shared']:.0f}")
    assert summary["mean_return"]["shared"] >= -250
