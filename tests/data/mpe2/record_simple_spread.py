"""Plays scripted episodes of mpe2's simple_spread_v3 and writes simple_spread.npz, which tests/envs/simple_spread_oracle_test.py reads.

    python3 -m venv FOLDER && FOLDER/bin/pip install mpe2==1.1.1 && FOLDER/bin/python tests/data/mpe2/record_simple_spread.py

mpe2 is not a dependency of the tests, hence the record. Of each case: our parameters as JSON, the start of agents and landmarks, and step by
step actions, positions, velocities, rewards, benchmark data of agent 0 (its collisions, sum of distances, occupied landmarks), and the
observations of all agents, one after the other, without the numbers for communication, which are always 0.
"""

import importlib.metadata
import json
import pathlib

import numpy as np
from mpe2.simple_spread.simple_spread import raw_env

WORLD = {"dt", "damping", "contact_force", "contact_margin"}

# Name, our parameters, players, steps, side of the square in which agents start.
CASES = [
    ("random", {}, "random", 25, 1.0),
    ("gather", {}, "gather", 25, 0.6),
    ("begin on top of one another", {}, "random", 25, 0.08),
    ("cover", {}, "cover", 25, 1.0),
    ("crowd", dict(num_agents=7, local_ratio=0.25), "gather", 25, 0.8),
    ("one", dict(num_agents=1), "cover", 25, 1.0),
    ("other constants", dict(num_agents=2, local_ratio=0.75, dt=0.05, damping=0.1, contact_force=50.0, contact_margin=5e-3, acceleration=3.0,
                             agent_size=0.2), "gather", 40, 0.5),
]
SEEDS = range(2)


def play(player, positions, landmarks, rng):
    """Who stays (0), or moves to x - 1, x + 1, y - 1, y + 1 (1 to 4)."""
    actions = rng.integers(0, 5, size=len(positions))
    targets = {"gather": np.zeros_like(positions), "cover": landmarks}.get(player)
    for i in range(len(positions) if targets is not None else 0):
        way = targets[i] - positions[i]
        axis = int(abs(way[1]) > abs(way[0]))
        if rng.random() < 0.8:
            actions[i] = 0 if abs(way[axis]) < 0.1 else 1 + 2 * axis + int(way[axis] > 0)
    return actions


def record(parameters, player, steps, side, seed):
    agents = parameters.get("num_agents", 3)
    env = raw_env(N=agents, local_ratio=parameters.get("local_ratio", 0.5), max_cycles=steps)
    env.reset(seed=seed)
    world, rng = env.world, np.random.default_rng(seed)
    for name in WORLD & set(parameters):
        setattr(world, name, parameters[name])
    for agent in world.agents:
        agent.accel, agent.size = parameters.get("acceleration"), parameters.get("agent_size", agent.size)
    start = np.float32(np.concatenate([rng.uniform(-side, side, (agents, 2)), rng.uniform(-1, 1, (agents, 2))]))
    for entity, place in zip(world.entities, start):
        entity.state.p_pos = np.float64(place)
    seen = lambda: np.concatenate([env.observe(name)[:4 * agents + 2] for name in env.possible_agents])  # noqa: E731
    positions = lambda: np.array([agent.state.p_pos for agent in world.agents])  # noqa: E731
    rows = {"first_observation": seen()}
    for t in range(steps):
        actions = play(player, positions(), start[agents:], rng)
        for action in actions:
            env.step(int(action))
        names = env.possible_agents
        for name, row in [("actions", actions), ("position", positions()), ("velocity", [agent.state.p_vel for agent in world.agents]),
                          ("reward", [env.rewards[a] for a in names]), ("observation", seen()),
                          ("benchmark", env.scenario.benchmark_data(world.agents[0], world)[1:])]:
            rows.setdefault(name, []).append(np.array(row, np.int8 if name == "actions" else np.float32))
        assert [env.truncations[a] for a in names] == [t + 1 == steps] * agents and not any(env.terminations.values())
    return {"start": start} | {name: np.array(values) for name, values in rows.items()}


def main():
    data = {"mpe2": np.array(importlib.metadata.version("mpe2"))}
    for name, parameters, player, steps, side in CASES:
        for seed in SEEDS:
            case = f"{name}, seed {seed}"
            data[f"{case}/parameters"] = np.array(json.dumps(parameters))
            data |= {f"{case}/{field}": values for field, values in record(parameters, player, steps, side, seed).items()}
    np.savez_compressed(pathlib.Path(__file__).with_name("simple_spread.npz"), **data)


main()
