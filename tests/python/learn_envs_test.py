"""learn_envs_test.py: algorithms that others wrote learn on environments of wd."""

import os
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(os.environ["WD_BUILD_DIR"]) / "python"))

import wdtrain  # noqa: E402


def mean_return(act, episodes=64):
    """Of first episodes, with the actions that `act` chooses for observations [E, 4]."""
    env = wdtrain.make("cartpole", episodes, seed=99, autoreset_mode="disabled")
    observation, _ = env.reset()
    returns = torch.zeros(episodes)
    for _ in range(500):
        observation, reward, terminated, truncated, _ = env.step(act(observation))
        returns += reward
        if bool((terminated | truncated).all()):
            break
    return float(returns.mean())


def test_stable_baselines_learns():
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    torch.set_num_threads(1)
    envs = make_vec_env(lambda: wdtrain.make("cartpole"), n_envs=8, seed=1)
    model = PPO("MlpPolicy", envs, n_steps=32, batch_size=256, gae_lambda=0.8, gamma=0.98, n_epochs=20, ent_coef=0.0, learning_rate=1e-3, clip_range=0.2,
                seed=1, device="cpu")
    model.learn(40_000)
    assert mean_return(lambda seen: torch.from_numpy(model.predict(seen.numpy(), deterministic=True)[0])) > 400


def test_a_loop_over_tensors_learns():
    """PPO in the way of CleanRL's ppo.py, on the buffers themselves."""
    torch.manual_seed(1)
    torch.set_num_threads(1)
    E, T, gamma, lam = 32, 32, 0.98, 0.9
    env = wdtrain.make("cartpole", E, seed=1)
    net = torch.nn.Sequential(torch.nn.Linear(4, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 3))
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    seen, actions, logs, values = torch.zeros(T, E, 4), torch.zeros(T, E, dtype=torch.int64), torch.zeros(T, E), torch.zeros(T + 1, E)
    rewards, over, ends, counts = torch.zeros(T, E), torch.zeros(T, E), torch.zeros(T, E), torch.zeros(T, E)
    observation, _ = env.reset()
    ended = torch.zeros(E, dtype=torch.bool)
    for _ in range(150):
        for t in range(T):
            seen[t], counts[t] = observation, ~ended  # the step after an end resets, and teaches nothing
            with torch.no_grad():
                output = net(observation)
            policy = torch.distributions.Categorical(logits=output[:, :2])
            actions[t] = policy.sample()
            logs[t], values[t] = policy.log_prob(actions[t]), output[:, 2]
            observation, reward, terminated, truncated, _ = env.step(actions[t])
            ended = terminated | truncated
            rewards[t], over[t], ends[t] = reward, terminated, ended
        with torch.no_grad():
            values[T] = net(observation)[:, 2]
        advantage, following = torch.zeros(T, E), torch.zeros(E)
        for t in reversed(range(T)):  # the row after an end is the last observation, whose value follows a truncation
            following = rewards[t] + gamma * values[t + 1] * (1 - over[t]) - values[t] + gamma * lam * (1 - ends[t]) * following
            advantage[t] = following = following * counts[t]
        rows = counts.bool()
        data = [x[rows] for x in (seen, actions, logs, advantage, advantage + values[:T])]
        for _ in range(10):
            for batch in torch.randperm(len(data[0])).split(256):
                o, a, log, gain, target = (x[batch] for x in data)
                output = net(o)
                policy = torch.distributions.Categorical(logits=output[:, :2])
                ratio = (policy.log_prob(a) - log).exp()
                gain = (gain - gain.mean()) / (gain.std() + 1e-8)
                loss = -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean() + 0.5 * (output[:, 2] - target).square().mean()
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
                optimizer.step()
    with torch.no_grad():
        assert mean_return(lambda observation: net(observation)[:, :2].argmax(1)) > 400
