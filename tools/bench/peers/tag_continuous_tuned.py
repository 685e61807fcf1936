"""tag_continuous in jax, tuned for this game and for a CPU of several cores: A2C, of which the plain peer is
learn_jax.Training, or the environment alone.

    GLIBC_TUNABLES=glibc.malloc.hugetlb=1
    XLA_FLAGS="--xla_force_host_platform_device_count=2 --xla_cpu_multi_thread_eigen=false"
    .venv-peers/bin/python tools/bench/peers/tag_continuous_tuned.py full|nearest train|env [--replicas 64] [--device cpu]

"train" first prints by how much a rollout's values and its update deviate from the plain peer's, and ends if that
is more than 1e-5; "env" prints 0. Then, for each number of seconds that it reads, it prints the environment steps
per second of a window of that length.

Tried on two cores of an EPYC (Zen 4), full game, 64 replicas, 2026-11-25, nothing else running, in environment
steps per second: gradients of the whole rollout at once 905; of one step at a time 975; with cumulative sums as
products a little more; and with huge pages, because XLA allocates its buffers of 400 MB anew in each iteration,
1,106. All of these are on.

Tried before that with 32 replicas under other load, so in environment steps per second of processor time (medians of five windows of 1.5 s, which vary by 10 %): plain peer 329; this
program 430, on one device 442; gradients of one step at a time 438, of four 432; gradients of weights as
transposed products 454; bias and time as columns of rows padded to 736 numbers 464; four steps of the rollout
unrolled 455. With products on one thread per device (--xla_cpu_multi_thread_eigen=false): 445, transposed 466,
padded 468. So the layouts differ by less than the windows do.
"""

import argparse
import functools
import sys

from side_by_side import JaxLoop, jax_for

if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("game", choices=["full", "nearest"])
    options.add_argument("mode", choices=["train", "env"])
    options.add_argument("--replicas", type=int, default=64)
    options.add_argument("--device", choices=["cpu", "gpu"], default="cpu")
    options = options.parse_args()
    jax_for(options.device)  # before jax is imported

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from learn_jax import advantages, forward, init, reset_ended, update


def softmax(logits, heads):
    """Probabilities and their logarithms, [rows, choices] per head."""
    logs = [jax.nn.log_softmax(part) for part in jnp.split(logits, np.cumsum(heads)[:-1], axis=-1)]
    return [jnp.exp(part) for part in logs], logs


def draw(logits, heads, key):
    """Actions [rows, heads] by inversion of the distribution function, which needs one random number per head;
    jax.random.categorical draws one per choice."""
    uniform = jax.random.uniform(key, (len(heads), *logits.shape[:-1]))
    actions = []
    for u, part in zip(uniform, jnp.split(logits, np.cumsum(heads)[:-1], axis=-1)):
        weight = jnp.exp(part - part.max(-1, keepdims=True))
        below = weight @ jnp.triu(jnp.ones((weight.shape[-1],) * 2))  # cumulative sums; a product is faster here
        actions.append((below[..., :-1] <= u[..., None] * below[..., -1:]).sum(-1))
    return jnp.stack(actions, axis=-1)


