"""gpu.sh with a stub instead of the program: how it reports steps that pass, fail, hang, are skipped, run out of
time, or are left out because they have passed. gpu_pack_slow_test.py runs it with the emulated GPU."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(os.environ["WD_SOURCE_DIR"]) / "tools/bench/gpu.sh"

TESTS = SCRIPT.parents[2] / "tests"
GPU_TESTS = [str(path.relative_to(TESTS)) for path in sorted(TESTS.glob("*/*_gpu_test.*"))]
CALLS = [["kernels", "profile", "sweep", "small"], ["check", "play"]]
PARTS = [*CALLS[0], *CALLS[1], "peers", "bench", "tests", "learn", "sanitize", "install"]

WDTRAIN = """#!/bin/sh
case "$*" in
  *tag_gridworld*) echo "one replica differs"; exit 1 ;;
  check*) echo "all is well" ;;
  *"--mode train"*) sleep 600 ;;
  bench*) echo '{"env_steps_per_s": 1234.5, "agent_steps_per_s": 2469.0}' ;;
  *--profile*) echo "no profile"; exit 1 ;;
esac
"""


def program(path, text):
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def build(tmp_path):
    folder = tmp_path / "build"
    (folder / "tests").mkdir(parents=True)
    program(folder / "wdtrain_emulated", WDTRAIN)
    program(folder / "tests" / "kernels_bench", "#!/bin/sh\nexit 1\n")
    for test in GPU_TESTS:
        program(folder / "tests" / f"test.{test.split('/')[0]}", "#!/bin/sh\necho '[  PASSED  ] 3 tests.'\n")
    return folder


def run(*arguments, environment=None):
    return subprocess.run([SCRIPT, *map(str, arguments)], capture_output=True, text=True, timeout=500, env=os.environ | (environment or {}))


def limits_of(*arguments):
    done = run("--dry_run", *arguments)
    assert done.returncode == 0
    return {line.split()[0]: int(line.split()[1]) for line in done.stdout.splitlines()}


def test_each_part_takes_at_most_nine_minutes():
    parts = {part: limits_of("--no_build", "--parts", part) for part in PARTS}
    for part, limits in parts.items():
        assert limits and sum(limits.values()) <= 540, part
    tests = {name.split("/")[1].split(".")[0] for name in GPU_TESTS}
    assert tests <= set().union(*parts.values()), "every test that needs a GPU has a step"
    assert {"twins_gpu_test", "linear_gpu_test", "executor_gpu_test"} <= set(parts["check"]), "the first call says whether anything works"
    assert {"bench_env", "bench_act_tf32", "bench_train_tf32", "bench_train_bf16", "bench_train_fp32", "bench_train_table"} <= set(parts["bench"])
    assert {"peers_fp32", "peers_tf32"} == set(parts["peers"])
    assert "kernels" in parts["kernels"]
    assert {"profile_bf16", "profile_tf32", "profile_shipped_tf32", "profile_shipped_bf16", "profile_table_tf32", "profile_table_bf16", "stalls"} == set(parts["profile"])
    assert {"sweep_bf16", "sweep_kept_bf16", "sweep_tf32", "sweep_kept_tf32", "sweep_table"} <= set(parts["sweep"])
    assert {"bench_cartpole", "bench_pendulum_sac", "bench_cartpole_dqn", "bench_pendulum_td3_large", "bench_act_bf16", "start"} == set(parts["small"])
    assert {"memcheck", "racecheck", "initcheck", "synccheck"} <= set(parts["sanitize"])


def test_two_calls_of_less_than_fourteen_minutes_measure_what_matters():
    calls = [limits_of("--no_build", "--call", number) for number in (1, 2)]
    for call, parts in zip(calls, CALLS):
        assert call == limits_of("--no_build", "--parts", ",".join(parts))
        assert sum(call.values()) <= 540
    assert sum(sum(call.values()) for call in calls) < 14 * 60


def test_profiles_are_of_iterations_alone():
    lines = [line for line in run("--dry_run", "--no_build", "--parts", "profile").stdout.splitlines()]
    assert lines and all(" profile " in line for line in lines if not line.startswith("stalls "))
    text = SCRIPT.read_text()
    assert "--profile=4 --set eval.every=0 --set saving.metrics_log_freq=100" in text


def test_all_parts_are_the_default():
    everything = list(limits_of())
    assert everything[:2] == ["build", "gpu"]
    assert everything.index("bench_train_tf32") < everything.index("memcheck"), "the sanitizers are slow: they come last"
    assert everything[1:] == [step for part in PARTS for step in limits_of("--no_build", "--parts", part)]


def call(build, tmp_path, *options, **settings):
    done = run("--device", "emulated", "--no_build", "--build_dir", build, "--out", tmp_path / "out", *options, **settings)
    (path,) = (tmp_path / "out").glob("*-gpu-standin.json")
    report = json.loads(path.read_text())
    return done, report, {step["step"]: step for step in report["steps"]}


def test_every_step_is_accounted_for(build, tmp_path):
    done, report, steps = call(build, tmp_path, "--parts", "kernels,check,bench,tests,sanitize", "--seconds", 20, environment={"WD_COMMIT": "c0ffee"})
    assert done.returncode == 1, done.stdout + done.stderr
    outcome = {name: step["outcome"] for name, step in steps.items()}
    assert outcome["gpu"] == "skipped" and outcome["kernels"] == "failed (1)"
    assert outcome["twins_gpu_test"] == "passed"
    assert outcome["bench_env"] == "passed"
    assert outcome["bench_train_tf32"].startswith("stopped after")
    assert outcome["memcheck"] == "no time left"
    assert "build" not in outcome
    assert report["commit"] == "c0ffee"
    assert report["bench"]["env"]["env_steps_per_s"] == 1234.5
    assert report["bench"]["train_tf32"] is None
    assert "standing in" in report["device"]
    (page,) = (tmp_path / "out").glob("*.md")
    assert "Not measured: train_tf32, " in page.read_text() and "1,234" in page.read_text()
    # Once more, as if the first call had been before midnight: what has passed is not run again, and what has not is.
    (build / "gpu_results/date").write_text("2026-02-03\n")
    shutil.rmtree(tmp_path / "out")
    program(build / "wdtrain_emulated", WDTRAIN.replace("sleep 600", "echo '{}'").replace("1234.5", "7"))
    done, report, steps = call(build, tmp_path, "--parts", "bench,tests", environment={"WD_COMMIT": "c0ffee"})
    (page,) = (tmp_path / "out").glob("2026-02-03-*.md")
    assert "bench_env " not in done.stdout and "bench_train_tf32 " in done.stdout, done.stdout
    assert report["bench"]["env"]["env_steps_per_s"] == 1234.5
    assert steps["bench_train_tf32"]["outcome"] == "passed"
    assert steps["parity_tag_gridworld"]["outcome"] == "failed (1)" and steps["parity_cartpole"]["outcome"] == "passed"
    assert "one replica differs" in page.with_suffix(".log").read_text()
    # Results of another commit are not mixed with these, and have their own date.
    shutil.rmtree(tmp_path / "out")
    _, report, steps = call(build, tmp_path, "--parts", "bench", environment={"WD_COMMIT": "decade"})
    assert report["commit"] == "decade" and report["bench"]["env"]["env_steps_per_s"] == 7


def test_a_call_that_is_killed_keeps_what_it_has(build, tmp_path):
    command = [SCRIPT, "--device", "emulated", "--no_build", "--build_dir", build, "--out", tmp_path / "out", "--parts", "check,bench"]
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(command, timeout=8, capture_output=True)
    (path,) = (tmp_path / "out").glob("*-gpu-standin.json")
    report = json.loads(path.read_text())
    assert report["bench"]["env"]["env_steps_per_s"] == 1234.5 and report["steps"][-1]["step"] == "bench_env"


def test_all_results_come_back_in_one_file_after_each_step(build, tmp_path):
    """Also where the files' own folders do not come back."""
    back = tmp_path / "back"
    back.mkdir()
    call(build, tmp_path, "--parts", "small", environment={"OUT": str(back)})
    names = subprocess.run(["tar", "tf", back / "gpu.tar"], capture_output=True, text=True, check=True).stdout.split()
    assert [path.name for path in back.iterdir()] == ["gpu.tar"]
    assert "gpu/./steps.tsv" in names and "gpu/./bench_act_bf16.json" in names
    assert any(name.endswith("-gpu-standin.json") for name in names), names


