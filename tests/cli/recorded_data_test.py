"""Recorded data of one's own: what cannot be learned from is refused before training, with file, tensor, place, value and
remedy, and exit code 2."""

import re
from pathlib import Path

import numpy
import pytest
from safetensors.numpy import load_file, save_file

from cli.program import output, wdtrain

METADATA = {"format": "wd.transitions.1", "environment": "cartpole", "roles": "cart", "actions": "2", "action_mask": "false",
            "observation_size": "4", "observations": "rows", "agents": "1", "first_step": "0"}
REPLICAS, STEPS = 4, 210


def cartpole():
    """Transitions written by hand: episodes of 20 steps, each followed by a step that resets."""
    random = numpy.random.default_rng(0)
    rows = {"observation": random.normal(0, 0.05, (REPLICAS, STEPS, 1, 4)).astype("float32"),
            "action": random.integers(0, 2, (REPLICAS, STEPS, 1, 1)).astype("int32"), "reward": numpy.ones((REPLICAS, STEPS, 1), "float32"),
            "active": numpy.ones((REPLICAS, STEPS, 1), "uint8"), "agent_terminated": numpy.zeros((REPLICAS, STEPS, 1), "uint8")}
    for name in ("terminated", "truncated", "reset_step"):
        rows[name] = numpy.zeros((REPLICAS, STEPS), "uint8")
    rows["terminated"][:, 19::21] = 1
    rows["reset_step"][:, 20::21] = 1
    return rows


def write(folder, rows, part=0, **metadata):
    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: numpy.ascontiguousarray(row) for name, row in rows.items()}, folder / f"part-{part:05d}.safetensors",
              METADATA | {"steps": str(rows["observation"].shape[1])} | metadata)


def learn(folder, algorithm="DQN", env="cartpole", policy="shared", workers=1):
    settings = f"policy={{{policy}: {{algorithm: {algorithm}, batch_size: 16, replay_ratio: 2, model: {{fc_dims: [8], separate_value: false}}}}}}"
    return wdtrain("--env", env, "--device", "cpu", "--num_envs", 4, "--train_batch_size", 64, "--stop_return", "none", "--quiet", "--total_steps", 256,
                   "--num_workers", workers, "--set", settings, "--set", f"trainer.offline={folder}", "--run_dir", Path(folder) / "run")


def edit(name, value, at=(2, 30)):
    def apply(rows):
        rows[name][at] = value
    return apply


def replace(name, change):
    def apply(rows):
        rows[name] = change(rows[name])
    return apply


BAD = {  # the edit, and what the message says
    "a missing action": (edit("action", -1), r"tensor 'action', replica 2, step 30, agent 0: is -1, and head 0 \(push\) has the choices 0 to 1"),
    "actions that count from 1": (edit("action", 2), r"replica 2, step 30, agent 0: is 2, and head 0"),
    "a huge action": (edit("action", 1 << 30), r"tensor 'action', replica 2, step 30"),
    "no number": (edit("reward", numpy.nan), r"tensor 'reward', replica 2, step 30, agent 0: is nan"),
    "an infinite observation": (edit("observation", -numpy.inf, (2, 30, 0, 3)), r"tensor 'observation', replica 2, step 30, agent 0: is -inf in column 3"),
    "a number without a square": (edit("reward", 1e30), r"tensor 'reward', .*is 1e\+30, and numbers above 1e\+18 cannot"),
    "no flag": (edit("active", 255), r"tensor 'active', replica 2, step 30, agent 0: is 255, and a flag is 0 or 1"),
    "an end without a reset": (edit("terminated", 1), r"tensor 'reset_step', replica 2, step 31: is 0 behind a step that terminated"),
    "a reset without an end": (edit("reset_step", 1), r"tensor 'reset_step', replica 2, step 30: is 1 behind a step that did not end"),
    "an agent that left and plays": (edit("agent_terminated", 1), r"tensor 'active', replica 2, step 31, agent 0: is 1 behind"),
    "an agent too many": (replace("agent_terminated", lambda x: numpy.repeat(x, 3, 2)), r"tensor 'agent_terminated' is U8 \[4, 210, 3\] where U8 \[4, 210, 1\]"),
    "an agent too few": (replace("active", lambda x: x[:, :, :0]), r"tensor 'active' is U8 \[4, 210, 0\]"),
    "no agents": (replace("reward", lambda x: x[:, :, 0]), r"tensor 'reward' is F32 \[4, 210\] where F32 \[4, 210, 1\]"),
    "another type": (replace("reward", lambda x: x.astype("float64")), r"tensor 'reward' is F64 .* where F32"),
    "booleans": (replace("terminated", lambda x: x.astype("bool")), r"tensor 'terminated' is BOOL .* where U8"),
    "a foreign tensor": (lambda rows: rows.update(x=numpy.zeros(3, "uint8")), r"has a tensor 'x' without replicas and steps"),
    "no tensor": (lambda rows: rows.pop("reward"), r"has no tensor 'reward'"),
    "nobody plays": (replace("active", numpy.zeros_like), r"has no transition"),
}


