"""`wdtrain bench` prints one JSON object whose numbers go together."""

import json

import pytest

from cli.program import output, wdtrain


@pytest.mark.parametrize("mode, phases", [
    ("env", {"environment", "actions"}),
    ("act", {"environment", "inference", "other"}),
    ("train", {"environment", "inference", "update", "other"}),
])
@pytest.mark.parametrize("env, agents", [("cartpole", 1), ("tag_gridworld", 5)])
def test_modes(env, agents, mode, phases):
    arguments = ["--num_envs", 16, *(["--train_batch_size", 256] if mode != "env" else [])]
    done = wdtrain("bench", "--env", env, "--mode", mode, "--seconds", 0.5, "--json", "--device", "cpu", *arguments)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["env"], result["mode"], result["device"], result["num_envs"]) == (env, mode, "cpu", 16)
    assert result["seconds"] >= 0.5
    assert result["env_steps_per_s"] == pytest.approx(result["env_steps"] / result["seconds"])
    assert result["agent_steps_per_s"] == pytest.approx(agents * result["env_steps_per_s"])
    assert set(result["ms"]) == phases
    per_round = 16 if mode == "env" else 256
    rounds = result["env_steps"] / per_round
    assert sum(result["ms"].values()) == pytest.approx(1e3 * result["seconds"] / rounds, rel=0.2)
    assert "bench: " in done.stderr


def test_text_for_people():
    assert "env_steps_per_s" in output("bench", "--env", "pendulum", "--seconds", 0.1, "--num_envs", 8)
