"""Compares mountain_car with gymnasium's MountainCar-v0 over whole episodes of scripted actions."""

import gymnasium
import numpy as np
import pytest
from envs.trace import play


def episode(policy, seed, start=None, **attributes):
    """Actions, results and states of one gymnasium episode."""
    env = gymnasium.make("MountainCar-v0", disable_env_checker=True, goal_velocity=attributes.pop("goal_velocity", 0))
    for name, value in attributes.items():
        assert hasattr(env.unwrapped, name)
        setattr(env.unwrapped, name, value)
    observation, _ = env.reset(seed=seed)
    if start is not None:
        env.unwrapped.state = np.array(start)
        observation = env.unwrapped.state.astype(np.float32)
    states, rng = [tuple(env.unwrapped.state)], np.random.default_rng(seed)
    actions, results, over = [], [observation], False
    while not over:
        actions.append(int(policy(env.unwrapped.state, rng)))
        results.append(env.step(actions[-1]))
        states.append(tuple(env.unwrapped.state))
        over = results[-1][2] or results[-1][3]
    return actions, results, states


def check(actions, results, states, **settings):
    start = dict(position=[states[0][0]], velocity=[states[0][1]])
    steps = play("mountain_car", settings, [[action] for action in [*actions, 0, 0]], start)["steps"]
    np.testing.assert_array_equal(np.array(steps[0]["observations"][0], dtype=np.float32), results[0])
    assert len(steps) == len(results)
    for t, (step, (observation, reward, terminated, truncated, _)) in enumerate(zip(steps[1:], results[1:]), 1):
        state = step["state"]
        np.testing.assert_allclose([state["position"][0], state["velocity"][0]], states[t], atol=1e-12, err_msg=f"step {t}")
        np.testing.assert_allclose(step["observations"][0], observation, atol=1e-7, err_msg=f"step {t}")
        assert step["rewards"] == [reward]
        assert (bool(step["terminated"]), bool(step["truncated"])) == (terminated, truncated)
    return steps


def random_action(state, rng):
    return rng.integers(3)


def climb(state, rng):
    return 2 if state[1] >= 0 else 0


def left(state, rng):
    return 0


@pytest.mark.parametrize("policy", [random_action, climb, left])
@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_gymnasium(policy, seed):
    steps = check(*episode(policy, seed))
    assert bool(steps[-1]["terminated"]) == (policy is climb)
    assert len(steps) == 201 or policy is climb


def test_the_left_wall_stops_the_car():
    steps = check(*episode(left, 0, start=(-1.1, -0.07)))
    stopped = [step["state"] for step in steps if step["state"]["position"] == [-1.2]]
    assert stopped and all(state["velocity"] == [0] for state in stopped)


def test_speed_is_bounded():
    steps = check(*episode(climb, 0, start=(-1.15, 0.069), goal_position=0.6, force=0.01), goal_position=0.6, force=0.01)
    assert max(step["state"]["velocity"][0] for step in steps) == 0.07


@pytest.mark.parametrize("settings", [
    dict(goal_velocity=0.02), dict(goal_velocity=0.06), dict(goal_position=0.3, force=0.0013, gravity=0.003),
    dict(min_position=-0.9, max_position=0.4, goal_position=0.4), dict(max_speed=0.03, min_position=-1.5)])
def test_parameters(settings):
    check(*episode(climb, 1, **settings), **settings)


def test_drawn_quantities_follow_the_position():
    for step in check(*episode(climb, 2)):
        position = step["state"]["position"][0]
        assert step["state"]["height"][0] == pytest.approx(0.45 * np.sin(3 * position) + 0.55, abs=1e-12)
        assert step["state"]["slope"][0] == pytest.approx(np.cos(3 * position), abs=1e-12)


def test_starts_are_uniform():
    starts = [play("mountain_car", {}, [], arguments=("--seed", str(seed)))["steps"][0]["state"] for seed in range(20)]
    position = np.array([start["position"][0] for start in starts])
    assert ((-0.6 <= position) & (position < -0.4)).all() and position.std() > 0.04
    assert all(start["velocity"] == [0] for start in starts)
