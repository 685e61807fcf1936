"""Plays scripted episodes of JaxMARL's MPE_simple_tag_v3 and writes simple_tag.npz, which tests/envs/simple_tag_oracle_test.py reads.

    tools/bench/peers/setup.sh && .venv-peers/bin/python tests/data/jaxmarl/record_simple_tag.py

jax is not a dependency of the tests, hence the record. Of each case: the parameters as JSON, the start, and step by step actions,
positions, velocities, rewards, and the observations of all agents, one after the other. Everything is float32, as JaxMARL computes it.
"""

import json
import pathlib

import jax
import jax.numpy as jnp
import jaxmarl
import numpy as np

# Name, JaxMARL's arguments, players, steps, side of the square in which agents start.
CASES = [
    ("random", {}, "random", 25, 1.0),
    ("chase", {}, "chase", 25, 1.0),
    ("hunt", {}, "hunt", 25, 0.3),
    ("begins on top of one another", {}, "random", 25, 0.08),
    ("runs away", {}, "outwards", 40, 1.0),
    ("crowd", dict(num_adversaries=5, num_good_agents=2, num_obs=4), "hunt", 25, 0.5),
    ("other constants", dict(dt=0.05, damping=0.1, contact_force=50.0, contact_margin=5e-3), "hunt", 40, 0.3),
    ("one of each, no landmarks", dict(num_adversaries=1, num_good_agents=1, num_obs=0), "chase", 25, 0.3),
]
SEEDS = range(2)


def play(player, positions, adversaries, agents, rng):
    """Who stays (0), or moves to x - 1, x + 1, y - 1, y + 1 (1 to 4)."""
    actions = rng.integers(0, 5, size=agents)
    if player == "outwards":
        actions[adversaries:] = 2
    for i in range({"chase": agents, "hunt": adversaries}.get(player, 0)):
        others = range(adversaries, agents) if i < adversaries else range(adversaries)
        away = positions[i] - positions[min(others, key=lambda j: np.linalg.norm(positions[i] - positions[j]))]
        axis = int(abs(away[1]) > abs(away[0]))
        forwards = (away[axis] > 0) == (i >= adversaries)
        if rng.random() < 0.9:
            actions[i] = 1 + 2 * axis + int(forwards)
    return actions


def record(arguments, player, steps, side, seed):
    env = jaxmarl.make("MPE_simple_tag_v3", max_steps=steps, **arguments)
    rng = np.random.default_rng(seed)
    key = jax.random.PRNGKey(seed)
    _, state = env.reset(key)
    start = np.concatenate([rng.uniform(-side, side, (env.num_agents, 2)), rng.uniform(-1, 1, (env.num_landmarks, 2))])
    state = state.replace(p_pos=jnp.asarray(start, jnp.float32))
    flat = lambda by_agent: np.concatenate([np.asarray(by_agent[a], np.float32).ravel() for a in env.agents])  # noqa: E731
    rows = {"start": [np.asarray(state.p_pos)], "first_observation": [flat(env.get_obs(state))]}
    for _ in range(steps):
        actions = play(player, np.asarray(state.p_pos), env.num_adversaries, env.num_agents, rng)
        observation, state, reward, done, _ = env.step_env(key, state, dict(zip(env.agents, jnp.asarray(actions))))
        for name, row in [("actions", actions.astype(np.int8)), ("position", state.p_pos[:env.num_agents]), ("velocity", state.p_vel[:env.num_agents]),
                          ("reward", flat(reward)), ("observation", flat(observation))]:
            rows.setdefault(name, []).append(np.asarray(row))
        assert not done["__all__"]  # after max_steps steps; one more ends it
    assert env.step_env(key, state, dict(zip(env.agents, jnp.asarray(actions))))[3]["__all__"]
    return {name: np.squeeze(np.array(rows[name]), axis=0) if len(rows[name]) == 1 else np.array(rows[name]) for name in rows}


def main():
    data = {"jaxmarl": np.array(jaxmarl.__version__), "jax": np.array(jax.__version__)}
    for name, arguments, player, steps, side in CASES:
        for seed in SEEDS:
            case = f"{name}, seed {seed}"
            data[f"{case}/parameters"] = np.array(json.dumps(arguments))
            data |= {f"{case}/{field}": values for field, values in record(arguments, player, steps, side, seed).items()}
    np.savez_compressed(pathlib.Path(__file__).with_name("simple_tag.npz"), **data)


if __name__ == "__main__":
    main()
