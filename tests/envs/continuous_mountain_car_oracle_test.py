"""Compares continuous_mountain_car with gymnasium's MountainCarContinuous-v0 over whole episodes of scripted
forces. Both compute in float32, so positions, velocities and rewards must be equal to the bit."""

import gymnasium
import numpy as np
import pytest
from envs.trace import field, play


def episode(policy, seed, start=None, **attributes):
    """Actions, results and states of one gymnasium episode from a start that is rounded to float32."""
    env = gymnasium.make("MountainCarContinuous-v0", disable_env_checker=True, goal_velocity=attributes.pop("goal_velocity", 0))
    for name, value in attributes.items():
        assert hasattr(env.unwrapped, name)
        setattr(env.unwrapped, name, value)
    env.reset(seed=seed)
    env.unwrapped.state = np.array(env.unwrapped.state if start is None else start, dtype=np.float32)
    states, rng = [env.unwrapped.state], np.random.default_rng(seed)
    actions, results, over = [], [env.unwrapped.state], False
    while not over:
        actions.append(np.array([policy(env.unwrapped.state, rng)], dtype=np.float32))
        results.append(env.step(actions[-1]))
        states.append(env.unwrapped.state)
        over = results[-1][2] or results[-1][3]
    return actions, results, states


def check(actions, results, states, **settings):
    start = dict(position=states[0][:1], velocity=states[0][1:])
    steps = play("continuous_mountain_car", settings, [[action] for action in [*actions, actions[0]]], start)["steps"]
    np.testing.assert_array_equal(np.array(steps[0]["observations"][0], dtype=np.float32), results[0])
    assert len(steps) == len(results)
    for t, (step, (observation, reward, terminated, truncated, _)) in enumerate(zip(steps[1:], results[1:]), 1):
        state = np.array([field(step, "position")[0], field(step, "velocity")[0]])
        np.testing.assert_array_equal(state, states[t], err_msg=f"step {t}")
        np.testing.assert_array_equal(np.array(step["observations"][0], dtype=np.float32), observation, err_msg=f"step {t}")
        assert np.float32(step["rewards"][0]) == np.float32(reward)
        assert (bool(step["terminated"]), bool(step["truncated"])) == (terminated, truncated)
    return steps


def random_force(state, rng):
    return rng.uniform(-1.5, 1.5)  # also beyond the bounds


def climb(state, rng):
    return 1.0 if state[1] >= 0 else -1.0


def climb_hard(state, rng):
    return 3.0 if state[1] >= 0 else -3.0


def climb_gently(state, rng):
    return 0.7 * np.sign(state[1]) + 0.1 * rng.normal()


def left(state, rng):
    return -1.0


@pytest.mark.parametrize("policy", [random_force, climb, climb_hard, climb_gently, left])
@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_gymnasium(policy, seed):
    steps = check(*episode(policy, seed))
    if policy in (climb, climb_hard, climb_gently):
        assert steps[-1]["terminated"] and steps[-1]["rewards"][0] > 98
    else:
        assert len(steps) == 1000 and steps[-1]["truncated"] and not steps[-1]["terminated"]


def test_the_first_step_of_gymnasium_itself_differs_by_rounding_alone():
    env = gymnasium.make("MountainCarContinuous-v0", disable_env_checker=True)
    first, _ = env.reset(seed=5)
    assert env.unwrapped.state.dtype == np.float64
    steps = play("continuous_mountain_car", {}, [[[0.4]]], dict(position=first[:1], velocity=first[1:]))["steps"]
    np.testing.assert_allclose(steps[1]["observations"][0], env.step(np.array([0.4], dtype=np.float32))[0], rtol=2e-7)


def test_the_left_wall_stops_the_car():
    steps = check(*episode(left, 0, start=(-1.1, -0.07)))
    stopped = [step["state"] for step in steps if field(step, "position")[0] == np.float32(-1.2)]
    assert stopped and all(state["velocity"] == [0] for state in stopped)


def test_the_right_end_stops_the_car():
    steps = check(*episode(climb, 0, start=(0.3, 0.07), goal_velocity=0.1), goal_velocity=0.1)
    assert max(field(step, "position")[0] for step in steps) == np.float32(0.6)


@pytest.mark.parametrize("settings", [
    dict(goal_velocity=0.02), dict(goal_position=0.3, power=0.0018), dict(max_speed=0.03, power=0.003),
    dict(min_position=-0.9, max_position=0.4, goal_position=0.35)])
def test_parameters(settings):
    check(*episode(climb, 1, **settings), **settings)


def test_starts_are_uniform():
    starts = [play("continuous_mountain_car", {}, [], arguments=("--seed", str(seed)))["steps"][0]["state"] for seed in range(20)]
    position = np.array([start["position"][0] for start in starts])
    assert ((-0.600001 <= position) & (position <= -0.399999)).all() and position.std() > 0.04
    assert all(start["velocity"] == [0] for start in starts)
