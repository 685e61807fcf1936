"""`wdtrain bench`: consistent numbers, sweeps with a row per setting, and the profile of a training run."""

import json
import os
import pty
import re
import subprocess

import pytest

from cli.program import SANITIZED, output, wdtrain


def bench(*arguments):
    done = wdtrain("bench", "--device", "cpu", *arguments)
    assert done.returncode == 0, done.stderr
    assert "bench: " in done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("mode, phases", [
    ("env", {"environment", "actions"}),
    ("act", {"environment", "inference", "other"}),
    ("train", {"environment", "inference", "update", "other"}),
])
@pytest.mark.parametrize("env, agents", [("cartpole", 1), ("tag_gridworld", 5)])
def test_modes(env, agents, mode, phases):
    result = bench("--env", env, "--mode", mode, "--seconds", 0.5, "--json", "--num_envs", 16, "--rollout_steps", 16)
    assert (result["env"], result["mode"], result["device"], result["num_envs"]) == (env, mode, "cpu", 16)
    assert result["rollout_steps"] == 16
    assert result["seconds"] >= 0.5 and result["windows"] >= 3
    assert result["env_steps"] % (16 * 16) == 0
    assert result["env_steps_per_s_least"] <= result["env_steps_per_s"] <= result["env_steps_per_s_most"]
    overall = result["env_steps"] / result["seconds"]
    assert result["env_steps_per_s_least"] <= overall * 1.001 and overall <= result["env_steps_per_s_most"] * 1.001
    assert result["agent_steps_per_s"] == pytest.approx(agents * result["env_steps_per_s"])
    assert set(result["ms"]) == phases
    per_round = 16 if mode == "env" else 256
    assert result["ms_per_round"] == pytest.approx(1e3 * per_round / result["env_steps_per_s"])
    assert sum(result["ms"].values()) == pytest.approx(result["ms_per_round"], rel=0.3)


def test_work_and_its_share_of_the_ceilings():
    """cartpole: 4 observations, one hidden layer of 10, 2 logits and a value."""
    result = bench("--env", "cartpole", "--mode", "train", "--seconds", 0.5, "--json", "-", "--num_envs", 8, "--rollout_steps", 8, "--set",
                   "policy.shared.algorithm=A2C", "--set", "policy.shared.model.fc_dims=[10]", "--set", "policy.shared.model.separate_value=false")
    work = result["work_per_env_step"]
    forward = 2 * (4 * 10 + 10 * 3)
    assert work["inference"]["flop"] == forward * 9 / 8
    assert work["update"]["flop"] == 2 * forward + 2 * 10 * 3
    assert work["environment"] == {"bytes": 4 * 4 + 4 + 1 + 4 + 1 + 3, "flop": 0}
    ceilings, everything = result["ceilings"], result["achieved"]["all"]
    assert 0 < ceilings["copy_GB_per_s"] < 1e5 and 0 < ceilings["fp32_TFLOP_per_s"] < 1e3
    assert everything["GB_per_s"] == pytest.approx(1e-9 * work["all"]["bytes"] * result["env_steps_per_s"])
    assert everything["share_of_copy"] == pytest.approx(everything["GB_per_s"] / ceilings["copy_GB_per_s"])
    assert everything["share_of_fp32"] == pytest.approx(everything["TFLOP_per_s"] / ceilings["fp32_TFLOP_per_s"])
    assert "launches_per_step" not in result
    assert result["peak_memory_bytes"] > 1 << 20


def test_text_for_people():
    text = output("bench", "--env", "pendulum", "--seconds", 0.1, "--num_envs", 8, "--device", "cpu")
    assert re.search(r"speed +\S+ env/s, \S+ agent/s", text)
    assert re.search(r"environment +\S+ +\S+ % +\S+ +\S+ %", text)
    assert "peak memory" in text and "ceiling" in text


def test_replicas_keep_the_steps_of_a_rollout_and_steps_the_replicas():
    result = bench("--env", "cartpole", "--mode", "act", "--seconds", 0.05, "--json", "--num_envs", 7)
    assert (result["num_envs"], result["rollout_steps"]) == (7, 32)
    result = bench("--env", "cartpole", "--mode", "act", "--seconds", 0.05, "--json", "--rollout_steps", 5)
    assert (result["num_envs"], result["rollout_steps"]) == (32, 5)


