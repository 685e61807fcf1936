"""libwd_cuda, and with it torch's CUDA libraries, is loaded exactly where a driver is installed."""

import os
import subprocess
from pathlib import Path

import pytest

from cli.program import output, wdtrain

pytestmark = pytest.mark.skipif(not list(Path(os.environ["WD_BUILD_DIR"]).glob("libwd_cuda.so*")), reason="this build has no CUDA")


def libraries(**environment):
    """The libraries that wdtrain loads."""
    done = wdtrain("envs", env={**os.environ, "LD_DEBUG": "libs", **environment})
    assert done.returncode == 0
    return {Path(line.split()[-1]).name for line in done.stderr.splitlines() if "calling init" in line}


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """A driver library that has nothing in it."""
    folder = tmp_path_factory.mktemp("driver")
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", folder / "libcuda.so.1"], input="int cuNothing;", text=True, check=True)
    return {"LD_LIBRARY_PATH": f"{folder}:{os.environ.get('LD_LIBRARY_PATH', '')}"}


@pytest.mark.skipif("libcuda.so.1" in os.popen("ldconfig -p").read(), reason="a driver is installed")
def test_not_without_a_driver():
    assert "libtorch_cpu.so" in libraries() and not {"libwd_cuda.so.0", "libtorch_cuda.so"} & libraries()
    done = wdtrain("--env", "cartpole", "--device", "cuda")
    assert done.returncode == 2 and "no GPU can be used: no NVIDIA driver is installed" in done.stderr


def test_with_a_driver(driver, tmp_path):
    assert {"libwd_cuda.so.0", "libtorch_cuda.so"} <= libraries(**driver)
    done = wdtrain("--env", "cartpole", "--device", "cuda", env={**os.environ, **driver})
    assert done.returncode == 2 and "the CUDA runtime says:" in done.stderr, done.stderr
    output("--env", "cartpole", "--device", "cpu", "--total_steps", 2048, "--quiet", "--run_dir", tmp_path / "run", env={**os.environ, **driver})