class Tuned:
    """`iterate(carry)` is a rollout of `steps` in `replicas` of a game, plus the update; `start(seed)`
    returns the first carry. Replicas are divided between the devices."""

    def __init__(self, game, policies, replicas, steps, devices=None, whole=False):
        self.game, self.policies, self.replicas, self.steps = game, policies, replicas, steps
        self.mesh = Mesh(np.array(devices or jax.devices()), ("d",))
        self.whole = whole

    def start(self, seed):
        rng, keys = np.random.default_rng(seed), jax.random.split(jax.random.PRNGKey(seed), 2)
        states = {name: init(learner, rng) for name, learner in self.policies.items()}
        games = jax.vmap(self.game.reset)(jax.random.split(keys[0], self.replicas))
        every, split = NamedSharding(self.mesh, PartitionSpec()), NamedSharding(self.mesh, PartitionSpec("d"))
        return jax.device_put(states, every), jax.device_put(games, split), jax.device_put(jax.random.split(keys[1], self.mesh.size), split)

    def iterate(self, carry, rows_too=False):
        every, split = PartitionSpec(), PartitionSpec("d")
        rows = (PartitionSpec(None, "d"),) if rows_too else ()
        return jax.shard_map(functools.partial(self.part, rows_too=rows_too), mesh=self.mesh, in_specs=((every, split, split),),
                             out_specs=(every, split, split, *rows), check_vma=False)(carry)

    def part(self, carry, rows_too):
        """The part of one device."""
        states, games, key = carry
        key, roll = jax.random.split(key[0])
        parameters = {name: state[0] for name, state in states.items()}
        games, rows = jax.lax.scan(functools.partial(self.step, parameters), games, jax.random.split(roll, self.steps))
        others, time = jax.vmap(self.game.parts)(games)
        new = {}
        for name, learner in self.policies.items():
            value = self.forward(learner, parameters[name], others[name], time[name])["value"]
            new[name] = self.update(learner, states[name], rows[name], value)
            if rows_too:
                rows[name]["last_value"] = value[None]
        return (new, games, key[None], *([rows] if rows_too else []))

    def forward(self, learner, parameters, others, time):
        (w1, b1), (w2, b2), (wa, ba) = parameters["actor"]
        wv, bv = parameters["value"][0]
        shape = others.shape[:2]
        x = others.reshape(-1, w1.shape[0] - 1)
        h1 = jax.nn.relu(x @ w1[:-1] + (time.reshape(-1, 1) * w1[-1] + b1))
        h2 = jax.nn.relu(h1 @ w2 + b2)
        out = h2 @ jnp.concatenate([wa, wv], axis=1) + jnp.concatenate([ba, bv])
        back = lambda y: y.reshape(*shape, -1)  # noqa: E731
        return {"others": back(x), "time": time, "h1": back(h1), "h2": back(h2), "logits": back(out[:, :-1]), "value": out[:, -1].reshape(shape)}

    def step(self, parameters, games, key):
        act_key, reset_key = jax.random.split(key)
        others, time = jax.vmap(self.game.parts)(games)
        active = jax.vmap(self.game.active)(games)
        rows = {}
        for (name, learner), k in zip(self.policies.items(), jax.random.split(act_key, len(self.policies))):
            rows[name] = self.forward(learner, parameters[name], others[name], time[name])
            rows[name] |= {"action": draw(rows[name]["logits"], learner.heads, k), "mask": active[name]}
        after, reward, over, _ = jax.vmap(self.game.step)(games, {name: row["action"] for name, row in rows.items()})
        still = jax.vmap(self.game.active)(after)
        for name, row in rows.items():
            ended = jnp.broadcast_to(over[:, None], row["mask"].shape).astype(jnp.float32)
            row |= {"reward": reward[name], "ended": ended, "left": jnp.maximum(row["mask"] - still[name], ended), "cut_value": jnp.zeros_like(row["mask"])}
        return reset_ended(self.game, after, over, reset_key), rows

    def update(self, learner, state, rows, last_value):
        parameters, moments, count = state
        advantage, target = advantages(learner, rows, last_value, functools.partial(jax.lax.psum, axis_name="d"))
        batch = {name: rows[name] for name in ("others", "time", "h1", "h2", "logits", "value", "action", "mask")} | {"advantage": advantage, "target": target}
        if self.whole:
            total = self.backward(learner, parameters, batch)
        else:
            add = lambda total, piece: (jax.tree.map(jnp.add, total, self.backward(learner, parameters, piece)), None)  # noqa: E731
            total, _ = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, parameters), batch)
        total, n = jax.lax.psum((total, rows["mask"].sum()), "d")
        total = jax.tree.map(lambda g: g / jnp.maximum(n, 1), total)
        updates, moments = learner.optimizer.update(total, moments, parameters)
        return optax.apply_updates(parameters, updates), moments, count + 1

    def backward(self, learner, parameters, batch):
        """The gradient of learn_jax.loss, from the activations of the rollout."""
        _, (w2, _), (wa, _) = parameters["actor"]
        wv, _ = parameters["value"][0]
        flat = {name: part.reshape(-1, part.shape[-1]) for name, part in batch.items() if name in ("others", "h1", "h2", "logits", "action")}
        mask, advantage, target, value, time = (batch[name].reshape(-1, 1) for name in ("mask", "advantage", "target", "value", "time"))
        out = []
        for k, (p, log) in enumerate(zip(*softmax(flat["logits"], learner.heads))):
            chosen = flat["action"][:, k, None] == jnp.arange(p.shape[-1])
            entropy = -(p * log).sum(-1, keepdims=True)
            out.append(mask * (advantage * (p - chosen) + learner.entropy_coefficient * p * (log + entropy)))
        out = jnp.concatenate([*out, mask * 2 * learner.value_coefficient * (value - target)], axis=1)
        z2 = jnp.where(flat["h2"] > 0, out @ jnp.concatenate([wa, wv], axis=1).T, 0)
        z1 = jnp.where(flat["h1"] > 0, z2 @ w2.T, 0)
        heads, bias = flat["h2"].T @ out, out.sum(0)
        first = jnp.concatenate([flat["others"].T @ z1, time.T @ z1])
        return {"actor": [(first, z1.sum(0)), (flat["h1"].T @ z2, z2.sum(0)), (heads[:, :-1], bias[:-1])], "value": [(heads[:, -1:], bias[-1:])]}


