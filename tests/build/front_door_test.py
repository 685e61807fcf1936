"""front_door_test.py: what ./wd installs, configures, builds and prints. Scripts replace apt, pip, CMake
and other programs."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(os.environ["WD_SOURCE_DIR"])
LOCKED = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 77 (apt-get)"
UNKNOWN = "E: Unable to locate package g++"


def play(folder, name, *lines):
    """Creates a fake program: a shell script with the given lines."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("\n".join(["#!/bin/bash", *lines]) + "\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def setup(tmp_path):
    """Runs `./wd setup PURPOSE` on a machine without packages. apt fails with each of the messages in
    turn, and then always with the last one. Returns the result and the calls of apt."""
    shutil.copy(SOURCE / "wd", tmp_path)
    tools = tmp_path / "tools"
    play(tools, "dpkg-query", "exit 1")
    play(tools, "sudo", "shift", 'exec "$@"')
    play(tools, "sleep", "true")

    def run(purpose, *messages, **variables):
        (tmp_path / "messages").write_text("\n".join(messages) + "\n")
        play(tools, "apt-get", f"cd {tmp_path}", 'echo "$@" >>calls', "head -1 messages >&2",
             'if (($(wc -l <messages) > 1)); then sed -i 1d messages; fi', "exit 100")
        result = subprocess.run([tmp_path / "wd", "setup", purpose], text=True, capture_output=True, timeout=60,
                                env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", **variables})
        return result, (tmp_path / "calls").read_text().splitlines()

    return run


def test_what_apt_says_is_told(setup):
    result, calls = setup("build", UNKNOWN)
    assert result.returncode == 1
    assert UNKNOWN in result.stderr
    assert "wd: failed: apt-get update && apt-get install" in result.stderr
    assert len(calls) == 1


def test_another_apt_is_waited_for(setup):
    result, calls = setup("build", LOCKED, LOCKED, UNKNOWN)
    assert len(calls) == 3
    assert result.stderr.count("wd: waiting for another apt: Could not get lock") == 1
    assert "held by process 77 (apt-get)" in result.stderr
    assert UNKNOWN in result.stderr


def test_the_wait_for_another_apt_ends(setup):
    result, calls = setup("build", LOCKED, WD_LOCK_SECONDS="20")
    assert result.returncode == 1
    assert len(calls) == 5
    assert LOCKED in result.stderr and "wd: failed:" in result.stderr


@pytest.mark.parametrize("purpose, tests", [("train", False), ("build", False), ("test", True)])
def test_only_tests_install_what_only_tests_need(purpose, tests, setup):
    result, _ = setup(purpose, UNKNOWN)
    wanted = result.stderr.split("wd: installing packages: ")[1].splitlines()[0].split()
    assert "g++" in wanted
    assert ("libgtest-dev" in wanted) == tests
    assert ("iproute2" in wanted) == tests


@pytest.fixture
def machine(tmp_path):
    """Runs ./wd with all packages and nvcc installed. Returns what it did: one line per call of pip, cmake
    or ctest."""
    for name in ("wd", "requirements.txt"):
        shutil.copy(SOURCE / name, tmp_path)
    (tmp_path / "tests").mkdir()
    shutil.copy(SOURCE / "tests" / "requirements.txt", tmp_path / "tests")
    tools, venv = tmp_path / "tools", tmp_path / ".venv" / "bin"
    play(tools, "dpkg-query", "echo -n installed")
    play(venv, "nvcc", "echo release 13.0")
    play(venv, "pip", f'echo pip "$@" >>{tmp_path}/calls')
    play(venv, "ctest", f'echo ctest "$@" >>{tmp_path}/calls')
    play(venv, "cmake", f'echo cmake "$@" >>{tmp_path}/calls', 'for ((k = 1; k < $#; ++k)); do [[ ${!k} == -B ]] && next=$((k + 1)) && folder=${!next}; done',
         'if [[ $folder ]]; then touch "$folder/build.ninja"; printf "#!/bin/bash\\n" >"$folder/wdtrain"; chmod +x "$folder/wdtrain"; fi')

    def run(*arguments, gpu=False):
        play(tools, "nvidia-smi", "exit 0" if gpu else "exit 1")
        (tmp_path / "calls").unlink(missing_ok=True)
        subprocess.run([tmp_path / "wd", *arguments], check=True, capture_output=True, timeout=60,
                       env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "CUDACXX": str(venv / "nvcc")})
        calls = (tmp_path / "calls").read_text().splitlines()
        return {"wheels": [call for call in calls if call.startswith("pip")],
                "configured": [call.split("--build")[0] for call in calls if "--preset" in call],
                "built": [call.split("--target ")[1] for call in calls if "--build" in call],
                "tested": [call for call in calls if call.startswith("ctest")]}

    return run


