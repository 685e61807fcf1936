"""Compares pendulum with gymnasium's Pendulum-v1 over whole episodes of scripted torques."""

import gymnasium
import numpy as np
import pytest
from envs.trace import play


def random_torque(state, rng):
    return rng.uniform(-3.0, 3.0)  # also beyond the bounds


def swing_up(state, rng):
    theta, speed = state
    if np.cos(theta) > 0.9:
        return -12.0 * (np.mod(theta + np.pi, 2 * np.pi) - np.pi) - 2.5 * speed
    return 2.0 * np.sign(speed * (1.0 - np.cos(theta) - 0.033 * speed**2))


def spin(state, rng):
    return 2.0


@pytest.mark.parametrize("gravity", [10.0, 9.81])
@pytest.mark.parametrize("policy", [random_torque, swing_up, spin])
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_gymnasium(policy, seed, gravity):
    compare(policy, seed, gravity, velocities=True)


@pytest.mark.parametrize("seed", range(2))
def test_without_velocities_their_column_is_left_out(seed):
    compare(swing_up, seed, gravity=10.0, velocities=False)


def compare(policy, seed, gravity, velocities):
    env = gymnasium.make("Pendulum-v1", g=gravity, disable_env_checker=True)
    first, _ = env.reset(seed=seed)
    columns = slice(None) if velocities else slice(2)
    start, rng = env.unwrapped.state, np.random.default_rng(seed)
    actions, results = [], []
    for _ in range(200):
        actions.append(np.array([policy(env.unwrapped.state, rng)], dtype=np.float32))
        results.append(env.step(actions[-1]))

    steps = play("pendulum", dict(gravity=gravity, velocities=velocities), [[action] for action in [*actions, actions[0]]],
                 dict(theta=start[:1], theta_dot=start[1:]))["steps"]
    assert len(steps) == 201
    np.testing.assert_allclose(steps[0]["observations"][0], first[columns], atol=1e-6)
    for t, (step, (observation, reward, terminated, truncated, _)) in enumerate(zip(steps[1:], results), 1):
        np.testing.assert_allclose(step["observations"][0], observation[columns], atol=1e-4, err_msg=f"step {t}")
        np.testing.assert_allclose(step["rewards"][0], reward, atol=1e-4, err_msg=f"step {t}")
        assert (bool(step["terminated"]), bool(step["truncated"])) == (terminated, truncated) == (False, t == 200)


def test_starts_are_uniform():
    starts = [play("pendulum", {}, [], arguments=("--seed", str(seed)))["steps"][0]["state"] for seed in range(20)]
    theta, speed = (np.array([start[name][0] for start in starts]) for name in ("theta", "theta_dot"))
    assert (abs(theta) < np.pi).all() and theta.std() > 1.2
    assert (abs(speed) < 1.0).all() and speed.std() > 0.35