class Environment:
    """`iterate(carry)` is `steps` steps in `replicas` of a game, with actions drawn beforehand; every step writes
    its observation rows over those of the step before. Replicas are divided between the devices, and each device
    makes all steps of `together` replicas before those of the next ones (None: of all)."""

    def __init__(self, game, replicas, steps, together):
        self.game, self.replicas, self.steps, self.together = game, replicas, steps, together
        self.mesh = Mesh(np.array(jax.devices()), ("d",))
        self.split = PartitionSpec("d")
        if replicas % (self.mesh.size * (together or 1)):
            sys.exit(f"{replicas} replicas cannot be divided between {self.mesh.size} devices in groups of {together or 1}: give --replicas a multiple "
                     f"of {self.mesh.size * (together or 1)}")

    def start(self, seed):
        keys = jax.random.split(jax.random.PRNGKey(seed), 3)
        games = jax.vmap(self.game.reset)(jax.random.split(keys[0], self.replicas))
        drawn = jax.random.randint(keys[1], (self.replicas, self.steps, self.game.agents, 2), 0, self.game.levels + 1)
        rows = jax.vmap(self.game.seen)(games), jnp.zeros((self.replicas, self.game.agents))
        return jax.device_put((games, rows, drawn, jax.random.split(keys[2], self.mesh.size)), NamedSharding(self.mesh, self.split))

    def iterate(self, carry):
        return jax.shard_map(self.part, mesh=self.mesh, in_specs=(self.split,), out_specs=self.split, check_vma=False)(carry)

    def part(self, carry):
        """The part of one device."""
        games, rows, drawn, key = carry
        n = drawn.shape[0]
        pieces = n // self.together if self.together else 1
        key, *keys = jax.random.split(key[0], pieces + 1)
        cut = jax.tree.map(lambda x: x.reshape(pieces, n // pieces, *x.shape[1:]), (games, rows, drawn))
        games, rows = jax.tree.map(lambda x: x.reshape(n, *x.shape[2:]), jax.lax.map(self.piece, (*cut, jnp.stack(keys))))
        return games, rows, drawn, key[None]

    def piece(self, given):
        games, rows, drawn, key = given
        return jax.lax.scan(self.step, (games, rows), (drawn.swapaxes(0, 1), jax.random.split(key, self.steps)))[0]

    def step(self, carry, given):
        actions, key = given
        k = self.game.taggers
        after, reward, over, _ = jax.vmap(self.game.step)(carry[0], {"tagger": actions[:, :k], "runner": actions[:, k:]})
        after = reset_ended(self.game, after, over, key)
        return (after, (jax.vmap(self.game.seen)(after), jnp.concatenate([reward["tagger"], reward["runner"]], axis=1))), None


def check(game, policies, replicas, steps, **layout):
    """Largest deviation of log-probabilities, values, first moments of the optimizer (a tenth of the gradient)
    and updated parameters from those of the plain peer, given the same rollout: per array, the norm of the
    difference over the norm."""
    tuned = Tuned(game, policies, replicas, steps, **layout)
    before = tuned.start(0)
    after, _, _, rows = jax.jit(functools.partial(tuned.iterate, rows_too=True))(before)
    worst = 0.0
    for name, learner in policies.items():
        row, state, (parameters, moments, _) = (jax.tree.map(lambda x: jnp.asarray(np.asarray(x)), part) for part in (rows[name], before[0][name], after[name]))
        row["observation"] = jnp.concatenate([row["others"], row["time"][..., None]], axis=-1)
        log_probs, value = forward(learner, state[0], row["observation"])
        given = row | {"value": value, "log_prob": value}  # A2C does not read log_prob
        plain, of_plain, _ = jax.jit(functools.partial(update, learner))(state, given, row["last_value"][0], None)
        pairs = [(row["value"], value), (softmax(row["logits"], learner.heads)[1], log_probs), (parameters, plain), (moments[1][0].mu, of_plain[1][0].mu)]
        worst = max([worst, *(float(jnp.linalg.norm(a - b) / jnp.linalg.norm(b)) for a, b in zip(*map(jax.tree.leaves, zip(*pairs))))])
    return worst


def main():
    from tag_continuous_jax import STEPS, game_of, learners
    game, deviation = game_of(options.game), 0.0
    if options.mode == "env":
        # In groups of 4, nearest is a tenth faster, and full, which fewer loops suit better, slower by a quarter.
        program = Environment(game, options.replicas, STEPS, 4 if options.device == "cpu" and options.game == "nearest" else None)
    else:
        deviation = check(game, learners(game), 2 * len(jax.devices()), STEPS)
        if not deviation < 1e-5:
            sys.exit(f"{options.game}: the tuned peer deviates from the plain one by {deviation:.1e} (at most 1e-5)")
        program = Tuned(game, learners(game), options.replicas, STEPS)
    JaxLoop(jax, program.iterate, program.start(0), STEPS * options.replicas).serve(deviation)


if __name__ == "__main__":
    main()
