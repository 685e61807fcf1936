"""Compares JaxMARL's MPE_simple_tag_v3 with our simple_tag; prints one JSON object to stdout.

    .venv-peers/bin/python tools/bench/peers/simple_tag_jaxmarl.py [--pairs 5] [--seconds 10] [--device
    cpu|gpu]

"env" steps JaxMARL's environment, including its own reset, with actions drawn beforehand. It sums all
observations and rewards within the scan, because XLA drops unused results. "train" is independent PPO with
one policy for the adversaries and one for the good agent. JaxMARL's own IPPO script needs hydra, wandb and
distrax, and agents with equal observations. learn_jax.py is our implementation in the same style (a single
jitted function), and both sides use the sizes and settings of configs/simple_tag.yaml.
"""

import functools
import os
import sys

from side_by_side import JaxLoop, Ours, comparison, jax_for, parser, report

STEPS, REPLICAS = 100, 64  # rollout of configs/simple_tag.yaml
ROLES = {"adversary": ("adversary_0", "adversary_1", "adversary_2"), "good_agent": ("agent_0",)}


def make(name="MPE_simple_tag_v3", **arguments):
    """Redirects output during the import to stderr; at the descriptor level, because one of the imports
    replaces sys.stdout."""
    stdout = os.dup(1)
    os.dup2(2, 1)
    import jaxmarl
    sys.stdout.flush(), sys.__stdout__.flush()
    os.dup2(stdout, 1)
    os.close(stdout)
    return jaxmarl.make(name, **arguments)


class SimpleTag:
    """JaxMARL's environment as a game for learn_jax.Training, which does the resets: `step_env` does not
    reset."""

    truncates = True

    def __init__(self):
        self.env = make(max_steps=24)  # an episode is one step longer

    def reset(self, key):
        return self.env.reset(key)[1]

    def observe(self, state):
        import jax.numpy as jnp
        rows = self.env.get_obs(state)
        return {role: jnp.stack([rows[name] for name in names]) for role, names in ROLES.items()}

    def active(self, state):
        import jax.numpy as jnp
        return {role: jnp.ones(len(names)) for role, names in ROLES.items()}

    def step(self, state, actions):
        import jax
        import jax.numpy as jnp
        chosen = {name: actions[role][k, 0] for role, names in ROLES.items() for k, name in enumerate(names)}
        # The step draws no noise from the key.
        _, after, reward, done, _ = self.env.step_env(jax.random.PRNGKey(0), state, chosen)
        reward = {role: jnp.stack([reward[name] for name in names]).astype(jnp.float32) for role, names in ROLES.items()}
        return after, reward, jnp.bool_(False), done["__all__"]


def env_only(jax, replicas, steps):
    env = make()
    keys = jax.random.split(jax.random.PRNGKey(0), 3)
    drawn = jax.random.randint(keys[0], (steps, env.num_agents, replicas), 0, 5)

    def step(carry, actions):
        state, total, key = carry
        key, sub = jax.random.split(key)
        seen, state, reward, _, _ = jax.vmap(env.step)(jax.random.split(sub, replicas), state, dict(zip(env.agents, actions)))
        total += sum(part.sum() for part in jax.tree.leaves((seen, reward)))
        return (state, total, key), None

    state = jax.vmap(env.reset)(jax.random.split(keys[1], replicas))[1]
    return JaxLoop(jax, lambda carry: jax.lax.scan(step, carry, drawn)[0], (state, jax.numpy.float32(0), keys[2]), steps * replicas)


def trained(jax):
    import optax
    from learn_jax import Learner, Training
    updates = 2_560_000 // (STEPS * REPLICAS) * 16
    ppo = dict(heads=(5,), hidden=(64, 64), activation="tanh", separate_value=True, algorithm="PPO", gamma=0.97, gae_lambda=0.95,
               lr=optax.linear_schedule(1e-3, 1e-4, updates), normalize_advantage=True, epochs=4, minibatches=4)
    policies = {"adversary": Learner(features=16, **ppo), "good_agent": Learner(features=14, **ppo)}
    training = Training(SimpleTag(), policies, REPLICAS, STEPS)
    return JaxLoop(jax, training.iterate, training.start(0), STEPS * REPLICAS)


def compare(options, mode, replicas):
    ours = Ours(options.device)
    ours.need("simple_tag")
    jax = jax_for(options.device)
    peer = env_only(jax, replicas, max(25, 65536 // replicas)) if mode == "env" else trained(jax)
    batch = STEPS * REPLICAS if mode == "train" else None
    return comparison(options, lambda: peer.speed(options.seconds), lambda: ours.bench(mode, "simple_tag", options.seconds, replicas, batch), ours,
                      agents=4, replicas=replicas)


def main():
    options = parser(__doc__.splitlines()[0]).parse_args()
    comparisons = {f"env, {replicas} replicas": functools.partial(compare, options, "env", replicas) for replicas in (64, 512, 4096)}
    comparisons["train, 64 replicas"] = functools.partial(compare, options, "train", REPLICAS)
    report(options, "JaxMARL MPE_simple_tag_v3", "3 adversaries and 1 good agent; environment alone, and independent PPO; fp32",
           ["jaxmarl", "jax", "jaxlib", "optax"], comparisons)


if __name__ == "__main__":
    main()
