"""Plays episodes of lbforaging's Foraging-*-v3 and writes foraging.npz, which tests/envs/foraging_oracle_test.py reads.

    pip install --no-deps lbforaging==2.0.0 && python tests/data/lbforaging/record_foraging.py

Needs gymnasium and numpy. Of each case: the arguments of lbforaging as JSON, and of all its episodes one after the other: the first state
(players and food as rows of row, column, level; the sum of the levels of all food) and observation, then step by step actions, players, food
(the field's order; -1, -1, 0 fills the rest), rewards, observations of all players, ends.
"""

import importlib.metadata
import json
import pathlib

import lbforaging  # noqa: F401  registers its games
import numpy as np
from lbforaging.foraging import ForagingEnv

STEPS = 600  # of each case, at least
REGISTERED = dict(min_player_level=1, max_player_level=2, min_food_level=1, max_food_level=None, max_episode_steps=50)
CASES = {
    "2s-8x8-2p-2f-coop": dict(players=2, field_size=8, max_num_food=2, sight=2, force_coop=True),
    "15x15-4p-3f": dict(players=4, field_size=15, max_num_food=3, sight=15, force_coop=False),
    "crowded 5x5-4p-2f": dict(players=4, field_size=5, max_num_food=2, sight=5, force_coop=False),
    "sight and penalty": dict(players=3, field_size=9, max_num_food=4, sight=3, force_coop=False, penalty=0.1, max_player_level=3),
    "rewards as they are": dict(players=3, field_size=7, max_num_food=3, sight=2, force_coop=False, normalize_reward=False, penalty=0.25,
                                min_player_level=2, max_player_level=4, min_food_level=2, max_food_level=5, max_episode_steps=20),
}


def choose(env, rng, skill):
    """Actions 0 to 5; with probability `skill`, a player loads food beside it, or walks to the first food."""
    actions = rng.integers(0, 6, len(env.players))
    rows, cols = np.nonzero(env.field)
    for i, player in enumerate(env.players):
        if rng.random() >= skill:
            continue
        row, col = player.position
        down, right = rows[0] - row, cols[0] - col
        if env.adjacent_food(row, col) > 0:
            actions[i] = 5
        elif abs(down) > abs(right) or (abs(down) == abs(right) and rng.random() < 0.5):
            actions[i] = 2 if down > 0 else 1
        else:
            actions[i] = 4 if right > 0 else 3
    return actions


def players_of(env):
    return np.array([[*player.position, player.level] for player in env.players])


def food_of(env):
    found = [[row, col, env.field[row, col]] for row, col in zip(*np.nonzero(env.field))]
    return np.array(found + [[-1, -1, 0]] * (env.max_num_food - len(found)))


def record(arguments):
    arguments = REGISTERED | arguments
    env = ForagingEnv(**arguments | {"field_size": (arguments["field_size"],) * 2})
    rng = np.random.default_rng(1)
    rows = {}
    add = lambda name, value, dtype: rows.setdefault(name, []).append(np.array(value, dtype))  # noqa: E731
    episode = 0
    while len(rows.get("action", [])) < STEPS:
        seen, _ = env.reset(seed=episode)
        add("first_players", players_of(env), np.int8)
        add("first_food", food_of(env), np.int8)
        add("first_seen", np.concatenate(seen), np.int8)
        add("spawned", env._food_spawned, np.int32)
        skill, done = [0, 0.6, 0.9][episode % 3], False
        while not done:
            actions = choose(env, rng, skill)
            seen, rewards, done, truncated, _ = env.step(actions)
            for name, value, dtype in [("action", actions, np.int8), ("players", players_of(env), np.int8), ("food", food_of(env), np.int8),
                                       ("reward", rewards, np.float64), ("seen", np.concatenate(seen), np.int8), ("done", done, bool),
                                       ("truncated", truncated, bool)]:
                add(name, value, dtype)
        episode += 1
    return {"arguments": np.array(json.dumps(arguments))} | {name: np.array(values) for name, values in rows.items()}


def main():
    data = {"lbforaging": np.array(importlib.metadata.version("lbforaging"))}
    for case, arguments in CASES.items():
        data |= {f"{case}/{name}": values for name, values in record(arguments).items()}
    np.savez_compressed(pathlib.Path(__file__).with_name("foraging.npz"), **data)


main()