def test_sweep_leaves_table_and_json(tmp_path):
    done = wdtrain("bench", "--env", "cartpole", "--device", "cpu", "--seconds", 0.05, "--rollout_steps", 8, "--sweep", "num_envs=4..16",
                   "--sweep", "mode=env,train", "--json", tmp_path / "sweep.json")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split()[:3] == ["num_envs", "mode", "env/s"]
    assert [line.split()[:2] for line in lines[1:]] == [[n, mode] for n in ("4", "8", "16") for mode in ("env", "train")]
    sweep = json.loads((tmp_path / "sweep.json").read_text())
    assert sweep["sweep"] == {"num_envs": ["4", "8", "16"], "mode": ["env", "train"]}
    for row in sweep["rows"]:
        assert row["status"] == "ok"
        assert row["result"]["num_envs"] == int(row["settings"]["num_envs"]) and row["result"]["mode"] == row["settings"]["mode"]
        assert row["result"]["rollout_steps"] == 8
    ceilings = [row["result"]["ceilings"] for row in sweep["rows"]]
    assert all(ceiling == ceilings[0] for ceiling in ceilings), "measured once"


def test_sweep_of_the_environment_and_to_stdout():
    done = wdtrain("bench", "--env", "tag_gridworld", "--device", "cpu", "--seconds", 0.05, "--num_envs", 4, "--sweep", "grid_length=5,10",
                   "--json")
    assert done.returncode == 0, done.stderr
    assert [row["settings"] for row in json.loads(done.stdout)["rows"]] == [{"env.grid_length": "5"}, {"env.grid_length": "10"}]


@pytest.mark.skipif(SANITIZED, reason="limits of memory do not work with a sanitizer")
def test_a_setting_without_memory_is_a_row_that_says_so(tmp_path):
    done = wdtrain("bench", "--env", "tag_continuous", "--device", "cpu", "--seconds", 0.05, "--rollout_steps", 20, "--memory_gb", 1,
                   "--set", "trainer.observations=rows",
                   "--sweep", "num_envs=1,1000", "--json", tmp_path / "sweep.json")
    assert done.returncode == 0, done.stderr
    good, large = json.loads((tmp_path / "sweep.json").read_text())["rows"]
    assert good["status"] == "ok"
    assert large["status"] == "out of memory" and "result" not in large and "allocate" in large["detail"]
    assert re.search(r"^ +1000  out of memory: ", done.stdout, re.M)


