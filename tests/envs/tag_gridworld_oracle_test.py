"""Compares tag_gridworld with rl-warp-drive's Python environment over whole episodes."""

import numpy as np
import pytest
from envs.trace import play
from example_envs.tag_gridworld.tag_gridworld import TagGridWorld

CASES = {
    "defaults": {},
    "shipped": dict(num_taggers=4, grid_length=100, tag_penalty_for_runner=5.0),
    "nearest": dict(use_full_observation=False),
    "small": dict(num_taggers=3, grid_length=4),
    "small, nearest": dict(num_taggers=3, grid_length=4, use_full_observation=False),
    "one tagger": dict(num_taggers=1, grid_length=5, wall_hit_penalty=0.7, step_cost_for_tagger=0.2, episode_length=300),
    "odd grid": dict(num_taggers=2, grid_length=7, use_full_observation=False, episode_length=40, tag_reward_for_tagger=3.5),
    "two cells wide": dict(num_taggers=2, grid_length=1, episode_length=10),
}


def start_of(oracle, kind, rng):
    """Start positions; unless the kind is "given", the oracle uses its own corner start."""
    cells = rng.integers(0, oracle.grid_length + 1, size=(2, oracle.num_agents))
    if kind == "given":
        oracle.starting_location_x, oracle.starting_location_y = cells
        return {"x": cells[0], "y": cells[1]}
    return {}


@pytest.mark.parametrize("kind", ["corner", "given"])
@pytest.mark.parametrize("settings", CASES.values(), ids=CASES)
def test_agrees_with_warpdrive(settings, kind):
    ends = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        oracle = TagGridWorld(**settings)
        start = start_of(oracle, kind, rng)
        actions = rng.integers(0, 5, size=(oracle.episode_length + 5, oracle.num_agents))
        rows = lambda by_agent: np.array([by_agent[i] for i in range(oracle.num_agents)])  # noqa: E731
        observations = rows(oracle.reset())

        steps = play("tag_gridworld", settings, actions, start)["steps"]
        np.testing.assert_allclose(steps[0]["observations"], observations, atol=1e-6)
        done = False
        for t, step in enumerate(steps[1:], 1):
            assert not done
            observations, rewards, done, _ = oracle.step(dict(enumerate(actions[t - 1])))
            done = bool(done["__all__"])
            np.testing.assert_array_equal(step["state"]["x"], oracle.global_state["loc_x"][t])
            np.testing.assert_array_equal(step["state"]["y"], oracle.global_state["loc_y"][t])
            np.testing.assert_allclose(step["observations"], rows(observations), atol=1e-6)
            np.testing.assert_allclose(step["rewards"], rows(rewards), atol=1e-6)
            assert (bool(step["terminated"]), bool(step["truncated"])) == (done, False)
        assert done
        caught = bool(rewards[0] > 1.0)  # no wall penalty is that large
        assert steps[-1]["state"]["caught"] == [int(caught)]
        ends.append(caught)
    if settings.get("grid_length", 10) == 1:
        assert all(ends)


def test_random_starts_are_those_of_the_reset_pool():
    """WarpDrive's reset pool: taggers on cells 1 .. L - 1, the runner in the corner."""
    settings = dict(num_taggers=500, grid_length=6, start="random", use_full_observation=False)
    state = play("tag_gridworld", settings, [])["steps"][0]["state"]
    for cells in (state["x"], state["y"]):
        assert cells[-1] == 0
        counts = np.bincount(cells[:-1], minlength=7)
        assert counts[0] == counts[6] == 0 and counts[1:6].min() > 60
    assert np.corrcoef(state["x"][:-1], state["y"][:-1])[0, 1] < 0.2
