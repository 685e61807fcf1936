"""Compares cartpole with gymnasium's CartPole-v1 over whole episodes of scripted actions."""

import gymnasium
import numpy as np
import pytest
from envs.trace import play

FIELDS = ["x", "x_dot", "theta", "theta_dot"]


def episode(policy, seed, **attributes):
    """Start, actions and results of one gymnasium episode, stepped slightly beyond its end."""
    env = gymnasium.make("CartPole-v1")
    observation, _ = env.reset(seed=seed)
    for name, value in attributes.items():
        setattr(env.unwrapped, name, value)
    start, rng = env.unwrapped.state, np.random.default_rng(seed)
    actions, results, over = [], [observation], False
    while not over:
        actions.append(int(policy(env.unwrapped.state, rng)))
        results.append(env.step(actions[-1]))
        over = results[-1][2] or results[-1][3]
    return start, actions, results


def check(start, actions, results, **settings):
    steps = play("cartpole", settings, [[action] for action in [*actions, 0, 0]], dict(zip(FIELDS, start[:, None])))["steps"]
    np.testing.assert_allclose(steps[0]["observations"][0], results[0], atol=1e-6)
    assert len(steps) == len(results)
    for t, (step, (observation, reward, terminated, truncated, _)) in enumerate(zip(steps[1:], results[1:])):
        np.testing.assert_allclose(step["observations"][0], observation, atol=1e-4, err_msg=f"step {t + 1}")
        assert step["rewards"] == [reward]
        assert (bool(step["terminated"]), bool(step["truncated"])) == (terminated, truncated)
    return steps


def balance(noise):
    def policy(state, rng):
        return np.dot([0.1, 0.3, 3.0, 0.9], state) + noise * rng.normal() > 0
    return policy


@pytest.mark.parametrize("seed", range(8))
def test_random_actions(seed):
    check(*episode(lambda state, rng: rng.integers(2), seed))


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_balanced_episodes_are_truncated_at_500(seed, noise):
    steps = check(*episode(balance(noise), seed))
    assert len(steps) == 501 and steps[-1]["truncated"] and not steps[-1]["terminated"]


def test_leaves_the_track():
    start, actions, results = episode(lambda state, rng: state[2] + 0.2 * state[3] > -0.05, 1)
    steps = check(start, actions, results)
    assert abs(steps[-1]["state"]["x"][0]) > 2.4


def test_parameters():
    settings = dict(gravity=3.7, masscart=1.3, masspole=0.2, length=0.8, force_mag=6.0, tau=0.015)
    check(*episode(balance(0.3), 2, total_mass=0.2 + 1.3, polemass_length=0.2 * 0.8, **settings), **settings)


@pytest.mark.parametrize("seed", range(2))
def test_without_velocities_their_columns_are_left_out(seed):
    start, actions, results = episode(balance(0.1), seed)
    check(start, actions, [(results[0][[0, 2]]), *((result[0][[0, 2]], *result[1:]) for result in results[1:])], velocities=False)


def test_starts_are_uniform():
    starts = [play("cartpole", {}, [], arguments=("--seed", str(seed)))["steps"][0]["state"] for seed in range(20)]
    states = np.array([[start[name][0] for name in FIELDS] for start in starts])
    assert (abs(states) < 0.05).all() and states.std() > 0.02 and len(np.unique(states)) == states.size
