"""L8: assignment of GPUs to workers, with a fake driver library that lists the GPUs that a test needs."""

import subprocess

import pytest

from launcher.gangs import GANG, environment, run, started, variables_of, wait_for, workers
from launcher.nvml import driver  # noqa: F401


def list_gpus(variables):
    done = subprocess.run([GANG, "--list_gpus", "yes"], env=environment(**variables), capture_output=True, text=True, timeout=20)
    return done.stdout.split() if done.returncode == 0 else (done.returncode, done.stderr)


ALL = ["GPU-aaaa-0", "GPU-aabb-1", "GPU-cccc-2"]
VISIBLE = {
    None: ALL,
    "": [],
    "-1": [],
    "2,0": ["2", "0"],
    " 1 , 2": ["1", "2"],
    "1,-1,2": ["1"],
    "GPU-cccc,GPU-aaaa-0": ["GPU-cccc-2", "GPU-aaaa-0"],
    "MIG-1234": ["MIG-1234"],
}


@pytest.mark.parametrize("visible", VISIBLE)
def test_L8_visible_devices_are_honoured(visible, driver):
    assert list_gpus(driver(3, CUDA_VISIBLE_DEVICES=visible)) == VISIBLE[visible]


WRONG = {
    "3": "CUDA_VISIBLE_DEVICES=3: this machine shows no GPU '3' (it shows 3: numbers from 0 on)",
    "0,7": "no GPU '7'",
    "0,,1": "no GPU ''",
    "-2": "no GPU '-2'",
    "GPU-aa": "no GPU 'GPU-aa'",  # two GPUs have this prefix
    "GPU-x": "no GPU 'GPU-x'",
    "MIG-9": "no GPU 'MIG-9'",
    "one": "no GPU 'one'",
    "1,1": "GPU 1 is named twice",
    "GPU-cccc,GPU-cccc-2": "is named twice",
}


@pytest.mark.parametrize("visible", WRONG)
def test_L8_a_device_that_is_not_there_is_an_error(visible, driver):
    code, text = list_gpus(driver(3, CUDA_VISIBLE_DEVICES=visible))
    assert (code, WRONG[visible] in text) == (2, True), text


@pytest.mark.parametrize("visible", [None, "2,0"])
def test_L8_each_worker_sees_its_own_gpu_alone(visible, driver):
    with started("--gpus", "yes", "--workers", 2, "--iterations", 100000, variables=driver(3, CUDA_VISIBLE_DEVICES=visible)) as process:
        pids = wait_for(lambda: len(found := workers(process.pid)) == 2 and found)
        found = [variables_of(pid)["CUDA_VISIBLE_DEVICES"] for pid in pids]
    assert found == (["2", "0"] if visible else ALL[:2])


def test_L8_workers_on_the_cpu_keep_the_variable(driver):
    with started("--workers", 1, "--iterations", 100000, variables=driver(3, CUDA_VISIBLE_DEVICES="2,0")) as process:
        (pid,) = wait_for(lambda: workers(process.pid))
        assert variables_of(pid)["CUDA_VISIBLE_DEVICES"] == "2,0"


NONE = {
    "the driver lists none": {"FAKE_GPUS": "0"},
    "CUDA_VISIBLE_DEVICES=''": {"CUDA_VISIBLE_DEVICES": ""},
    "Driver/library version mismatch": {"FAKE_ERROR": "18"},
}


@pytest.mark.parametrize("why", NONE)
def test_L8_no_gpu_or_too_few_end_with_2_at_once(why, driver):
    done = run("--gpus", "yes", "--workers", 4, variables=driver(3) | NONE[why])
    assert done.returncode == 2
    assert done.stderr.startswith("error: --num_gpus 4: this machine shows no GPU ("), done.stderr
    assert why in done.stderr and done.stderr.endswith("); use --num_workers 4 --device cpu\n"), done.stderr
    done = run("--gpus", "yes", "--workers", 4, variables=driver(3))
    assert (done.returncode, done.stderr) == (2, "error: --num_gpus 4: this machine shows 3 (GPU-aaaa-0, GPU-aabb-1, GPU-cccc-2); "
                                                 "use --num_gpus 3\n")
    done = run("--gpus", "yes", "--workers", 0, variables=driver(3))
    assert (done.returncode, "--num_gpus 0: must be from 1 to" in done.stderr) == (2, True)


def test_L8_without_a_driver_there_are_no_gpus(tmp_path):
    """An invalid library file acts as a missing driver, whatever this machine has."""
    (tmp_path / "libnvidia-ml.so.1").write_text("")
    assert list_gpus({"LD_LIBRARY_PATH": str(tmp_path)}) == []
    done = run("--gpus", "yes", "--workers", 1, variables={"LD_LIBRARY_PATH": str(tmp_path)})
    assert (done.returncode, "no NVIDIA driver: " in done.stderr) == (2, True), done.stderr
