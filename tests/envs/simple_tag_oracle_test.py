"""Compares simple_tag with whole episodes of JaxMARL's MPE_simple_tag_v3, recorded by
tests/data/jaxmarl/record_simple_tag.py."""

import json
import os
import pathlib

import numpy as np
import pytest
from envs.trace import field, play

RECORD = np.load(pathlib.Path(os.environ["WD_SOURCE_DIR"]) / "tests/data/jaxmarl/simple_tag.npz")
CASES = sorted({name.rsplit("/", 1)[0] for name in RECORD.files if "/" in name})
NAMES = {"num_obs": "num_landmarks"}  # names that differ in JaxMARL


# Contact is stiff and doubles rounding errors within steps, so these episodes are compared in pieces, each
# starting from the recorded state.
PIECE = {"hunt": 8, "crowd": 8, "other constants": 8}


def parameters(case):
    return json.loads(str(RECORD[f"{case}/parameters"]))


def replay(case):
    """Pieces of a case: our trace starting from a recorded state, and the corresponding part of the
    record."""
    record = {name: RECORD[f"{case}/{name}"] for name in ("actions", "position", "velocity", "reward", "observation")}
    settings = {NAMES.get(name, name): value for name, value in parameters(case).items()}
    steps, agents = record["actions"].shape
    landmarks = RECORD[f"{case}/start"][agents:]
    for first in range(0, steps, PIECE.get(case.split(", seed")[0], steps)):
        position = record["position"][first - 1] if first else RECORD[f"{case}/start"][:agents]
        velocity = record["velocity"][first - 1] if first else np.zeros((agents, 2))
        start = dict(zip(("x", "y", "vx", "vy", "landmark_x", "landmark_y"), (*position.T, *velocity.T, *landmarks.T)))
        piece = {name: values[first:first + PIECE.get(case.split(", seed")[0], steps)] for name, values in record.items()}
        piece["first_observation"] = record["observation"][first - 1] if first else RECORD[f"{case}/first_observation"]
        yield play("simple_tag", settings | {"episode_length": len(piece["actions"])}, piece["actions"], start)["steps"], piece


def good_agents_reward(row, adversaries):
    """The recorded reward with one correction: for a good agent, JaxMARL reads the touches from a row past
    the end of the table, which returns the last good agent's touches. Ours uses the agent's own."""
    size = 0.075 + 0.05
    touches = np.array([sum(np.linalg.norm(good - bad) < size for bad in row["position"][:adversaries]) for good in row["position"][adversaries:]])
    return row["reward"][adversaries:] - 10.0 * (touches - touches[-1])


@pytest.mark.parametrize("case", CASES)
def test_agrees_with_jaxmarl(case):
    adversaries = parameters(case).get("num_adversaries", 3)
    flat = lambda step: np.concatenate(step["observations"])  # noqa: E731
    for steps, record in replay(case):
        np.testing.assert_allclose(flat(steps[0]), record["first_observation"], atol=1e-6)
        assert len(steps) == 1 + len(record["actions"])
        for t, step in enumerate(steps[1:], 1):
            row = {name: record[name][t - 1] for name in ("position", "velocity", "reward", "observation")}
            expect = lambda ours, theirs: np.testing.assert_allclose(ours, theirs, atol=1e-5, err_msg=f"step {t}")  # noqa: B023, E731
            expect(np.stack([field(step, "x"), field(step, "y")], axis=1), row["position"])
            expect(np.stack([field(step, "vx"), field(step, "vy")], axis=1), row["velocity"])
            expect(flat(step), row["observation"])
            expect(step["rewards"][:adversaries], row["reward"][:adversaries])
            expect(step["rewards"][adversaries:], good_agents_reward(row, adversaries))
            assert (bool(step["terminated"]), bool(step["truncated"])) == (False, t == len(record["actions"]))


def test_the_record_shows_what_it_should():
    """The episodes include touches, pushes, speed limits and every segment of the cost of being outside."""
    rewards = np.concatenate([RECORD[f"{case}/reward"][:, 0] for case in CASES])
    assert {0, 10, 20} <= set(rewards)
    runs_away = [case for case in CASES if case.startswith("runs away")]
    far = np.concatenate([np.abs(RECORD[f"{case}/position"][:, -1, 0]) for case in runs_away])
    for low, high in ((0, 0.9), (0.9, 1.0), (1.0, 2.1), (2.2, 9)):
        assert ((low < far) & (far < high)).any()
    speed = np.linalg.norm(RECORD["chase, seed 0/velocity"], axis=2).max(0)
    np.testing.assert_allclose(speed, [1, 1, 1, 1.3], atol=1e-5)


def test_starts_are_uniform():
    states = [play("simple_tag", {}, [], arguments=("--seed", str(seed)))["steps"][0]["state"] for seed in range(20)]
    for name, count in (("x", 4), ("y", 4), ("landmark_x", 2), ("landmark_y", 2)):
        values = np.array([state[name] for state in states])
        assert values.shape == (20, count)
        assert (abs(values) < 1).all() and values.min() < -0.8 and values.max() > 0.8 and abs(values.mean()) < 0.25
    assert all(state["vx"] == state["vy"] == [0] * 4 for state in states)
