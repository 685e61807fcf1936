"""wheel_test.py: the wheel of this build works in an environment of its own, without a compiler and without the project."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from build.run_paths import elements, elf_files
from install.install_test import BUILD, NO_CUDA, SOURCE, SYSTEM_CMAKE, run

LARGEST = 60e6  # bytes
NEWEST = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13)}  # of manylinux_2_34


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    dist = tmp_path_factory.mktemp("dist")
    run(sys.executable, SOURCE / "tools/wheel.py", BUILD, dist)
    (made,) = dist.iterdir()
    assert made.name.endswith("-py3-none-manylinux_2_34_x86_64.whl") and made.stat().st_size < LARGEST
    return made


@pytest.fixture(scope="module")
def venv(wheel, tmp_path_factory):
    """A virtual environment with the wheel, and the packages of the one that runs the tests in place of downloads."""
    folder = tmp_path_factory.mktemp("bare") / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    (site,) = folder.glob("lib/python*/site-packages")
    (others,) = Path(sys.prefix).glob("lib/python*/site-packages")
    for path in others.iterdir():
        if not re.match(r"wdtrain|pip\b|_+|.*\.pth$", path.name):
            (site / path.name).symlink_to(path)
    run(sys.executable, "-m", "pip", "-q", "--python", folder / "bin/python", "install", "--no-deps", "--no-index", wheel)
    return folder


@pytest.fixture(scope="module")
def variables(venv):
    kept = {key: value for key, value in os.environ.items() if key not in ("WDTRAIN", "PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV")}
    return kept | {"PATH": str(venv / "bin")}


def test_a_game_is_learned_without_a_compiler(venv, variables, tmp_path):
    told = run(venv / "bin/wdtrain", "train", "cartpole", "--total_steps", "20000", "--device", "cpu", "--run_dir", "run", cwd=tmp_path, env=variables)
    assert (tmp_path / "run/summary.json").exists(), told
    assert "cartpole" in run(venv / "bin/wdtrain", "envs", cwd=tmp_path, env=variables)
    assert "same bits" in run(venv / "bin/wdtrain", "check", "--env", "cartpole", "--device", "cpu", "--seconds", "1", cwd=tmp_path, env=variables)


def test_the_commands_of_the_readme_work(venv, variables, tmp_path):
    blocks = re.findall(r"^```sh\n(.*?)^```$", (SOURCE / "README.md").read_text(), re.M | re.S)
    commands = [line.split() for line in "".join(blocks).splitlines()]
    assert [command[1] for command in commands] == ["train", "eval", "play", "new", "check", "train"]
    own = variables | {"PATH": f"{venv / 'bin'}:/usr/bin:/bin", "XDG_CACHE_HOME": str(tmp_path / "cache"), "XDG_STATE_HOME": str(tmp_path / "state")}
    for _, *words in commands:
        limit = {"train": ["--max_seconds", "2", "--device", "cpu"], "check": ["--steps", "30"]}.get(words[0], [])
        told = run(venv / "bin/wdtrain", *words, *limit, cwd=tmp_path, env=own)
        assert "compiled ants.cu" in told or words[0] != "check", told
        assert "the emulated GPU: races, same bits" in told or words[0] != "check", told
        assert "watch the policies: wdtrain play" in told or words[0] != "train", told
    assert list(tmp_path.glob("runs/cartpole/*/rollout.html")) and list(tmp_path.glob("runs/ants/*/report.html"))


def test_python_steps_environments(venv, variables, tmp_path):
    code = """
import wdtrain
env = wdtrain.make("cartpole", num_envs=3, seed=1, device="cpu")
env.reset()
print(tuple(env.step([0, 1, 1])[0].shape), wdtrain.__file__)
run = wdtrain.train("cartpole", total_steps=4000, device="cpu", run_dir="run", progress=False)
print(run.summary["status"])
"""
    shape, *_, status = run(venv / "bin/python", "-c", code, cwd=tmp_path, env=variables).splitlines()
    assert shape.startswith("(3, 4) ") and str(venv) in shape and status == "finished"


@pytest.mark.parametrize("version", ["2.15.0+cu132", None])
def test_another_torch_is_one_line(venv, variables, tmp_path, version):
    bare = tmp_path / "venv"  # this package alone, and what it needs to start
    (site,) = venv.glob("lib/python*/site-packages")
    bare.mkdir()
    for path in site.iterdir():
        if not re.match(r"torch|nvidia", path.name):
            (bare / path.name).symlink_to(path)
    if version:
        (bare / f"torch-{version}.dist-info").mkdir()
        (bare / f"torch-{version}.dist-info/METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
    code = f"import sys; sys.path = [p for p in sys.path if 'site-packages' not in p] + [{str(bare)!r}]; from wdtrain.train import main; main()"
    done = subprocess.run([venv / "bin/python", "-c", code, "envs"], capture_output=True, text=True, env=variables)
    assert done.returncode == 1 and re.fullmatch(
        rf"error: wdtrain works with torch 2\.\d+, and {re.escape(version or 'none')} is installed: run \S+ -m pip install 'torch==2\.\d+\.\*'\n", done.stderr), done


def test_files_need_nothing_of_this_machine(venv):
    (package,) = venv.glob("lib/python*/site-packages/wdtrain")
    files = list(elf_files(package))
    assert {"wdtrain", "libwd.so.0", "libwd_python.so", "libwd_bell.so", "cartpole.so"} <= {path.name for path in files}
    for path in files:
        assert all(element.startswith("$ORIGIN") for element in elements(path)), path
        needed = subprocess.run(["objdump", "-T", path], check=True, capture_output=True, text=True).stdout
        for name, version in re.findall(r"\((GLIBC|GLIBCXX|CXXABI)_([\d.]+)\)", needed):
            assert tuple(map(int, version.split("."))) <= NEWEST[name], (path, name, version)


def test_a_project_builds_against_it(venv, variables, tmp_path):
    prefix = run(venv / "bin/python", "-m", "wdtrain", "--cmake_dir", env=variables).strip()
    shutil.copytree(SOURCE / "examples/custom_env", tmp_path / "custom_env")
    run(SYSTEM_CMAKE, "-G", "Ninja", "-S", tmp_path / "custom_env", "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}", NO_CUDA)
    run(SYSTEM_CMAKE, "--build", tmp_path / "build")
    (program,) = [tmp_path / "build" / path.stem for path in (tmp_path / "custom_env").glob("*.cu")]
    assert program.name in run(program, "envs")


def test_the_record_names_all_files(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (record,) = [name for name in archive.namelist() if name.endswith("/RECORD")]
        assert sorted(line.split(",")[0] for line in archive.read(record).decode().splitlines()) == sorted(archive.namelist())
        metadata = archive.read(record.replace("RECORD", "METADATA")).decode()
    assert re.search(r"^Requires-Dist: torch>=2\.\d+,<2\.\d+$", metadata, re.M) and 'nvidia-cuda-nvcc==13.0.*; extra == "compile"' in metadata
