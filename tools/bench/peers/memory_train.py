"""Trains cartpole without velocities by PPO with a memory in sb3-contrib or memorax, in one thread: prints "ready", and then, for each number
of seconds that it reads, environment steps per second of such a window.

    .venv-peers/bin/python tools/bench/peers/memory_train.py "sb3 lstm" [--replicas 32] [--steps 128] [--learn 150000 --seed 1]
    .venv-memorax/bin/python tools/bench/peers/memory_train.py "memorax lstm"|"memorax gru"|"memorax mingru"

--learn trains for so many steps instead, and prints the mean return of the last 100 episodes and the seconds.
"""

import argparse
import json
import sys
import time

EPOCHS, MINIBATCHES, WIDTH = 4, 4, 64


class Sb3:
    def __init__(self, network, options):
        import gymnasium
        import torch
        from sb3_contrib import RecurrentPPO
        from stable_baselines3.common.env_util import make_vec_env

        class Without(gymnasium.ObservationWrapper):
            """Only position and angle."""

            def __init__(self, env):
                super().__init__(env)
                space = env.observation_space
                self.observation_space = gymnasium.spaces.Box(space.low[[0, 2]], space.high[[0, 2]])

            def observation(self, observation):
                return observation[[0, 2]]

        torch.set_num_threads(1)
        env = make_vec_env("CartPole-v1", n_envs=options.replicas, seed=options.seed, wrapper_class=Without)
        rollout = options.replicas * options.steps
        self.model = RecurrentPPO("MlpLstmPolicy", env, n_steps=options.steps, batch_size=rollout // MINIBATCHES, n_epochs=EPOCHS, learning_rate=1e-3,
                                  gamma=0.98, gae_lambda=0.8, ent_coef=0.0, device="cpu", seed=options.seed,
                                  policy_kwargs={"lstm_hidden_size": WIDTH, "n_lstm_layers": 1, "net_arch": []})
        self.rollout = rollout

    def iterate(self, count):
        self.model.learn(count * self.rollout, reset_num_timesteps=False)

    def recent(self):
        import numpy as np
        return float(np.mean([episode["r"] for episode in self.model.ep_info_buffer]))


class Memorax:
    def __init__(self, network, options):
        import flax.linen as nn
        import jax
        import jax.numpy as jnp
        import optax
        from memorax.algorithms import PPO, PPOConfig
        from memorax.environments import environment
        from memorax.networks import MLP, RNN, FeatureExtractor, Memoroid, MinGRUCell, Network, heads
        from memorax.utils.wrappers import GymnaxWrapper, MaskObservationWrapper

        class Returns(GymnaxWrapper):
            """Of episodes."""

            def reset(self, key, params):
                seen, state = self._env.reset(key, params)
                return seen, (state, jnp.float32(0))

            def step(self, key, state, action, params):
                seen, inner, reward, done, _ = self._env.step(key, state[0], action, params)
                total = state[1] + reward
                return seen, (inner, total * (1 - done)), reward, done, {"return": total, "ended": done}

        env, params = environment.make("gymnax::CartPole-v1")
        env = Returns(MaskObservationWrapper(env, mask_dims=[0, 2]))  # position and angle
        torso = {"lstm": lambda: RNN(cell=nn.OptimizedLSTMCell(WIDTH)), "gru": lambda: RNN(cell=nn.GRUCell(WIDTH)),
                 "mingru": lambda: Memoroid(cell=MinGRUCell(features=WIDTH))}[network]

        def net(head):
            return Network(FeatureExtractor(observation_extractor=MLP(features=(WIDTH,), activation=nn.tanh)), torso(), head)

        config = PPOConfig(name="PPO", num_envs=options.replicas, num_eval_envs=16, num_steps=options.steps, gamma=0.98, gae_lambda=0.8,
                           num_minibatches=MINIBATCHES, update_epochs=EPOCHS, normalize_advantage=True, clip_coef=0.2, clip_vloss=False, ent_coef=0.0,
                           vf_coef=0.5)
        optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(1e-3))
        self.jax, self.rollout = jax, options.replicas * options.steps
        self.agent = PPO(config, env, params, net(heads.Categorical(2)), net(heads.VNetwork()), optimizer, optimizer)
        self.key, self.state = self.agent.init(jax.random.key(options.seed))
        self.returns = []

    def iterate(self, count):
        for _ in range(count):
            self.key, self.state, played = self.agent.train(self.key, self.state, self.rollout)
            info = self.jax.device_get(played.info)
            self.returns = [*self.returns, *info["return"][info["ended"].astype(bool)].ravel()][-100:]

    def recent(self):
        return float(sum(self.returns) / len(self.returns))


def speed(training, seconds):
    rounds, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds or rounds == 0:
        training.iterate(1)
        rounds += 1
    return rounds * training.rollout / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peer", choices=["sb3 lstm", "memorax lstm", "memorax gru", "memorax mingru"])
    parser.add_argument("--replicas", type=int, default=32)
    parser.add_argument("--steps", type=int, default=128)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--learn", type=int, help="environment steps")
    options = parser.parse_args()
    name, network = options.peer.split()
    training = {"sb3": Sb3, "memorax": Memorax}[name](network, options)
    if options.learn:
        start = time.perf_counter()
        training.iterate(options.learn // training.rollout)
        print(json.dumps({"return": training.recent(), "seconds": time.perf_counter() - start}))
        return
    training.iterate(2)  # jax compiles anew for the types that the first one returns
    print("ready", flush=True)
    for line in sys.stdin:
        print(speed(training, float(line)), flush=True)


if __name__ == "__main__":
    main()
