"""Plays episodes of MemoryChain in bsuite and in gymnax and writes memory_chain.npz, which tests/envs/memory_chain_oracle_test.py reads.

    pip install gymnax==1.0.1 bsuite==0.3.6 && python tests/data/memory_chain/record_memory_chain.py

Of each case: memory_length and num_bits, and of all its episodes, which have the same length: context, query, actions, rewards, observations
(the first one and that of every step), and whether the episode ended.
"""

import importlib.metadata
import pathlib

import gymnax
import jax
import numpy as np
from bsuite.environments.memory_chain import MemoryChain

EPISODES = 6
CASES = {"bsuite": [(1, 1), (2, 1), (5, 1), (30, 1), (1, 3), (2, 2), (5, 4), (12, 10)],
         "gymnax": [(1, 1), (2, 1), (5, 1), (30, 1), (1, 3), (5, 4)]}


class Bsuite:
    def __init__(self, length, bits):
        self.env = MemoryChain(length, bits, seed=1)

    def reset(self, episode):
        first = self.env.reset()
        return first.observation.ravel(), self.env._context, self.env._query

    def step(self, action):
        step = self.env.step(action)
        return step.observation.ravel(), step.reward, step.last()


class Gymnax:
    def __init__(self, length, bits):
        self.env, params = gymnax.make("MemoryChain-bsuite", num_bits=bits)
        self.params = params.replace(memory_length=length)

    def reset(self, episode):
        self.key = jax.random.PRNGKey(episode)
        seen, self.state = self.env.reset_env(self.key, self.params)
        return seen, self.state.context, self.state.query

    def step(self, action):
        seen, self.state, reward, done, _ = self.env.step_env(self.key, self.state, action, self.params)
        return seen, reward, done


def record(env, length):
    rng, rows = np.random.default_rng(1), []
    for episode in range(EPISODES):
        seen, context, query = env.reset(episode)
        context, query = np.array(context, np.int8), int(query)
        observations, actions, rewards, done = [seen], [], [], []
        while not (done and done[-1]):
            last = len(actions) == length
            actions.append(int(context[query] ^ (episode % 2)) if last else int(rng.integers(2)))  # right and wrong in turn
            seen, reward, ended = env.step(actions[-1])
            observations.append(seen), rewards.append(float(reward)), done.append(bool(ended))
        rows.append(dict(context=context, query=query, actions=np.array(actions, np.int8), rewards=rewards, done=done,
                         observations=np.array(observations, np.float32)))
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def main():
    out = {"versions": np.array(", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("bsuite", "gymnax")))}
    for package, cases in CASES.items():
        for length, bits in cases:
            rows = record({"bsuite": Bsuite, "gymnax": Gymnax}[package](length, bits), length)
            out |= {f"{package} {length} {bits}/{name}": values for name, values in rows.items()}
    np.savez_compressed(pathlib.Path(__file__).with_name("memory_chain.npz"), **out)


if __name__ == "__main__":
    main()
