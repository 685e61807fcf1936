"""Compares t_maze with the T-maze of Ni et al. 2023 (github.com/twni2016/Memory-RL, envs/tmaze.py), whose rules are written down here
again, for their penalty and for that of their issue 1: where ending elsewhere costs nothing, both agree in every step."""

import numpy as np
import pytest
from envs.trace import play

MOVES = [(1, 0), (0, 1), (-1, 0), (0, -1)]


class Ni:
    """Ambiguous places, no time in the observation; penalty = -1 / corridor_length, as in their configurations."""

    def __init__(self, corridor, oracle, goal, lag):
        self.lag = lag
        self.corridor, self.oracle, self.goal = corridor, oracle, goal
        self.free = {(x, 0) for x in range(oracle + corridor + 1)} | {(oracle + corridor, 1), (oracle + corridor, -1)}
        self.place, self.time, self.visited = (oracle, 0), 0, False

    def see(self):
        x, y = self.place
        if x == 0:
            shown = 0 if self.visited else self.goal
            self.visited = True
            return [0, shown]
        return [1, y] if x == self.oracle + self.corridor else [0, 0]

    def step(self, action):
        self.time += 1
        to = tuple(np.add(self.place, MOVES[action]).tolist())
        self.place = to if to in self.free else self.place
        done = self.time >= self.corridor + 2 * self.oracle + 1
        if done:
            reward = float(self.place[1] == self.goal)
        else:
            late = self.place[0] < self.time - self.oracle if self.lag == "schedule" else action != 0 and self.time > self.oracle
            reward = -1 / self.corridor if late else 0.0
        return self.see(), reward, done


def episode(game, choose):
    """Actions, observations and rewards until the end."""
    seen, actions, rewards, done = [game.see()], [], [], False
    while not done:
        actions.append(int(choose(game)))
        now, reward, done = game.step(actions[-1])
        seen.append(now), rewards.append(reward)
    return actions, seen, rewards


def chooser(kind, rng):
    def forward(game):
        """Mostly straight on; turns at the junction."""
        if game.visited and game.place[0] == game.oracle + game.corridor and rng.random() < 0.7:
            return rng.choice([1, 3])
        return 0 if rng.random() < 0.9 else rng.integers(4)
    def perfect(game):
        """To the oracle first."""
        if not game.visited:
            return 2
        return 0 if game.place[0] < game.oracle + game.corridor else {1: 1, -1: 3}[game.goal]
    return {"random": lambda game: rng.integers(4), "forward": forward, "perfect": perfect}[kind]


def trace(corridor, oracle, goal, actions, **settings):
    return play("t_maze", dict(corridor_length=corridor, oracle_length=oracle) | settings, [[action] for action in [*actions, 0, 0]],
                dict(side=[goal], sign=[goal if oracle == 0 else 0]))["steps"]


@pytest.mark.parametrize("lag", ["schedule", "step"])
@pytest.mark.parametrize("kind", ["random", "forward", "perfect"])
@pytest.mark.parametrize(("corridor", "oracle"), [(1, 0), (3, 0), (30, 0), (1, 1), (4, 1), (6, 3)])
def test_agrees_with_the_rules_of_ni_et_al(corridor, oracle, kind, lag):
    rng = np.random.default_rng(corridor + 10 * oracle)
    for goal in (1, -1):
        actions, seen, rewards = episode(Ni(corridor, oracle, goal, lag), chooser(kind, rng))
        steps = trace(corridor, oracle, goal, actions, wrong_reward=0, lag=lag)
        np.testing.assert_array_equal([step["observations"][0] for step in steps], seen)
        np.testing.assert_allclose([step["rewards"][0] for step in steps[1:]], rewards, rtol=1e-6)
        assert [bool(step["terminated"]) for step in steps[1:]] == [False] * (len(actions) - 1) + [True]
        assert not any(step["truncated"] for step in steps[1:])
        assert steps[-1]["state"]["success"] == [int(rewards[-1])]
        if kind == "perfect":
            assert sum(rewards) == 1 and len(actions) == corridor + 2 * oracle + 1


@pytest.mark.parametrize("goal", [1, -1])
def test_all_but_the_right_turn_costs_what_that_pays(goal):
    straight = [0] * 30
    for turn, paid in ((1, goal), (3, -goal), (0, -1), (2, -1)):
        steps = trace(30, 0, goal, [*straight, turn])
        assert [step["rewards"][0] for step in steps[1:]] == [0] * 30 + [paid]


def test_the_sign_is_30_steps_back_and_nothing_else_tells_the_side():
    """The 31 observations before the turn differ between the sides in the first one only."""
    up, down = ([step["observations"][0] for step in trace(30, 0, goal, [0] * 30)] for goal in (1, -1))
    assert up[0] == [0, 1] and down[0] == [0, -1]
    assert up[1:] == down[1:] == [[0, 0]] * 29 + [[1, 0]] + up[31:]
    assert len(up) == 32


def test_sides_are_equally_likely():
    starts = [play("t_maze", {}, [], arguments=("--seed", str(seed)))["steps"][0] for seed in range(24)]
    sides = [start["state"]["side"][0] for start in starts]
    assert 5 <= sides.count(1) <= 19 and sides.count(-1) == 24 - sides.count(1)
    assert all(start["observations"][0] == [0, side] for start, side in zip(starts, sides))
