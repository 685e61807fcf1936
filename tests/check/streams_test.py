"""`check` looks at what an environment writes to its streams."""

import os
import pathlib
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


def test_streams_are_listed():
    listed = subprocess.run([str(FAULTY), "envs", "seen"], capture_output=True, text=True, timeout=60).stdout.split("\n")
    assert [line.split() for line in listed if line.split()[:1] in (["image"], ["board"])] == [
        ["image", "uint8", "1", "x", "4", "x", "4", "agent"], ["board", "float32", "3", "replica"]]