def refused(result, message):
    assert result.returncode == 2, (result.returncode, result.stdout, result.stderr)
    assert re.search(message, result.stderr), result.stderr
    assert "lower the learning rate" not in result.stderr


@pytest.mark.parametrize("algorithm", ["DQN", "SAC", "BC"])
def test_good_data_trains(algorithm, tmp_path):
    rows = cartpole()
    rows["action"][rows["reset_step"] == 1] = -1  # nobody acts there
    write(tmp_path / "shared", rows)
    assert learn(tmp_path, algorithm).returncode == 0


@pytest.mark.parametrize("name", BAD)
def test_bad_data_is_refused(name, tmp_path):
    change, message = BAD[name]
    rows = cartpole()
    change(rows)
    write(tmp_path / "shared", rows)
    result = learn(tmp_path, ["DQN", "SAC", "BC"][len(name) % 3])
    refused(result, message)
    assert "part-00000.safetensors" in result.stderr or name == "nobody plays"
    assert not (tmp_path / "run/metrics.jsonl").exists(), "before training"


def test_every_worker_refuses(tmp_path):
    rows = cartpole()
    rows["action"][0, 5] = 9  # a step of the first worker
    write(tmp_path / "shared", rows)
    refused(learn(tmp_path, workers=2), r"tensor 'action', replica 0, step 5, agent 0: is 9")


def test_parts_are_all_looked_at(tmp_path):
    rows = cartpole()
    halves = [{name: row[:, :105] for name, row in rows.items()}, {name: row[:, 105:] for name, row in rows.items()}]
    write(tmp_path / "shared", halves[0], 0, steps="210")
    write(tmp_path / "shared", halves[1], 1, steps="210", first_step="105", environment="acrobot")
    refused(learn(tmp_path), r"part-00001.safetensors: was recorded with environment = acrobot, and this training has cartpole")
    halves[1]["action"][3, 7] = 77
    write(tmp_path / "shared", halves[1], 1, steps="210", first_step="105")
    refused(learn(tmp_path), r"part-00001.safetensors: tensor 'action', replica 3, step 112, agent 0: is 77")
    write(tmp_path / "shared", {**halves[1], "action": numpy.repeat(halves[1]["action"], 4, 3)}, 1, steps="210", first_step="105")
    refused(learn(tmp_path), r"part-00001.safetensors: its tensor 'action' is I32 \[4, 105, 1, 4\]")


@pytest.mark.parametrize("algorithm", ["SAC", "TD3", "DDPG", "BC"])
def test_continuous_actions_are_in_half_widths(algorithm, tmp_path):
    output("record", "--random", "--env", "pendulum", "--out", tmp_path, "--steps", 800, "--num_envs", 4, "--device", "cpu")
    file = tmp_path / "shared/part-00000.safetensors"
    rows = load_file(file)
    metadata = METADATA | {"environment": "pendulum", "roles": "pendulum", "actions": "-2..2", "observation_size": "3"}
    assert learn(tmp_path, algorithm, "pendulum").returncode == 0
    raw = {**rows, "action": rows["action"] * 2}  # Gymnasium's units
    write(tmp_path / "shared", raw, **metadata)
    refused(learn(tmp_path, algorithm, "pendulum"), r"for component 0 \(torque\), which is bounded: it must be in half-widths")


def test_a_gaussian_is_recorded_as_the_environment_took_it(tmp_path):
    """A Gaussian draws beyond the bounds, and the environment gets the bound."""
    output("--env", "pendulum", "--device", "cpu", "--quiet", "--total_steps", 2048, "--num_envs", 8, "--train_batch_size", 256, "--run_dir", tmp_path / "run")
    output("record", tmp_path / "run", "--out", tmp_path / "rec", "--steps", 2000, "--num_envs", 4, "--device", "cpu")
    action = next(load_file(file)["action"] for file in (tmp_path / "rec").rglob("*.safetensors"))
    assert abs(action).max() == 1.0, "some were beyond the bounds"
    policy = next((tmp_path / "rec").iterdir()).name
    assert learn(tmp_path / "rec", "BC", "pendulum", policy).returncode == 0


def test_a_link_in_a_circle_is_no_recording(tmp_path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/part-00000.safetensors").symlink_to("part-00000.safetensors")
    refused(learn(tmp_path), r"there is no such file")