def configured(preset, folder, tests, fresh=True):
    return [f"cmake {'--fresh ' if fresh else ''}--preset {preset} -B {folder} -D WD_TESTS={tests}"]


def test_training_without_a_gpu_builds_for_the_cpu_and_tests_add_the_rest(machine):
    first = machine("train")
    assert first["configured"] == configured("cpu", "build", "OFF")
    assert first["built"] == ["wdtrain"]
    # torch without the libraries that only a GPU needs; packages needed only by tests are not installed either
    assert [call.split()[-1] for call in first["wheels"]] == ["cuda-toolkit[cudart,cupti]==13.0.2", first["wheels"][1].split()[-1]]
    assert " --no-deps torch==" in first["wheels"][1]
    assert machine("train")["configured"] == []
    tests = machine("test")
    assert tests["configured"] == configured("cuda", "build", "QUICK", fresh=False)  # compiled files are kept
    assert tests["built"] == ["all"]
    assert len(tests["wheels"]) == 3  # also what training without a GPU left out
    assert "--test-dir build " in tests["tested"][0] and "--label-exclude slow" in tests["tested"][0]
    again = machine("train")  # an existing CUDA build is kept
    assert again["configured"] == [] and again["built"] == ["wdtrain"]
    assert machine("test", "-R", "config")["configured"] == configured("cuda", "build", "ON", fresh=False)  # more than the gate's
    assert machine("test")["configured"] == []


def test_a_machine_with_a_gpu_builds_the_gpus_side_of_all_tests(machine):
    assert machine("test", gpu=True)["configured"] == configured("cuda", "build", "ON")


def test_training_with_a_gpu_builds_for_it(machine):
    assert machine("train", gpu=True)["configured"] == configured("cuda", "build", "OFF")
    assert machine("build")["configured"] == []


def test_tests_are_built_on_demand(machine):
    assert machine("build")["built"] == ["program"]  # with what `wdtrain check` loads
    with_tests = machine("build", "--tests")
    assert with_tests["configured"] == configured("cuda", "build", "ON", fresh=False)
    assert with_tests["built"] == ["all"] and len(with_tests["wheels"]) == 2


def test_other_presets_have_folders_of_their_own(machine):
    assert machine("build", "--preset", "asan")["configured"] == configured("asan", "build-asan", "OFF")
    tests = machine("test", "--preset", "asan", "-R", "config")
    assert tests["configured"] == configured("asan", "build-asan", "ON", fresh=False)
    assert "--test-dir build-asan " in tests["tested"][0] and tests["tested"][0].endswith("-R config")


def test_a_change_of_what_runs_on_gpu_machines_adds_its_slow_test(machine, tmp_path):
    """Compared with main, or on main with the commit before."""
    def git(*words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True, capture_output=True)

    def slow():
        return [call for call in machine("test")["tested"] if "gpu_(pack|script)_slow_test" in call]

    (tmp_path / "tools/bench").mkdir(parents=True)
    git("init", "-b", "main")
    for name in ("wd", "tools/bench/gpu.sh"):
        (tmp_path / name).open("a").write("# 1\n")
        git("add", "wd", "tools/bench")
        git("commit", "-m", name)
    assert len(slow()) == 1
    (tmp_path / "wd").open("a").write("# 2\n")
    git("commit", "-am", "other")
    assert slow() == []
    git("checkout", "-b", "work")
    (tmp_path / "tools/bench/gpu.sh").open("a").write("# 2\n")
    assert len(slow()) == 1
    git("commit", "-am", "changed")
    assert len(slow()) == 1
    assert len(machine("test", "-R", "config")["tested"]) == 1