def test_skipped_is_no_pass(build, tmp_path):
    program(build / "tests" / "test.kernels", "#!/bin/sh\necho '[  SKIPPED ] 1 test'\n")
    done, _, steps = call(build, tmp_path, "--parts", "check")
    assert steps["twins_gpu_test"]["outcome"] == "skipped" and steps["twins_gpu_test"]["last line"] == "it skipped itself"
    assert done.returncode == 3, done.stdout


def test_sanitizers_see_every_allocation(build, tmp_path):
    tool = tmp_path / "compute-sanitizer"
    tool.write_text(f"""#!/bin/sh
echo "$PYTORCH_NO_CUDA_MEMORY_CACHING $*" >> {tmp_path}/calls
echo "[  PASSED  ] 1 test."
""")
    tool.chmod(0o755)
    _, _, steps = call(build, tmp_path, "--parts", "sanitize", environment={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert set(steps) == {"memcheck", "racecheck", "initcheck", "synccheck"}
    assert all(step["last line"] == "3 programs without a finding" for step in steps.values()), steps
    calls = (tmp_path / "calls").read_text().splitlines()
    assert len(calls) == 12
    assert all(call.startswith("1 --tool ") and "--gtest_filter=" in call for call in calls), calls


@pytest.mark.parametrize("arguments", [["--device", "tpu"], ["--parts", "bench,"], ["--parts", "all"], ["--call", "3"], ["--seconds", "ten"], ["--fast"], ["--out"]])
def test_wrong_usage(arguments):
    done = run(*arguments)
    assert done.returncode == 2
    assert "usage:" in done.stderr


def test_a_gpu_test_that_skips_itself_fails_where_a_gpu_is_needed(tmp_path):
    """Without a GPU, of course, which this machine may have."""
    hidden = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "WD_NEED_GPU": "1"}
    done = subprocess.run([Path(os.environ["WD_BUILD_DIR"]) / "tests/test.kernels", "--file=kernels/twins_gpu_test.cpp"], capture_output=True, text=True, env=hidden)
    assert done.returncode == 1 and "WD_NEED_GPU=1, but " in done.stderr, done.stderr[-300:]
