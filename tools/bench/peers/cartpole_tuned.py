"""PPO on cartpole in jax, tuned for a CPU of several cores; the plain peer is learn_jax.Training.

    XLA_FLAGS="--xla_force_host_platform_device_count=2 --xla_cpu_multi_thread_eigen=false"
    .venv-peers/bin/python tools/bench/peers/cartpole_tuned.py [--replicas 256] [--device cpu]

Prints 0 once it is compiled. Then, for each number of seconds that it reads, prints the environment steps per
second of a window of that length.

Tried on two cores of an EPYC (Zen 4), 256 x 32, 2026-11-25, other load, in thousand environment steps per second
(medians of three or four windows of 1 s): plain 63; with an order of rows from a single sort of numbers that hold
random bits and the row 82; not shuffled at all, which would not be PPO as ours trains it, 83. Two host devices
66, with the single sort 84, while each program had one core's worth of time. No gain: huge pages 63, one random
number per draw 62, with scans unrolled four times too 60.
"""

import argparse

from side_by_side import JaxLoop, jax_for

STEPS = 32


def shuffled(key, count):
    """The order of the rows: sorts one number per row, whose high bits are random and whose low bits are the row.
    jax.random.permutation sorts pairs, twice."""
    import jax
    import jax.numpy as jnp
    bits = (count - 1).bit_length()
    drawn = jax.random.bits(key, (count,)) << bits | jnp.arange(count, dtype=jnp.uint32)
    return (jnp.sort(drawn) & (1 << bits) - 1).astype(jnp.int32)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--replicas", type=int, default=256)
    options.add_argument("--device", choices=["cpu", "gpu"], default="cpu")
    options = options.parse_args()
    jax = jax_for(options.device)
    from cartpole_train import OURS, cartpole_training
    from learn_jax import Divided
    training = cartpole_training(**OURS | {"replicas": options.replicas, "steps": STEPS}, make=Divided, shuffle=shuffled)
    JaxLoop(jax, training.iterate, training.start(0), STEPS * options.replicas).serve(0)


if __name__ == "__main__":
    main()
