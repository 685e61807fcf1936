# returns_slow_test.py: shipped configurations reach the returns that the README names, over several seeds.
import json
import os
import pathlib
import subprocess

import pytest

WDTRAIN = os.environ["WDTRAIN"]


def summary_of(folder: pathlib.Path, *options):
    subprocess.run([WDTRAIN, *options, "--run_dir", str(folder), "--quiet"], check=True, timeout=600)
    return json.loads((folder / "summary.json").read_text())


@pytest.mark.parametrize("seed", range(1, 6))
def test_cartpole_reaches_475_over_100_episodes(tmp_path, seed):
    summary = summary_of(tmp_path / "run", "--env", "cartpole", "--seed", str(seed))
    assert summary["stop_reason"] == "stop_return"
    assert summary["mean_return"]["shared"] >= 475
    print(f"seed {seed}: {summary['wall_s']:.1f} s, {summary['env_steps']} steps")


@pytest.mark.parametrize("seed", range(1, 4))
def test_pendulum_rises_above_minus_400(tmp_path, seed):
    summary = summary_of(tmp_path / "run", "--env", "pendulum", "--seed", str(seed))
    assert summary["mean_return"]["shared"] >= -400
    print(f"seed {seed}: {summary['wall_s']:.1f} s, return {summary['mean_return']['shared']:.0f}")
