"""gpu.sh with a stub instead of the program: how it reports steps that pass, fail, hang, are skipped, or
run out of time."""

import json
import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(os.environ["WD_SOURCE_DIR"]) / "tests/bench/gpu.sh"

WDTRAIN = """#!/bin/sh
case "$*" in
  *tag_gridworld*) echo "one replica differs"; exit 1 ;;
  check*) echo "all is well" ;;
  *"--mode train"*) sleep 600 ;;
  bench*) echo '{"env_steps_per_s": 1234.5, "agent_steps_per_s": 2469.0}' ;;
esac
"""


@pytest.fixture
def build(tmp_path):
    folder = tmp_path / "build"
    (folder / "tests").mkdir(parents=True)
    (folder / "wdtrain").write_text(WDTRAIN)
    (folder / "wdtrain").chmod(0o755)
    (folder / "CTestTestfile.cmake").write_text('add_test(fine "true")\nset_tests_properties(fine PROPERTIES LABELS gpu)\n')
    return folder


def run(*arguments):
    return subprocess.run([SCRIPT, *map(str, arguments)], capture_output=True, text=True, timeout=300)


def test_all_limits_together_are_ten_minutes():
    done = run("--dry_run")
    assert done.returncode == 0
    limits = {line.split()[0]: int(line.split()[1]) for line in done.stdout.splitlines()}
    assert sum(limits.values()) <= 600
    assert {"build", "gpu_tests", "memcheck", "racecheck", "initcheck", "synccheck", "bench_env", "bench_act", "bench_train", "bench_bf16_train", "bench_table_train", "peers"} <= set(limits)


def test_every_step_is_accounted_for(build, tmp_path):
    done = run("--device", "cpu", "--no_build", "--build_dir", build, "--out", tmp_path / "out", "--seconds", 25)
    assert done.returncode == 1, done.stdout + done.stderr
    (path,) = (tmp_path / "out").glob("*-gpu-standin.json")
    report = json.loads(path.read_text())
    outcome = {step["step"]: step["outcome"] for step in report["steps"]}
    assert outcome["gpu"] == "skipped"
    assert outcome["gpu_tests"] == "passed"
    assert outcome["parity_cartpole"] == "skipped", "nothing was compared with a GPU"
    assert outcome["parity_tag_gridworld"] == "failed (1)"
    assert outcome["memcheck"] == "skipped"
    assert outcome["bench_env"] == "passed"
    assert outcome["bench_train"].startswith("stopped after")
    assert outcome["peers"] == "no time left"
    assert "build" not in outcome
    assert report["bench"]["env"]["env_steps_per_s"] == 1234.5
    assert report["bench"]["train"] is None
    assert report["bench"]["bf16_act"]["agent_steps_per_s"] == 2469.0
    assert "standing in" in report["device"]
    page = path.with_suffix(".md").read_text()
    assert "one replica differs" in page and "Not measured: train, bf16_train, table_train." in page and "1,234" in page


def test_skipped_is_no_pass(build, tmp_path):
    (build / "wdtrain").write_text(WDTRAIN.replace("exit 1", "exit 0").replace("sleep 600", "echo '{}'"))
    (build / "CTestTestfile.cmake").write_text('add_test(a "false")\nset_tests_properties(a PROPERTIES LABELS gpu SKIP_RETURN_CODE 1)\n')
    done = run("--device", "cpu", "--no_build", "--build_dir", build, "--out", tmp_path / "out", "--seconds", 25)
    (path,) = (tmp_path / "out").glob("*-gpu-standin.json")
    step = {step["step"]: step for step in json.loads(path.read_text())["steps"]}
    assert step["gpu_tests"]["outcome"] == "skipped"
    assert step["gpu_tests"]["last line"].endswith("skipped by themselves: a")
    # 1 if the peers are installed, because their comparison cannot run with a stub
    assert done.returncode in (1, 3)
    if step["peers"]["outcome"] == "skipped":
        assert done.returncode == 3


@pytest.mark.parametrize("arguments", [["--device", "tpu"], ["--seconds", "ten"], ["--fast"], ["--out"]])
def test_wrong_usage(arguments):
    done = run(*arguments)
    assert done.returncode == 2
    assert "usage:" in done.stderr
