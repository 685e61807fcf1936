"""Compares wdtrain.sb3.VecEnv with Stable-Baselines3's DummyVecEnv of Gymnasium's CartPole-v1; prints one JSON object to stdout.

    .venv/bin/python tools/bench/peers/sb3_vecenv.py [--replicas 64] [--pairs 5] [--ppo_pairs 3] [--ppo_steps 20480]

Environment steps a second, of processor time, in alternating pairs: with random actions, and of a whole training by PPO. One thread.
"""

import argparse
import json
import statistics
import time

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv

import wdtrain.sb3


def stepping(env, seconds):
    actions = np.random.default_rng(0).integers(0, 2, (100, env.num_envs))
    env.reset()
    begin, count = time.process_time(), 0
    while (spent := time.process_time() - begin) < seconds:
        for row in actions:
            env.step(row)
        count += actions.size
    return count / spent


def training(env, steps):
    model = PPO("MlpPolicy", env, n_steps=32, batch_size=512, n_epochs=4, device="cpu", seed=1)
    begin = time.process_time()
    model.learn(steps)
    return steps / (time.process_time() - begin)


def compared(pairs, measure, ours, theirs):
    runs = [(measure(ours()), measure(theirs())) for _ in range(pairs)]
    ratios = [a / b for a, b in runs]
    return {"ours": round(statistics.median(a for a, _ in runs)), "peer": round(statistics.median(b for _, b in runs)),
            "ratio": round(statistics.median(ratios), 2), "least": round(min(ratios), 2), "most": round(max(ratios), 2)}


def main():
    import gymnasium

    parser = argparse.ArgumentParser()
    for name, default in (("replicas", 64), ("pairs", 5), ("ppo_pairs", 3), ("ppo_steps", 20_480), ("seconds", 1.0)):
        parser.add_argument(f"--{name}", type=type(default), default=default)
    options = parser.parse_args()
    torch.set_num_threads(1)
    n = options.replicas

    def ours():
        return wdtrain.sb3.VecEnv("cartpole", num_envs=n)

    found = {"stepping": compared(options.pairs, lambda env: stepping(env, options.seconds), ours, lambda: DummyVecEnv([lambda: gymnasium.make("CartPole-v1")] * n)),
             "PPO": compared(options.ppo_pairs, lambda env: training(env, options.ppo_steps), ours, lambda: make_vec_env("CartPole-v1", n))}
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
