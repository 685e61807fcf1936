"""A target entropy that the legal choices do not allow: the run says so, once, and one that no choices allow is refused."""

import os
import pathlib
import re
import subprocess

BUILD = pathlib.Path(os.environ["WD_BUILD_DIR"])
SAC = "policy={shared: {algorithm: SAC, batch_size: 32, replay_ratio: 16, learning_starts: 64, %s model: {fc_dims: [8]}}}"


def trained(folder, setting, *arguments):
    command = [str(BUILD / "faulty"), "--env", "few_legal", "--run_dir", str(folder), "--num_envs", "8", "--train_batch_size", "64",
               "--total_steps", "640", "--set", "saving.metrics_log_freq=1", "--device", "cpu", "--quiet", "--set", SAC % setting, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_an_entropy_out_of_reach_is_named_once(tmp_path):
    done = trained(tmp_path / "run", "target_entropy: 1.5,")
    assert done.returncode == 0, done.stderr
    found = re.findall(r"policy 'shared': the entropy of its actions, [\d.]+, stays below target_entropy, 1.5, .*legal choices allow at most 0\.\d+ on average", done.stderr)
    assert len(found) == 1 and "lower target_entropy, or leave it out" in done.stderr, done.stderr


def test_the_default_is_within_reach(tmp_path):
    done = trained(tmp_path / "run", "")
    assert done.returncode == 0 and "entropy" not in done.stderr, done.stderr


def test_an_entropy_above_that_of_uniform_draws_is_refused(tmp_path):
    done = trained(tmp_path / "run", "target_entropy: 4,")
    assert done.returncode == 2 and re.search(r"target_entropy = 4: cannot be reached: uniform draws have 3\.46", done.stderr), done.stderr
