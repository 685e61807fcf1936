"""gate.py tells a slower build from an equal one."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(os.environ["WD_SOURCE_DIR"]) / "tools/bench"))
import gate  # noqa: E402

SCRIPT = pathlib.Path(gate.__file__)


def program(folder, name, rates):
    """A wdtrain whose n-th call reports the n-th of `rates`, from the first again after the last."""
    path = folder / name
    path.write_text(f"""#!{sys.executable}
import json, pathlib, sys
counter = pathlib.Path({str(folder / (name + ".calls"))!r})
calls = int(counter.read_text()) if counter.exists() else 0
counter.write_text(str(calls + 1))
rates = {rates!r}
print(json.dumps({{"env_steps_per_s": rates[calls % len(rates)]}}))
""")
    path.chmod(0o755)
    return path


def run(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True)


@pytest.mark.parametrize("rates, code", [([100.0], 0), ([97.0, 96.0, 97.5], 1), ([90.0, 101.0, 105.0], 0), ([150.0], 0)])
def test_a_slower_build_fails(tmp_path, rates, code):
    base, new = program(tmp_path, "base", [100.0]), program(tmp_path, "new", rates)
    done = run(base, new, "--only", "cartpole, env", "--json", tmp_path / "out.json")
    assert done.returncode == code, done.stdout + done.stderr
    assert ("slower" in done.stdout) == (code == 1)
    result = json.loads((tmp_path / "out.json").read_text())["cartpole, env"]
    assert len(result["ratios"]) == 9 and result["interval"][0] <= result["ratio"] <= result["interval"][1]


def test_intervals_of_the_sign_test():
    assert gate.interval([3.0, 1.0, 2.0]) == (1.0, 3.0)
    assert gate.interval([float(k) for k in range(1, 10)]) == (2.0, 8.0)  # 96.1 %
    assert gate.interval([float(k) for k in range(1, 8)]) == (1.0, 7.0)


def test_programs_and_cases_that_do_not_work(tmp_path):
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho 'no such mode' >&2\nexit 3\n")
    broken.chmod(0o755)
    done = run(broken, broken, "--only", "cartpole, env")
    assert done.returncode == 1 and "ended with 3" in done.stderr and "no such mode" in done.stderr
    assert "no case contains 'chess'" in run(broken, broken, "--only", "chess").stderr


def test_the_cases_are_settings_of_this_program():
    wdtrain = os.environ["WDTRAIN"]
    done = run(wdtrain, wdtrain, "--pairs", "1", "--seconds", "0.05", "--only", "tag_continuous, train, table, bf16")
    assert "tag_continuous, train, table, bf16" in done.stdout, done.stderr
    done = subprocess.run([SCRIPT.with_name("gate.sh"), "no-such-commit"], capture_output=True, text=True)
    assert done.returncode == 2 and "there is no commit 'no-such-commit'" in done.stderr
