"""Compares acrobot with gymnasium's Acrobot-v1 over whole episodes of scripted actions."""

import gymnasium
import numpy as np
import pytest
from envs.trace import play

FIELDS = ["theta1", "theta2", "theta1_dot", "theta2_dot"]


def episode(policy, seed, **attributes):
    """Start, actions and results of one gymnasium episode."""
    env = gymnasium.make("Acrobot-v1", disable_env_checker=True)
    for name, value in attributes.items():
        assert hasattr(env.unwrapped, name)
        setattr(env.unwrapped, name, value)
    observation, _ = env.reset(seed=seed)
    start, rng = env.unwrapped.state.astype(float), np.random.default_rng(seed)
    actions, results, states, over = [], [observation], [start], False
    while not over:
        actions.append(int(policy(env.unwrapped.state, rng)))
        results.append(env.step(actions[-1]))
        states.append(env.unwrapped.state)
        over = results[-1][2] or results[-1][3]
    return actions, results, states


def check(actions, results, states, **settings):
    steps = play("acrobot", settings, [[action] for action in [*actions, 0, 0]], dict(zip(FIELDS, states[0][:, None])))["steps"]
    np.testing.assert_allclose(steps[0]["observations"][0], results[0], atol=1e-6)
    assert len(steps) == len(results)
    for t, (step, (observation, reward, terminated, truncated, _)) in enumerate(zip(steps[1:], results[1:]), 1):
        np.testing.assert_allclose([step["state"][name][0] for name in FIELDS], states[t], atol=1e-9, err_msg=f"step {t}")
        np.testing.assert_allclose(step["observations"][0], observation, atol=1e-6, err_msg=f"step {t}")
        assert step["rewards"] == [reward]
        assert (bool(step["terminated"]), bool(step["truncated"])) == (terminated, truncated)
    return steps


def random_action(state, rng):
    return rng.integers(3)


def idle(state, rng):
    return 1


def follow_upper(state, rng):
    return 2 if state[2] > 0 else 0


def swing_up(state, rng):
    return 2 if state[3] > 0 else 0


@pytest.mark.parametrize("policy", [random_action, idle, follow_upper, swing_up])
@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_gymnasium(policy, seed):
    check(*episode(policy, seed))


def test_an_idle_episode_is_truncated_at_500():
    steps = check(*episode(idle, 9))
    assert len(steps) == 501 and steps[-1]["truncated"] and not steps[-1]["terminated"] and steps[-1]["rewards"] == [-1]


def test_the_goal_ends_an_episode_without_cost():
    lengths = [len(check(*episode(swing_up, seed))) - 1 for seed in range(3)]
    assert max(lengths) < 500


def test_the_equations_of_the_paper():
    book, paper = episode(swing_up, 3), episode(swing_up, 3, book_or_nips="nips")
    check(*paper, book_or_nips="nips")
    assert not np.allclose(book[2][20], paper[2][20], atol=1e-3)


def test_parameters():
    settings = dict(dt=0.1, max_vel_1=1.0, max_vel_2=1.5)
    *played, states = episode(swing_up, 2, **{name if name == "dt" else name.upper(): value for name, value in settings.items()})
    check(*played, states, **settings)
    assert (np.abs(states)[:, 2:].max(axis=0) == [1.0, 1.5]).all()


def test_torques_are_scaled_and_noisy():
    played = episode(swing_up, 4, AVAIL_TORQUE=[-0.5, 0.0, 0.5])
    check(*played, avail_torque=0.5)
    steps = play("acrobot", dict(torque_noise_max=0.5), [[1]] * 300, dict.fromkeys(FIELDS, [0.0]))["steps"]
    other = play("acrobot", dict(torque_noise_max=0.5), [[1]] * 300, dict.fromkeys(FIELDS, [0.0]), ("--seed", "9"))["steps"]
    first, second = (np.array([step["state"]["theta2_dot"][0] for step in trace]) for trace in (steps, other))
    assert (first[1:] != 0).all() and (first[1:] != second[1:]).all()
    # A torque of 1 alone for one step gives this; the noise is less than half of it.
    push = play("acrobot", {}, [[2]], dict.fromkeys(FIELDS, [0.0]))["steps"][1]["state"]["theta2_dot"][0]
    assert abs(first[1]) < 0.5 * push and abs(second[1]) < 0.5 * push


def test_starts_are_uniform_and_float32():
    starts = [play("acrobot", {}, [], arguments=("--seed", str(seed)))["steps"][0]["state"] for seed in range(20)]
    states = np.array([[start[name][0] for name in FIELDS] for start in starts])
    assert (abs(states) <= np.float32(0.1)).all() and states.std() > 0.04 and len(np.unique(states)) == states.size
    assert (states == states.astype(np.float32)).all()
