"""Both widths of vectors give the same bits; WD_CPU chooses one."""

import hashlib
import os
import pathlib
import re
import subprocess

import pytest

from bits import tensors

WDTRAIN = os.environ["WDTRAIN"]
SOURCE = pathlib.Path(os.environ["WD_SOURCE_DIR"])


def doctor(cpu):
    return subprocess.run([WDTRAIN, "doctor", "--quick"], env={**os.environ, "WD_CPU": cpu}, capture_output=True, text=True)


def with_cpu(cpu, *command):
    done = subprocess.run(command, env={**os.environ, "WD_CPU": cpu}, cwd=SOURCE, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_narrow_vectors_can_be_chosen():
    assert "256-bit vectors (x86-64-v3)" in doctor("v3").stdout
    # The kernels' own tests, which otherwise run with the widest vectors of this processor.
    tests = with_cpu("v3", f"{os.environ['WD_BUILD_DIR']}/tests/test.kernels", "--gtest_brief=1")
    assert re.search(r"\[  PASSED  \] [1-9]\d+ tests", tests)


def test_another_word_is_refused_before_anything_is_written(tmp_path):
    message = "WD_CPU is 'avx2': set it to v3 or v4, or unset it"
    done = doctor("avx2")
    assert done.returncode == 1 and message in done.stdout
    done = subprocess.run([WDTRAIN, "--env", "cartpole", "--run_dir", tmp_path / "run"], env={**os.environ, "WD_CPU": "avx2"},
                          capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr == f"error: {message}\n"
    assert list(tmp_path.iterdir()) == []


def test_both_widths_give_the_same_bits():
    if doctor("v4").returncode != 0:
        pytest.skip("this processor has no AVX-512")
    narrow, wide = (with_cpu(cpu, "python3", SOURCE / "tests/bits/bits.py", WDTRAIN).splitlines() for cpu in ("v3", "v4"))
    assert len(narrow) >= 29
    assert narrow == wide


# What these learn, as SHA-256 of their weights: the same on every x86-64 processor with AVX2, whatever instructions wd and torch use.
# A change of the arithmetic of learning, of draws or of first weights changes them: say so in CHANGELOG.md.
SMALL = ["--num_envs", "8", "--train_batch_size", "128", "--total_steps", "512"]
LEARNED = {
    "ppo": (["--env", "cartpole", *SMALL, "--set", "policy={shared: {algorithm: PPO}}"], "5b065b2cc5f3c061"),
    "a2c": (["--env", "tag_gridworld", *SMALL, "--set", "policy={tagger: {algorithm: A2C}, runner: {algorithm: A2C}}"], "af4874b67759f4d2"),
    "dqn": (["--env", "cartpole", *SMALL, "--set", "policy={shared: {algorithm: DQN, learning_starts: 100, batch_size: 32, prioritized: true}}"], "1e2215b0c20960fc"),
    "sac": (["--env", "pendulum", *SMALL, "--set", "policy={shared: {algorithm: SAC, learning_starts: 100, batch_size: 32, replay_ratio: 8, model: {fc_dims: [64, 64]}}}"], "d56f2c4d4eb3b413"),
    "entities": (["--env", "tag_continuous", *SMALL, "--set", "env.num_runners=12", "--set",
                  "policy={tagger: {algorithm: PPO, model: {input: entities, pool: max}}, runner: {algorithm: PPO, model: {input: entities, nearest: 3}}}"], "2f0793a3b28e34cc"),
    "mappo": (["--env", "simple_spread", *SMALL, "--set", "policy={shared: {algorithm: MAPPO}}"], "d0721c7c531bea6f"),
}
INSTRUCTIONS = {"narrow": {"WD_CPU": "v3", "ATEN_CPU_CAPABILITY": "default"}, "torch's AVX2": {"ATEN_CPU_CAPABILITY": "avx2"}, "wide": {"WD_CPU": "v4"}}


@pytest.mark.parametrize("instructions", INSTRUCTIONS)
@pytest.mark.parametrize("case", LEARNED)
def test_a_seed_learns_the_same_on_every_processor(case, instructions, tmp_path):
    if instructions == "wide" and doctor("v4").returncode != 0:
        pytest.skip("this processor has no AVX-512")
    options, expected = LEARNED[case]
    done = subprocess.run([WDTRAIN, *options, "--device", "cpu", "--quiet", "--run_dir", tmp_path / "run", "--set", "trainer.seed=7"],
                          env={**os.environ, **INSTRUCTIONS[instructions]}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    sha = hashlib.sha256()
    for path in sorted((tmp_path / "run" / "weights").iterdir()):
        sha.update(path.name.encode() + tensors(path))
    assert sha.hexdigest()[:16] == expected
