"""Compares simple_spread with whole episodes of mpe2's simple_spread_v3, recorded by
tests/data/mpe2/record_simple_spread.py."""

import json
import os
import pathlib

import numpy as np
import pytest
from envs.trace import field, play

RECORD = np.load(pathlib.Path(os.environ["WD_SOURCE_DIR"]) / "tests/data/mpe2/simple_spread.npz")
CASES = sorted({name.rsplit("/", 1)[0] for name in RECORD.files if "/" in name})

# Contact is stiff and doubles rounding errors within steps, so episodes are compared in pieces of as many steps,
# each starting from the recorded state.
PIECE = 5


def parameters(case):
    return json.loads(str(RECORD[f"{case}/parameters"]))


def replay(case):
    """Pieces of a case: our trace starting from a recorded state, and the corresponding part of the record."""
    record = {name: RECORD[f"{case}/{name}"] for name in ("actions", "position", "velocity", "reward", "observation", "benchmark")}
    steps, agents = record["actions"].shape
    landmarks = RECORD[f"{case}/start"][agents:]
    for first in range(0, steps, PIECE):
        position = record["position"][first - 1] if first else RECORD[f"{case}/start"][:agents]
        velocity = record["velocity"][first - 1] if first else np.zeros((agents, 2))
        start = dict(zip(("x", "y", "vx", "vy", "landmark_x", "landmark_y"), (*position.T, *velocity.T, *landmarks.T)))
        piece = {name: values[first:first + PIECE] for name, values in record.items()}
        piece["first_observation"] = record["observation"][first - 1] if first else RECORD[f"{case}/first_observation"]
        settings = parameters(case) | {"episode_length": len(piece["actions"])}
        yield play("simple_spread", settings, piece["actions"], start)["steps"], piece


@pytest.mark.parametrize("case", CASES)
def test_agrees_with_mpe2(case):
    flat = lambda step: np.concatenate(step["observations"])  # noqa: E731
    for steps, record in replay(case):
        np.testing.assert_allclose(flat(steps[0]), record["first_observation"], atol=1e-6)
        assert len(steps) == 1 + len(record["actions"])
        for t, step in enumerate(steps[1:], 1):
            row = {name: record[name][t - 1] for name in ("position", "velocity", "reward", "observation", "benchmark")}
            expect = lambda ours, theirs: np.testing.assert_allclose(ours, theirs, atol=2e-5, err_msg=f"step {t}")  # noqa: B023, E731
            expect(np.stack([field(step, "x"), field(step, "y")], axis=1), row["position"])
            expect(np.stack([field(step, "vx"), field(step, "vy")], axis=1), row["velocity"])
            expect(flat(step), row["observation"])
            expect(step["rewards"], row["reward"])
            _, distances, covered = row["benchmark"]
            expect(sum(step["state"]["distance"]), distances)
            assert step["state"]["covered"] == [covered]
            assert (bool(step["terminated"]), bool(step["truncated"])) == (False, t == len(record["actions"]))


def test_the_record_shows_what_it_should():
    """The episodes include collisions of several agents at once, covered landmarks, and none."""
    benchmark = np.concatenate([RECORD[f"{case}/benchmark"] for case in CASES])
    assert {0, 1, 2} <= set(benchmark[:, 0]) and {0, 1, 2} <= set(benchmark[:, 2])


def test_starts_are_uniform():
    states = [play("simple_spread", {}, [], arguments=("--seed", str(seed)))["steps"][0]["state"] for seed in range(20)]
    for name in ("x", "y", "landmark_x", "landmark_y"):
        values = np.array([state[name] for state in states])
        assert values.shape == (20, 3)
        assert (abs(values) < 1).all() and values.min() < -0.8 and values.max() > 0.8 and abs(values.mean()) < 0.25
    assert all(state["vx"] == state["vy"] == [0] * 3 and state["collisions"] == [0] for state in states)
