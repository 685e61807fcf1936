"""Trains Pendulum-v1 with SAC, TD3 or DDPG of Stable-Baselines3 in a process of its own; prints the cost as JSON.

    .venv-peers/bin/python tools/bench/peers/pendulum_train.py sac|td3|ddpg [--seed 1] [--threads 1] [--steps 20000]
    [--every 1000] [--goal -160]

The settings are rl-baselines3-zoo's. After each `--every` steps the policy without noise plays 100 episodes from the same
starts; times are those of `learn()` without these episodes, so without imports and without making
the model. After the last step it plays 300 more, from other starts.
"""

import argparse
import json
import time

EPISODES, LAST_EPISODES, HORIZON = 100, 300, 200
# rl-baselines3-zoo, hyperparams/sac.yml, td3.yml and ddpg.yml: Pendulum-v1, 20,000 steps. What is not here has
# Stable-Baselines3's default: batches of 256 rows, one update per step; SAC has layers of 256, 256, starts after 100 steps,
# and its temperature is learned. The zoo's train_freq of one episode with as many updates is that of its last version.
LIKE_TD3 = dict(gamma=0.98, buffer_size=200_000, learning_starts=10_000, gradient_steps=-1, train_freq=(1, "episode"), learning_rate=1e-3,
                policy_kwargs={"net_arch": [400, 300]})
SETTINGS = {"sac": dict(learning_rate=1e-3), "td3": LIKE_TD3, "ddpg": LIKE_TD3}
NOISE = 0.1  # of TD3 and DDPG, normal


class Watch:
    """Wall and processor time [s] of this process while it runs."""

    def __init__(self):
        self.wall = self.processor = 0.0

    def start(self):
        self.started = time.perf_counter(), time.process_time()

    def stop(self):
        self.wall += time.perf_counter() - self.started[0]
        self.processor += time.process_time() - self.started[1]

    def read(self):
        return {"wall": self.wall, "processor": self.processor}


def mean_return(model, envs, seed, episodes=EPISODES):
    """Mean return of episodes of the greedy policy. All have the horizon as length, so nothing ends before."""
    total = 0.0
    for k in range(episodes // EPISODES):
        observations, _ = envs.reset(seed=seed + k * EPISODES)
        for _ in range(HORIZON):
            actions, _ = model.predict(observations, deterministic=True)
            observations, rewards, _, _, _ = envs.step(actions)
            total += float(rewards.sum())
    return total / episodes


def train(algorithm, seed, threads, steps, every, goal):
    import gymnasium
    import numpy as np
    import stable_baselines3 as sb3
    import torch
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.noise import NormalActionNoise

    torch.set_num_threads(threads)
    envs = gymnasium.make_vec("Pendulum-v1", EPISODES)
    watch, to_goal = Watch(), {}

    class Evaluate(BaseCallback):
        def evaluate(self):
            watch.stop()
            if mean_return(self.model, envs, 1000 * seed) >= goal and not to_goal:
                to_goal.update(watch.read(), env_steps=self.num_timesteps)
            watch.start()

        def _on_rollout_start(self):  # after the updates of the steps before
            if self.num_timesteps > 0 and self.num_timesteps % every == 0:
                self.evaluate()

        def _on_training_end(self):
            self.evaluate()

        def _on_step(self):
            return True

    noise = {} if algorithm == "sac" else {"action_noise": NormalActionNoise(np.zeros(1), np.full(1, NOISE))}
    model = getattr(sb3, algorithm.upper())("MlpPolicy", make_vec_env("Pendulum-v1", seed=seed), seed=seed, device="cpu", **SETTINGS[algorithm], **noise)
    watch.start()
    model.learn(steps, callback=Evaluate())
    watch.stop()
    return {**watch.read(), "return": mean_return(model, envs, 1000 * seed + EPISODES, LAST_EPISODES), "env_steps": model.num_timesteps, **({"to_goal": to_goal} if to_goal else {})}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("algorithm", choices=list(SETTINGS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--every", type=int, default=1_000)
    parser.add_argument("--goal", type=float, default=-160.0)
    options = parser.parse_args()
    print(json.dumps(train(**vars(options))))


if __name__ == "__main__":
    main()
