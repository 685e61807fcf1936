"""Trains cartpole with a peer in a separate process until the mean return over 100 episodes is 475; prints
the cost.

    .venv-peers/bin/python tools/bench/peers/cartpole_train.py sb3|sb3-dqn|jax-zoo|jax-ours [--seed 1]
    [--most_steps 2000000]

sb3-dqn: DQN of Stable-Baselines3 with rl-baselines3-zoo's tuned settings, until 20 greedy episodes, played every 5,000
steps, return 490.
sb3: Stable-Baselines3 with rl-baselines3-zoo's tuned settings. jax-zoo: learn_jax with the same settings.
jax-ours: learn_jax with those of configs/cartpole.yaml. Both jax programs are a single jitted loop,
including the stop condition.
"""

import argparse
import json
import os
import time

GOAL = 475.0
# rl-baselines3-zoo, hyperparams/ppo.yml, CartPole-v1: 100,000 steps, during which learning rate and clipping
# decrease to 0.
ZOO = dict(replicas=8, steps=32, minibatches=1, epochs=20, lr=1e-3, lr_end=0.0, clip=0.2, clip_end=0.0, length=100_000)
# configs/cartpole.yaml.
OURS = dict(replicas=32, steps=32, minibatches=4, epochs=10, lr=1e-3, lr_end=1e-4, clip=0.2, clip_end=0.2, length=512_000)


def train_jax(settings, seed, most_steps):
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax
    training = cartpole_training(**settings)
    rollout = settings["replicas"] * settings["steps"]

    def unfinished(carry):
        (_, _, (_, returns, count), _), iteration = carry
        return ((count < 100) | (returns.mean() < GOAL)) & (iteration * rollout < most_steps)

    def run(carry):
        return jax.lax.while_loop(unfinished, lambda carry: (training.iterate(carry[0]), carry[1] + 1), carry)

    first = (training.start(seed), 0)
    start = time.perf_counter()
    compiled = jax.jit(run).lower(first).compile()
    compilation = time.perf_counter() - start
    (_, _, (_, returns, _), _), iterations = jax.block_until_ready(compiled(first))
    return {"env_steps": int(iterations) * rollout, "return": float(returns.mean()), "compilation_s": compilation}


def cartpole_training(replicas, steps, minibatches, epochs, lr, lr_end, clip, clip_end, length, make=None, **more):
    """`make` builds the training from learn_jax.Training's arguments; `more` are fields of Learner."""
    import optax
    from cartpole_game import CartPole
    from learn_jax import Learner, Training
    updates = length // (replicas * steps) * minibatches * epochs
    learner = Learner(features=4, heads=(2,), hidden=(64, 64), activation="tanh", separate_value=True, algorithm="PPO", gamma=0.98, gae_lambda=0.8,
                      entropy_coefficient=0.0, normalize_advantage=True, epochs=epochs, minibatches=minibatches,
                      lr=optax.linear_schedule(lr, lr_end, updates), clip=optax.linear_schedule(clip, clip_end, updates), **more)
    return (make or Training)(CartPole(), {"shared": learner}, replicas, steps)


def train_sb3(seed, most_steps):
    import numpy as np
    import stable_baselines3 as sb3
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env

    class UntilGoal(BaseCallback):
        def _on_step(self):
            episodes = self.model.ep_info_buffer
            return len(episodes) < 100 or np.mean([episode["r"] for episode in episodes]) < GOAL

    falls = lambda most: lambda left: max(left, 0.0) * most  # noqa: E731
    model = sb3.PPO("MlpPolicy", make_vec_env("CartPole-v1", n_envs=ZOO["replicas"], seed=seed), n_steps=ZOO["steps"], batch_size=256, gae_lambda=0.8,
                    gamma=0.98, n_epochs=ZOO["epochs"], ent_coef=0.0, learning_rate=falls(ZOO["lr"]), clip_range=falls(ZOO["clip"]), seed=seed,
                    device="cpu")
    model.learn(min(ZOO["length"], most_steps), callback=UntilGoal())
    return {"env_steps": model.num_timesteps, "return": float(np.mean([episode["r"] for episode in model.ep_info_buffer]))}


# rl-baselines3-zoo, hyperparams/dqn.yml, CartPole-v1: 50,000 steps. The share of them in which exploration decreases
# is that of 50,000.
DQN_GOAL, DQN_EVERY, DQN_LENGTH = 490.0, 5_000, 50_000


def train_sb3_dqn(seed, most_steps):
    import stable_baselines3 as sb3
    from stable_baselines3.common.callbacks import EvalCallback, StopTrainingOnRewardThreshold
    from stable_baselines3.common.env_util import make_vec_env

    judge = EvalCallback(make_vec_env("CartPole-v1", seed=seed + 1000), StopTrainingOnRewardThreshold(DQN_GOAL), n_eval_episodes=20, eval_freq=DQN_EVERY,
                         verbose=0)
    model = sb3.DQN("MlpPolicy", make_vec_env("CartPole-v1", seed=seed), learning_rate=2.3e-3, batch_size=64, buffer_size=100_000, learning_starts=1000,
                    gamma=0.99, target_update_interval=10, train_freq=256, gradient_steps=128, exploration_fraction=0.16 * DQN_LENGTH / most_steps,
                    exploration_final_eps=0.04, policy_kwargs={"net_arch": [256, 256]}, seed=seed, device="cpu")
    model.learn(most_steps, callback=judge)
    return {"env_steps": model.num_timesteps, "return": float(judge.last_mean_reward)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peer", choices=["sb3", "sb3-dqn", "jax-zoo", "jax-ours"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most_steps", type=int, default=2_000_000)
    options = parser.parse_args()
    goal = DQN_GOAL if options.peer == "sb3-dqn" else GOAL
    if options.peer.startswith("sb3"):
        result = {"sb3": train_sb3, "sb3-dqn": train_sb3_dqn}[options.peer](options.seed, options.most_steps)
    else:
        result = train_jax({"jax-zoo": ZOO, "jax-ours": OURS}[options.peer], options.seed, options.most_steps)
    print(json.dumps(result | {"reached": result["return"] >= goal}))


if __name__ == "__main__":
    main()
