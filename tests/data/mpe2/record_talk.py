"""Plays scripted episodes of mpe2's simple_speaker_listener_v4, simple_reference_v3 and simple_adversary_v3, and writes an .npz file for each,
which tests/envs/*_oracle_test.py read.

    python3 -m venv FOLDER && FOLDER/bin/pip install mpe2==1.1.1 && FOLDER/bin/python tests/data/mpe2/record_talk.py

mpe2 is not a dependency of the tests, hence the record. Of each case: our parameters as JSON; of each episode the places of agents and landmarks
at the start, goals (landmarks, by agent that must go there), and step by step actions, rewards and observations of all agents, one after the
other, of which there is one more than steps.
"""

import importlib.metadata
import json
import pathlib

import numpy as np
from mpe2 import simple_adversary_v3, simple_reference_v3, simple_speaker_listener_v4

# Game, module, case, our parameters, arguments of the original, episodes. All but "default" have 125 steps an episode.
CASES = [
    ("simple_speaker_listener", simple_speaker_listener_v4, "default", {}, {}, 4),
    ("simple_speaker_listener", simple_speaker_listener_v4, "long", {}, {}, 4),
    ("simple_reference", simple_reference_v3, "default", {}, {}, 4),
    ("simple_reference", simple_reference_v3, "long", {}, {}, 4),
    ("simple_reference", simple_reference_v3, "a fifth", dict(local_ratio=0.2), dict(local_ratio=0.2), 4),
    ("simple_reference", simple_reference_v3, "all of the other", dict(local_ratio=1), dict(local_ratio=1), 4),
    ("simple_adversary", simple_adversary_v3, "default", {}, {}, 4),
    ("simple_adversary", simple_adversary_v3, "long", {}, {}, 4),
    ("simple_adversary", simple_adversary_v3, "three", dict(num_good_agents=3), dict(N=3), 4),
    ("simple_adversary", simple_adversary_v3, "one", dict(num_good_agents=1), dict(N=1), 4),
]
FIRST_SEED = 18  # of seeds that make each landmark a goal in each case


def goals_of(world):
    """The landmark that each agent must go to; -1 of agents that need not."""
    goals = dict.fromkeys(world.agents, -1)
    for agent in world.agents:
        if getattr(agent, "_goal_a", None) in goals:  # an agent, which must go to the landmark goal_b
            goals[agent.goal_a] = world.landmarks.index(agent.goal_b)
        elif getattr(agent, "_goal_a", None) is not None:
            goals[agent] = world.landmarks.index(agent.goal_a)
    return list(goals.values())


def move(agent, place, rng):
    """Toward the place, or anywhere: nothing (0), x - 1, x + 1, y - 1, y + 1 (1 to 4)."""
    way = place - agent.state.p_pos - 0.2 * agent.state.p_vel
    axis = int(abs(way[1]) > abs(way[0]))
    return int(rng.integers(5)) if rng.random() < 0.3 else 1 + 2 * axis + int(way[axis] > 0)


def record(module, options, seed):
    env = module.env(**options)
    env.reset(seed=seed)
    raw, rng = env.unwrapped, np.random.default_rng(seed)
    world = raw.world
    for entity in world.entities:
        entity.state.p_pos = np.float64(np.float32(entity.state.p_pos))
    seen = lambda: np.concatenate([raw.observe(name) for name in raw.possible_agents])  # noqa: E731
    rows = {"start": np.float32([entity.state.p_pos for entity in world.entities]), "goals": np.int8(goals_of(world)), "observation": [seen()]}
    targets = [world.landmarks[rng.integers(len(world.landmarks))].state.p_pos for _ in world.agents]
    while not any(raw.truncations.values()):
        actions = []
        for agent, target in zip(world.agents, targets):
            moves = [move(agent, target, rng)] if agent.movable else []
            words = [] if agent.silent else [int(rng.integers(world.dim_c))]
            actions.append((moves + words + [0])[:2])
            env.step(np.int64(moves[0] + 5 * words[0] if moves and words else (moves + words)[0]))
        assert not any(raw.terminations.values()) and len(set(raw.truncations.values())) == 1
        for name, row in [("actions", np.int8(actions)), ("reward", np.float32([raw.rewards[name] for name in raw.possible_agents])),
                          ("observation", seen())]:
            rows.setdefault(name, []).append(row)
    return rows


def main():
    for game in dict.fromkeys(case[0] for case in CASES):
        data = {"mpe2": np.array(importlib.metadata.version("mpe2"))}
        for _, module, case, parameters, options, episodes in (case for case in CASES if case[0] == game):
            if case != "default":
                parameters, options = parameters | {"episode_length": 125}, options | {"max_cycles": 125}
            played = [record(module, options, seed) for seed in range(FIRST_SEED, FIRST_SEED + episodes)]
            data |= {f"{case}/{name}": np.array([episode[name] for episode in played]) for name in played[0]}
            data[f"{case}/parameters"] = np.array(json.dumps(parameters))
        np.savez_compressed(pathlib.Path(__file__).with_name(f"{game}.npz"), **data)


main()