@pytest.mark.parametrize("arguments, message", [
    (["--sweep", "num_envs=8..4"], "--sweep num_envs=8..4: a range goes upwards"),
    (["--sweep", "mode=env,trian"], 'did you mean "train"?'),
    (["--sweep", "num_agents=1..4"], "env.num_agents"),
    (["--sweep", "num_envs=1..4", "--sweep", "num_envs=1..2"], "num_envs is there twice"),
    (["--num_envs", "0"], "--num_envs 0: must be in"),
    (["--memory_gb", "1"], "--memory_gb is for --sweep"),
    (["--mode", "act", "--rollout_steps", "8", "--train_batch_size", "64"], "exclude each other"),
])
def test_refusals_come_before_any_measurement(arguments, message):
    done = wdtrain("bench", "--env", "cartpole", "--device", "cpu", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "bench: " not in done.stderr


def train_profiled(folder, *arguments):
    text = output("--env", "tag_gridworld", "--device", "cpu", "--num_envs", 8, "--train_batch_size", 64, "--quiet", "--run_dir", folder,
                  *arguments)
    return text, json.loads((folder / "profile.json").read_text())


def test_profile_says_where_the_time_goes(tmp_path):
    text, profile = train_profiled(tmp_path / "run", "--profile=3", "--total_steps", 64 * 20, "--threads", 1)
    assert "profile of 3 iterations: tag_gridworld" in text
    assert (profile["iterations"], profile["env_steps"], profile["threads"]) == (3, 3 * 64, 1)
    assert set(profile["phases_s"]) == {"environment", "inference", "update", "other"}
    assert sum(profile["phases_s"].values()) == pytest.approx(profile["seconds"], rel=0.1)
    calls = {(one["phase"], one["operation"]): one["calls"] for one in profile["operations"]}
    assert calls["environment", "step replicas"] == 3 * 8
    assert calls["inference", "sample"] >= 3 * 8
    for operation in ("matrix product", "loss", "returns", "Adam"):
        assert calls["update", operation] >= 3
    for phase, seconds in profile["phases_s"].items():
        inside = sum(one["thread_s"] for one in profile["operations"] if one["phase"] == phase)
        assert inside <= seconds * 1.001
    assert re.search(r"^update +matrix product +\d+", text, re.M)
    assert (tmp_path / "run" / "summary.json").exists()


def test_on_a_terminal_the_profile_stands_in_lines_of_its_own(tmp_path):
    reader, terminal = pty.openpty()
    process = subprocess.Popen([os.environ["WDTRAIN"], "--env", "tag_gridworld", "--device", "cpu", "--num_envs", "8",
                                "--train_batch_size", "64", "--total_steps", "640", "--set", "saving.metrics_log_freq=1", "--profile=3", "--run_dir", str(tmp_path / "run")], stdout=terminal, stderr=subprocess.DEVNULL, env={**os.environ, "TERM": "xterm"})
    os.close(terminal)
    shown = b""
    try:
        while part := os.read(reader, 65536):
            shown += part
    # The other end is closed.
    except OSError:
        pass
    assert process.wait(60) == 0
    before = shown.split(b"profile of 3 iterations")[0]
    assert before.endswith(b"\r \x1b[J\r"), before
    assert b"steps/s" in before, "a live line stood there"


def test_a_profile_does_not_change_what_is_learned(tmp_path):
    weights = []
    for name, options in {"with": ["--profile=2"], "without": []}.items():
        output("--env", "cartpole", "--device", "cpu", "--total_steps", 1024 * 5, "--quiet", "--run_dir", tmp_path / name, *options)
        weights.append((tmp_path / name / "weights" / "shared.safetensors").read_bytes())
    assert weights[0] == weights[1]
    assert not (tmp_path / "without" / "profile.json").exists()


def test_a_training_that_ends_early_tells_what_was_seen(tmp_path):
    _, profile = train_profiled(tmp_path / "run", "--profile", "--total_steps", 64 * 4)
    assert profile["iterations"] == 2


def test_an_evaluation_is_no_part_of_a_profile(tmp_path):
    """Its window, of iterations 3 to 6, ends before the evaluation after iteration 4."""
    _, profile = train_profiled(tmp_path / "run", "--profile=4", "--total_steps", 64 * 8, "--set", "eval.every=4", "--set", "eval.episodes=8")
    assert (profile["iterations"], profile["env_steps"]) == (2, 2 * 64)
    calls = {(one["phase"], one["operation"]): one["calls"] for one in profile["operations"]}
    assert not [name for name in calls if name[0] == "other" and "step" in name[1]], calls


def test_an_evaluation_at_the_end_is_no_part_of_a_profile(tmp_path):
    _, profile = train_profiled(tmp_path / "run", "--profile=9", "--total_steps", 64 * 6, "--set", "eval.every=100", "--set", "eval.episodes=8")
    assert profile["iterations"] == 4


@pytest.mark.parametrize("iterations", [1, 3])
def test_phases_of_a_profile_sum_to_at_most_its_seconds(tmp_path, iterations):
    _, profile = train_profiled(tmp_path / "run", f"--profile={iterations}", "--total_steps", 64 * 8)
    assert 0.8 * profile["seconds"] < sum(profile["phases_s"].values()) <= profile["seconds"]


def test_profile_refuses(tmp_path):
    done = wdtrain("--env", "cartpole", "--profile=0", "--run_dir", tmp_path / "run")
    assert done.returncode == 2 and "--profile 0: must be in [1, 1e6]" in done.stderr
    assert not (tmp_path / "run").exists()
