"""A user's projects on a GPU: an environment and a training loop of their own, built against the installed
library."""

import json
import shutil

import pytest

from cli.commands_gpu_test import gpu  # skips this file on machines without a GPU
from install.install_test import SOURCE, prefix, program, run

DEVICE = "cuda"


def built(name, prefix, folder):
    project = folder / name
    shutil.copytree(SOURCE / "examples" / name, project)
    run("cmake", "-G", "Ninja", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", project / "build")
    return project / "build" / name


def test_an_environment_of_ones_own_trains(program, tmp_path):
    run(program, "--env", program.name, "--device", DEVICE, "--num_envs", "64", "--train_batch_size", "1280",
        "--total_steps", "25600", "--strict_device", "--run_dir", tmp_path / "run")
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["status"], summary["device"], summary["env_steps"]) == ("finished", DEVICE, 25600)


def test_an_environment_of_ones_own_is_checked(program):
    found = run(program, "check", "--env", program.name, "--device", DEVICE, "--seconds", "2")
    assert "same bits: CPU and GPU" in found and "no GPU is used" not in found, found


def test_a_game_of_plain_cpp_is_learned(prefix, tmp_path):
    told = run(built("host_environment", prefix, tmp_path), f"trainer.device={DEVICE}", cwd=tmp_path)
    assert float(told.split("mean return ")[1].split(",")[0]) >= 0.7, told


def test_a_training_loop_on_the_public_api_learns(prefix, tmp_path):
    told = run(built("training_loop", prefix, tmp_path), "cartpole", "trainer.total_steps=61440", f"trainer.device={DEVICE}",
               cwd=tmp_path)
    assert float(told.split()[-1]) > 150, told
