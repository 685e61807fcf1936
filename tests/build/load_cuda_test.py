"""libwd_cuda, and with it torch's CUDA libraries, is loaded exactly where a driver is installed."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from cli.program import wdtrain

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
    quick = ["--env", "cartpole", "--total_steps", 2048, "--quiet"]
    done = wdtrain(*quick, "--device", "cpu", "--run_dir", tmp_path / "cpu", env={**os.environ, **driver})
    assert (done.returncode, done.stderr) == (0, "")


def test_a_gpu_that_cannot_be_used_is_no_secret(driver, tmp_path):
    """The machine seems to have one: training on its CPU would waste it."""
    done = wdtrain("--env", "cartpole", "--total_steps", 2048, "--quiet", "--run_dir", tmp_path / "run", env={**os.environ, **driver})
    assert done.returncode == 0
    assert "warning: this machine seems to have a GPU, but the CPU is used: the CUDA runtime says:" in done.stderr, done.stderr
    done = wdtrain("doctor", "--quick", env={**os.environ, **driver})
    assert done.returncode == 1 and re.search(r"^error +gpu +this machine seems to have one that cannot be used: the CUDA", done.stdout, re.M), done.stdout


def test_without_a_toolkit_the_gpu_part_is_loaded(driver, tmp_path):
    """cuBLASLt, cudart and the rest come with torch: the toolkit's own folder is hidden."""
    folders = {str(path.resolve().parent) for path in Path("/usr/local").glob("cuda*/lib64/libcublasLt.so*")}
    if not folders:
        pytest.skip("no toolkit with cuBLASLt is installed")
    hide = " && ".join(f"mount -t tmpfs none {folder}" for folder in sorted(folders))
    command = ["unshare", "--mount", "sh", "-c", f"({hide}) || exit 77; exec {os.environ['WDTRAIN']} doctor --quick"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **driver})
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"no mount namespaces here: {done.stderr}")
    assert "cannot be loaded" not in done.stdout and "the CUDA runtime says:" in done.stdout, done.stdout
