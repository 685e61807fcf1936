"""without_cuda_test.py: tests, in a build with CUDA, the program that a build without CUDA creates."""

import json
import os
import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(os.environ["WD_BUILD_DIR"]) / "wdtrain_without_cuda"
pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="the whole build is without CUDA")


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=120)


def test_it_trains(tmp_path):
    done = run("--env", "cartpole", "--total_steps", 2048, "--threads", 1, "--quiet", "--run_dir", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["status"] == "finished"


def test_a_gpu_is_refused(tmp_path):
    done = run("--env", "cartpole", "--device", "cuda", "--run_dir", tmp_path / "run")
    assert done.returncode == 2
    assert "built without CUDA" in done.stderr


def test_it_needs_no_library_of_CUDA():
    needed = subprocess.run(["readelf", "-d", PROGRAM], capture_output=True, text=True, check=True).stdout
    assert "libtorch_cpu" in needed
    assert "cuda" not in needed.split("RUNPATH")[0].replace(str(PROGRAM), "")
