"""Both widths of vectors give the same bits; WD_CPU chooses one."""

import os
import pathlib
import re
import subprocess

import pytest

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
