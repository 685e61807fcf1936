"""play_cartpole.py: plays Gymnasium's CartPole-v1 with a policy that wdtrain has trained.

    python examples/python/play_cartpole.py runs/pole [EPISODES]
"""

import statistics
import sys

import gymnasium
import torch
import wdtrain


def play(policy, seed):
    game = gymnasium.make("CartPole-v1")
    observation, _ = game.reset(seed=seed)
    total = 0.0
    while True:
        observation, reward, terminated, truncated, _ = game.step(policy.act(observation, greedy=False))
        total += reward
        if terminated or truncated:
            return total


def main():
    folder, episodes = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
    policy = wdtrain.Run(folder).policy()
    torch.manual_seed(1)
    returns = [play(policy, seed) for seed in range(episodes)]
    print(f"{episodes} episodes: mean return {statistics.fmean(returns):.1f}, minimum {min(returns):.0f}")


if __name__ == "__main__":
    main()
