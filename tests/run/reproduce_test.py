"""reproduce_test.py: a run keeps what started it, and `wdtrain reproduce` trains it again."""

import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess

import pytest
import torch

from checkpoint.runs import iterations, wait_for
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


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "run"
    output(*TRAINING, "--run_dir", folder)
    return folder


@pytest.fixture
def copied(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "run", symlinks=True)


def steps_of(folder):
    return json.loads((folder / "summary.json").read_text())["env_steps"]


@pytest.mark.parametrize("ending", ["max_seconds", "signal", "kill"])
def test_a_run_that_was_ended_early_is_trained_as_far_as_it_came(ending, tmp_path):
    folder = tmp_path / "run"
    endless = [*TRAINING, "--total_steps", "1G", "--stop_return", "none", "--set", "saving.model_params_save_freq=3", "--run_dir", folder]
    endless[2:4] = []  # the shorter limit
    if ending == "max_seconds":
        output(*endless, "--max_seconds", 1)
    else:
        process = subprocess.Popen([os.environ["WDTRAIN"], *map(str, endless)], stderr=subprocess.DEVNULL)
        wait_for(lambda: iterations(folder) >= 7)
        process.send_signal(signal.SIGTERM if ending == "signal" else signal.SIGKILL)
        process.wait(timeout=30)
    done = wdtrain("reproduce", folder)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "shared.safetensors: the same bytes"), done.stderr
    again = tmp_path / "run-again"
    assert json.loads((again / "summary.json").read_text())["stop_reason"] == "total_steps"
    if ending != "kill":
        assert steps_of(again) == steps_of(folder)


def test_a_policy_without_weights_is_no_success(copied):
    file = copied / "weights" / "shared.safetensors"
    file.unlink()
    done = wdtrain("reproduce", copied)
    assert done.returncode == 2 and f"{file}: there is no such file: the run has no weights to compare with" in done.stderr
    assert not (copied.parent / "run-again").exists(), "nothing was trained in vain"


@pytest.mark.parametrize("kind", ["pipe", "device", "link", "folder"])
def test_weights_that_are_no_file_are_refused_at_once(kind, copied):
    file = copied / "weights" / "shared.safetensors"
    file.rename(copied / "moved")
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    else:
        file.symlink_to("/dev/zero" if kind == "device" else copied / "moved")
    done = wdtrain("reproduce", copied, timeout=20)
    assert done.returncode == 2 and "shared.safetensors: is not a regular file" in done.stderr
    assert not (copied.parent / "run-again").exists()


def test_a_warm_start_is_found_however_it_was_given(trained, tmp_path):
    (tmp_path / "warm").symlink_to(trained)
    for name, words in (("joined", [f"--warm_start={trained}"]), ("relative", ["--warm_start", "warm"])):
        folder = tmp_path / name
        output(*TRAINING, *words, "--run_dir", folder, cwd=tmp_path)
        done = wdtrain("reproduce", folder)
        assert done.returncode == 0, done.stderr


def test_a_warm_start_from_the_latest_run_is_from_the_one_that_was_the_latest(tmp_path):
    output(*TRAINING, "--run_dir", "runs/a", cwd=tmp_path)
    output(*TRAINING, "--warm_start", "latest", "--run_dir", "warm", cwd=tmp_path)
    output(*TRAINING, "--set", "policy.shared.gamma=0.5", "--run_dir", "runs/b", cwd=tmp_path)
    done = wdtrain("reproduce", tmp_path / "warm", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name, value, message", [
    ("workers", "two", "workers must be a count, and is \"two\""),
    ("workers", -1, "workers must be a count, and is -1"),
    ("workers", 1e30, "workers must be a count"),
    ("gpus", 3, "gpus must be a list of names, and is 3"),
    ("command", {"a": 1}, "command must be a list of words"),
    ("command", ["wdtrain", 7], "command must be a list of words"),
    ("folder", ["\x1b[31m\n"], "folder must be a path"),
])
def test_a_record_of_other_types_is_refused_in_words(name, value, message, copied):
    start = dict(starts_of(copied)[0], **{name: value})
    (copied / "starts.jsonl").write_text(json.dumps(start) + "\n")
    done = wdtrain("reproduce", copied, "--print")
    assert (done.returncode, f"{copied}/starts.jsonl: {message}" in done.stderr) == (2, True), done.stderr


def test_a_printed_command_cannot_control_the_terminal(copied):
    start = dict(starts_of(copied)[0], command=["wdtrain", "--warm_start", "/tmp/a'\x1b[31m\u009b\\"])
    (copied / "starts.jsonl").write_text(json.dumps(start) + "\n")
    printed = output("reproduce", copied, "--print")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", printed)
    words = subprocess.run(["bash", "-c", f"printf '%s\\n' {printed.strip()}"], capture_output=True, check=True).stdout
    assert words.splitlines()[-1] == "/tmp/a'\x1b[31m\u009b\\".encode()


# --- starts.jsonl ---


def test_a_cut_line_does_not_swallow_the_next(copied):
    with open(copied / "starts.jsonl", "a") as file:
        file.write('{"command": ["wdt')
    output("--resume", copied, "--total_steps", 8192, "--quiet")
    first, cut, last = (copied / "starts.jsonl").read_text().splitlines()
    assert cut == '{"command": ["wdt' and json.loads(last)["command"][1] == "--resume"


def test_a_start_that_cannot_be_written_is_only_reported(copied):
    limit = 1 << 20
    with open(copied / "starts.jsonl", "a") as file:
        file.write(" " * (limit - file.tell() - 1) + "\n")
    done = wdtrain("--resume", copied, "--total_steps", 8192, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert done.returncode == 0, done.stderr
    assert "starts.jsonl: cannot write: File too large: training goes on without starts.jsonl" in done.stderr


def test_a_record_that_is_a_link_is_refused_before_anything_is_cut(copied):
    (copied / "starts.jsonl").rename(copied.parent / "victim")
    (copied / "starts.jsonl").symlink_to(copied.parent / "victim")
    with open(copied / "metrics.jsonl", "a") as file:
        file.write('{"iteration":900}\n')
    before = [(copied / name).read_bytes() for name in ("metrics.jsonl", "summary.json")]
    done = wdtrain("--resume", copied, "--total_steps", 8192, "--quiet")
    assert done.returncode == 2 and "starts.jsonl: is a link, which is not followed" in done.stderr
    assert [(copied / name).read_bytes() for name in ("metrics.jsonl", "summary.json")] == before
