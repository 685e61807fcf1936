"""front_door_test.py: what ./wd says and does about Debian's packages; apt is played by a script."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(os.environ["WD_SOURCE_DIR"])
LOCKED = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 77 (apt-get)"
UNKNOWN = "E: Unable to locate package g++"


@pytest.fixture
def setup(tmp_path):
    """Runs `./wd setup PURPOSE` on a machine without packages, where apt fails with each of the messages in turn and then always with the
    last one; gives the result and apt's calls."""
    shutil.copy(SOURCE / "wd", tmp_path)
    tools = tmp_path / "tools"
    tools.mkdir()

    def play(name, *lines):
        (tools / name).write_text("\n".join(["#!/bin/bash", *lines]) + "\n")
        (tools / name).chmod(0o755)

    play("dpkg-query", "exit 1")
    play("sudo", "shift", 'exec "$@"')
    play("sleep", "true")

    def run(purpose, *messages, **variables):
        (tmp_path / "messages").write_text("\n".join(messages) + "\n")
        play("apt-get", f"cd {tmp_path}", 'echo "$@" >>calls', "head -1 messages >&2",
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
