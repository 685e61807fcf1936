"""gpu.sh with a stub instead of the program: how it reports steps that pass, fail, hang, are skipped, or
run out of time. Also with the emulated GPU, so that its commands are right."""

import json
import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(os.environ["WD_SOURCE_DIR"]) / "tests/bench/gpu.sh"

TESTS = SCRIPT.parents[1]
GPU_TESTS = [str(path.relative_to(TESTS)).removesuffix(".cpp") for path in sorted(TESTS.glob("*/*_gpu_test.*"))]

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
    (folder / "wdtrain_emulated").write_text(WDTRAIN)
    (folder / "wdtrain_emulated").chmod(0o755)
    (folder / "CTestTestfile.cmake").write_text("".join(f'add_test({name} "true")\n' for name in GPU_TESTS))
    return folder


def run(*arguments, environment=None):
    return subprocess.run([SCRIPT, *map(str, arguments)], capture_output=True, text=True, timeout=500, env=os.environ | (environment or {}))


def limits_of(*arguments):
    done = run("--dry_run", *arguments)
    assert done.returncode == 0
    return {line.split()[0]: int(line.split()[1]) for line in done.stdout.splitlines()}


def test_each_part_takes_at_most_ten_minutes():
    parts = {part: limits_of("--no_build", "--parts", part) for part in ["tests", "bench", "peers", "sanitize"]}
    for part, limits in parts.items():
        assert sum(limits.values()) <= 600, part
    assert {"parity_cartpole"} | {name.split("/")[1].removesuffix(".py") for name in GPU_TESTS} <= set(parts["tests"])
    assert {"bench_env", "bench_act", "bench_train", "bench_bf16_train", "bench_table_train"} <= set(parts["bench"])
    assert "peers" in parts["peers"]
    assert {"memcheck", "racecheck", "initcheck", "synccheck"} <= set(parts["sanitize"])


def test_all_parts_are_the_default():
    everything = list(limits_of())
    assert everything[:2] == ["gpu", "build"]
    assert everything.index("bench_train") < everything.index("memcheck"), "the sanitizers are slow: they come last"
    parts = [step for part in ["tests", "bench", "peers", "sanitize"] for step in list(limits_of("--no_build", "--parts", part))[1:]]
    assert everything[2:] == parts


def test_every_step_is_accounted_for(build, tmp_path):
    done = run("--device", "emulated", "--no_build", "--build_dir", build, "--out", tmp_path / "out", "--seconds", 40)
    assert done.returncode == 1, done.stdout + done.stderr
    (path,) = (tmp_path / "out").glob("*-gpu-standin.json")
    report = json.loads(path.read_text())
    outcome = {step["step"]: step["outcome"] for step in report["steps"]}
    assert outcome["gpu"] == "skipped"
    assert outcome["twins_gpu_test"] == "passed"
    assert outcome["parity_cartpole"] == "passed"
    assert outcome["parity_tag_gridworld"] == "failed (1)"
    assert outcome["bench_env"] == "passed"
    assert outcome["bench_train"].startswith("stopped after")
    assert outcome["memcheck"] == "no time left"
    assert "build" not in outcome
    assert report["bench"]["env"]["env_steps_per_s"] == 1234.5
    assert report["bench"]["train"] is None
    assert report["bench"]["bf16_act"]["agent_steps_per_s"] == 2469.0
    assert "standing in" in report["device"]
    page = path.with_suffix(".md").read_text()
    assert "one replica differs" in page and "Not measured: train, bf16_train, table_train." in page and "1,234" in page


def test_skipped_is_no_pass(build, tmp_path):
    (build / "wdtrain_emulated").write_text(WDTRAIN.replace("exit 1", "exit 0").replace("sleep 600", "echo '{}'"))
    with (build / "CTestTestfile.cmake").open("a") as tests:
        tests.write(f'add_test({GPU_TESTS[0]} "false")\nset_tests_properties({GPU_TESTS[0]} PROPERTIES SKIP_RETURN_CODE 1)\n')
    done = run("--device", "emulated", "--no_build", "--build_dir", build, "--out", tmp_path / "out", "--seconds", 25)
    (path,) = (tmp_path / "out").glob("*-gpu-standin.json")
    step = {step["step"]: step for step in json.loads(path.read_text())["steps"]}
    skipped = step[GPU_TESTS[0].split("/")[1].removesuffix(".py")]
    assert skipped["outcome"] == "skipped" and skipped["last line"] == "it skipped itself"
    # 1 if the peers are installed, because their comparison cannot run with a stub
    assert done.returncode in (1, 3)
    if step["peers"]["outcome"] == "skipped":
        assert done.returncode == 3


def test_sanitizers_see_every_allocation(build, tmp_path):
    tool = tmp_path / "compute-sanitizer"
    tool.write_text(f"""#!/bin/sh
echo "$PYTORCH_NO_CUDA_MEMORY_CACHING $*" >> {tmp_path}/calls
echo "[  PASSED  ] 1 test."
""")
    tool.chmod(0o755)
    run("--device", "emulated", "--no_build", "--build_dir", build, "--out", tmp_path / "out", "--parts", "sanitize",
        environment={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    (path,) = (tmp_path / "out").glob("*-gpu-standin.json")
    steps = {step["step"]: step for step in json.loads(path.read_text())["steps"]}
    assert set(steps) == {"gpu", "memcheck", "racecheck", "initcheck", "synccheck"}
    assert all(steps[tool]["last line"] == "3 programs without a finding" for tool in steps if tool != "gpu"), steps
    calls = (tmp_path / "calls").read_text().splitlines()
    assert len(calls) == 12
    assert all(call.startswith("1 --tool ") and "--gtest_filter=" in call for call in calls), calls


@pytest.mark.parametrize("arguments", [["--device", "tpu"], ["--parts", "bench,"], ["--parts", "all"], ["--seconds", "ten"], ["--fast"], ["--out"]])
def test_wrong_usage(arguments):
    done = run(*arguments)
    assert done.returncode == 2
    assert "usage:" in done.stderr


@pytest.mark.skipif("WD_SLOWDOWN" in os.environ, reason="sanitizers leave the emulated GPU out")
def test_its_commands_work_on_the_emulated_gpu(tmp_path):
    run("--device", "emulated", "--no_build", "--build_dir", os.environ["WD_BUILD_DIR"], "--out", tmp_path / "out", "--parts", "tests,bench",
        environment={"WD_SLOWDOWN": "4"})  # of a machine that runs other tests too
    (path,) = (tmp_path / "out").glob("*-gpu-standin.json")
    report = json.loads(path.read_text())
    steps = {step["step"]: step for step in report["steps"]}
    for name, step in steps.items():
        expected = "skipped" if name == "gpu" or name.endswith("_gpu_test") else "passed"
        assert step["outcome"] == expected, step
    assert all(found["env_steps_per_s"] > 0 for found in report["bench"].values())
