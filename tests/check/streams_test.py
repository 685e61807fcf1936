"""`check` looks at what an environment writes to its streams."""

import os
import pathlib
import re
import subprocess

import pytest

FAULTY = pathlib.Path(os.environ["WD_BUILD_DIR"]) / "faulty"


def check(*settings):
    done = subprocess.run([str(FAULTY), "check", "--env", "seen", "--device", "cpu", "--seconds", "1", *settings], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout


def test_streams_that_are_right_pass():
    code, output = check()
    assert code == 0 and "FAILED" not in output, output


@pytest.mark.parametrize("fault, words", [("unwritten", "replica 0: stream 'board', number 2 is not written"),
                                          ("beyond", "player 1: stream 'image', byte 16, which is past the row's end, was written")])
def test_a_wrong_row_is_found(fault, words):
    code, output = check("--set", f"env.{fault}=true")
    assert code == 1 and words in output, output


def ranges(output):
    return {name: tuple(map(float, numbers)) for name, *numbers in re.findall(r"^ +stream (\w+) +minimum (\S+) +mean (\S+) +maximum (\S+)$", output, re.M)}


def test_ranges_of_streams_are_shown_and_one_that_is_always_0_is_named():
    code, output = check()
    found = ranges(output)
    assert code == 0 and set(found) == {"image", "board"} and "stream 'board': every" not in output, output
    assert found["image"][0] == 3 and found["image"][2] == 255 and found["image"][1] == pytest.approx((255 + 3 * 3) / 4, abs=0.1)
    assert found["board"][0] == 0 and found["board"][2] == 10
    code, output = check("--set", "env.empty=true")
    assert code == 0 and ranges(output)["board"] == (0, 0, 0) and "stream 'board': every number of it is always 0" in output, output


@pytest.mark.parametrize("stream, place", [("board", "entry 2"), ("own", "agent 1, entry 0")])
def test_training_names_the_place_of_a_number_of_a_stream_that_is_not_finite(stream, place, tmp_path):
    setting = f"policy={{player: {{algorithm: PPO, model: {{separate_value: true, critic_reads: [observation, {stream}]}}}}}}"
    train = [str(FAULTY), "--env", "seen", "--device", "cpu", "--num_envs", "4", "--train_batch_size", "80", "--total_steps", "160", "-q", "--set", f"env.nan={stream}"]
    done = subprocess.run([*train, "--set", setting, "--run_dir", str(tmp_path / "run")], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert f"error: policy 'player': stream '{stream}' nan in step 2 of the rollout, replica 0, {place}, in iteration 1; nothing was learned from it" in done.stderr, done.stderr
    done = subprocess.run([*train, "--run_dir", str(tmp_path / "unread")], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, "nobody reads it: " + done.stderr


def test_streams_are_listed():
    listed = subprocess.run([str(FAULTY), "envs", "seen"], capture_output=True, text=True, timeout=60).stdout.split("\n")
    assert [line.split() for line in listed if line.split()[:1] in (["image"], ["board"])] == [
        ["image", "uint8", "1", "x", "4", "x", "4", "agent"], ["board", "float32", "3", "replica"]]
