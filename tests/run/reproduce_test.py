"""reproduce_test.py: a run keeps what started it, and `wdtrain reproduce` trains it again."""

import json
import os
import socket

import torch

from cli.program import output, wdtrain

TRAINING = ["--env", "cartpole", "--total_steps", 4096, "--seed", 5, "--set", "policy.shared.lr=0.002", "--device", "cpu", "--quiet"]


def starts_of(folder):
    return [json.loads(line) for line in (folder / "starts.jsonl").read_text().splitlines()]


def test_each_start_is_kept_without_secrets(tmp_path):
    folder = tmp_path / "run"
    environment = dict(os.environ, NCCL_DEBUG="WARN", CUDA_VISIBLE_DEVICES="", AWS_SECRET_ACCESS_KEY="hidden", WANDB_API_KEY="hidden")
    output(*TRAINING, "--run_dir", folder, env=environment)
    output("--resume", folder, "--total_steps", 8192, "--quiet")
    first, second = starts_of(folder)
    assert first["command"][1:] == [str(word) for word in [*TRAINING, "--run_dir", folder]] and first["workers"] == 1
    assert second["command"][1:3] == ["--resume", str(folder)]
    assert first["host"] == socket.gethostname() and first["folder"] == os.getcwd()
    assert first["libtorch"] == torch.__version__.split("+")[0] and first["commit"] and first["processor"]
    assert first["environment"]["NCCL_DEBUG"] == "WARN" and first["environment"]["CUDA_VISIBLE_DEVICES"] == ""
    assert "hidden" not in (folder / "starts.jsonl").read_text()


def test_a_run_is_trained_again_to_the_same_bytes(tmp_path):
    folder = tmp_path / "run"
    output(*TRAINING, "--run_dir", folder)
    done = wdtrain("reproduce", folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "shared.safetensors: the same bytes"
    again = tmp_path / "run-again"
    assert (again / "weights/shared.safetensors").read_bytes() == (folder / "weights/shared.safetensors").read_bytes()
    assert (again / "weights/shared.safetensors").stat().st_ino != (folder / "weights/shared.safetensors").stat().st_ino


def test_a_difference_is_told(tmp_path):
    folder = tmp_path / "run"
    output(*TRAINING, "--run_dir", folder)
    config = folder / "config.yaml"
    config.write_text(config.read_text().replace("seed: 5", "seed: 6"))
    start = dict(starts_of(folder)[0], commit="abc", processor="Z80")
    (folder / "starts.jsonl").write_text(json.dumps(start) + "\n")
    done = wdtrain("reproduce", folder, "--run_dir", tmp_path / "other")
    assert done.returncode == 1 and "shared.safetensors: other bytes" in done.stdout
    assert 'warning: not as it was: commit: then "abc", now ' in done.stderr and 'processor: then "Z80"' in done.stderr


def test_workers_and_warm_starts_are_as_they_were(tmp_path):
    first = tmp_path / "first"
    output(*TRAINING, "--run_dir", first)
    folder = tmp_path / "two"
    output(*TRAINING, "--num_workers", 2, "--warm_start", first, "--run_dir", folder)
    assert output("reproduce", folder, "--print").split()[1:] == [
        "--config", str(folder / "config.yaml"), "--run_dir", f"{folder}-again", "--num_workers", "2", "--warm_start", str(first)]


def test_what_cannot_be_reproduced(tmp_path):
    folder = tmp_path / "run"
    output(*TRAINING, "--run_dir", folder)
    (folder / "starts.jsonl").unlink()
    done = wdtrain("reproduce", folder)
    assert done.returncode == 2 and "has no starts.jsonl" in done.stderr and "train with --config" in done.stderr
    assert wdtrain("reproduce").returncode == 2
