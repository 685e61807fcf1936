"""Compares pgx's Connect Four with ours; prints one JSON object to stdout.

    .venv-peers/bin/python tools/bench/peers/connect_four.py [--pairs 5] [--seconds 10]

The peer is one compiled scan over steps of a batch: random legal actions by a counter (pgx's own keys would cost more than its game), the step, a reset at
the end of a game, and the observation, action, reward and end of each step written to arrays of a whole rollout, as ours does. Its batch and rollout are those
that were fastest of several. Ours is `wdtrain bench --mode env`, whose rows are float32, for both players in every step; pgx's are bits of who is on turn.
"""

import functools
import time

from side_by_side import ROOT, Ours, comparison, parser, report

REPLICAS = 1024
GAME = ROOT / "examples" / "connect4" / "connect4.cu"


def steps_per_second(batch, length, seconds):
    import jax
    import jax.numpy as jnp
    import pgx
    from pgx.experimental import auto_reset

    env = pgx.make("connect_four")
    step, init = jax.vmap(auto_reset(env.step, env.init)), jax.vmap(env.init)
    keys = jax.random.split(jax.random.PRNGKey(0), batch)  # who begins; the game draws nothing else

    def play(carry, _):
        state, counter = carry
        counter = counter * jnp.uint32(747796405) + jnp.uint32(2891336453)
        weights = (counter[:, None] * (jnp.arange(7, dtype=jnp.uint32) * jnp.uint32(2) + jnp.uint32(0x9E3779B1))) >> 8
        action = jnp.argmax(jnp.where(state.legal_action_mask, weights.astype(jnp.float32) + 1, 0), axis=1)
        new = step(state, action, keys)
        return (new, counter), (new.observation, new.legal_action_mask, action.astype(jnp.int8), new.rewards, new.terminated)

    @jax.jit
    def rollout(carry, _):
        return jax.lax.scan(play, carry, None, length=length)

    carry = jax.jit(init)(keys), jax.random.bits(jax.random.PRNGKey(1), (batch,), jnp.uint32)
    carry, rows = rollout(carry, None)
    jax.block_until_ready(rows)
    begin, steps = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        carry, rows = rollout(carry, None)
        jax.block_until_ready(rows)
        steps += batch * length
    return steps / (time.perf_counter() - begin)


@functools.cache
def fastest():
    return max(((batch, length) for batch in (256, 1024, 4096) for length in (16, 64)), key=lambda shape: steps_per_second(*shape, 1.0))


def compare(options, settings):
    ours = Ours(options.device)
    batch, length = fastest()
    return comparison(options, lambda: steps_per_second(batch, length, options.seconds),
                      lambda: ours.bench("env", GAME, options.seconds, REPLICAS, settings=["env.random_plies=0", *settings]), ours,
                      replicas=REPLICAS, peer_batch=batch, peer_steps=length)


def main():
    options = parser(__doc__.splitlines()[0]).parse_args()
    report(options, "pgx", "one compiled scan; steps of the game with random legal actions", ["pgx", "jax", "numpy"],
           {"board": functools.partial(compare, options, []), "board, rows of bfloat16": functools.partial(compare, options, ["trainer.precision=bf16"]),
            "threats": functools.partial(compare, options, ["env.threats=true"])})


if __name__ == "__main__":
    main()
