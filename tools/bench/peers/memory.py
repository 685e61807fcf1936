"""Compares PPO with a memory in cartpole without velocities with sb3-contrib's RecurrentPPO and with memorax (JAX); prints one JSON object to stdout.

    .venv-peers/bin/python tools/bench/peers/memory.py [--pairs 3] [--seconds 10] [--only sb3] [--replicas 32] [--steps 128]

Environment steps per second of training, one thread on each side: 32 replicas in rollouts of 128 steps, 4 epochs of 4 minibatches, a network of
64 units of the peer's kind. memorax runs in .venv-memorax (setup.sh memorax), because its packages pin another Gymnasium.

sb3: an LSTM layer of 64 for the actor and one for the critic between the observation and their last layers, with no other hidden layer. It learns
from minibatches of padded sequences. memorax: a layer of 64 in front of the cell, as in ours, actor and critic apart.
"""

import functools
import os
import pathlib
import sys

from side_by_side import ROOT, Ours, Served, Unavailable, comparison, parser, report, shown

EPOCHS, MINIBATCHES, WIDTH = 4, 4, 64
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"}


class OneCore(Served):
    """memory_train.py, bound to one core."""

    def __init__(self, python, peer, options):
        if not pathlib.Path(python).exists():
            raise Unavailable(f"{shown([python])} is not there: tools/bench/peers/setup.sh memorax installs it")
        core = max(os.sched_getaffinity(0))
        super().__init__([python, pathlib.Path(__file__).with_name("memory_train.py"), peer, "--replicas", options.replicas, "--steps", options.steps],
                         ONE_THREAD | {"JAX_PLATFORMS": "cpu"}, preexec_fn=lambda: os.sched_setaffinity(0, {core}))
        self.answer()  # after the compilation


def training(options, python, peer, network):
    if options.device == "gpu":
        raise Unavailable("one thread of a CPU is compared")
    ours = Ours(options.device)
    settings = ["env.velocities=false", "trainer.threads=1", f"policy={{shared: {{algorithm: PPO, num_epochs: {EPOCHS}, num_minibatches: {MINIBATCHES}, "
                f"model: {{type: {network}, width: {WIDTH}, separate_value: true}}}}}}", "trainer.stop_return=none"]
    served = OneCore(python, peer, options)
    try:
        return comparison(options, lambda: served.speed(options.seconds),
                          lambda: ours.bench("train", "cartpole", options.seconds, options.replicas, options.replicas * options.steps, settings), ours,
                          replicas=options.replicas, steps=options.steps, threads=1, network=network, peer_command=shown(served.command))
    finally:
        served.end()


def main():
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--replicas", type=int, default=32)
    options.add_argument("--steps", type=int, default=128)
    options = options.parse_args()
    memorax = ROOT / ".venv-memorax/bin/python"
    peers = {"sb3 lstm": sys.executable, "memorax lstm": memorax, "memorax gru": memorax, "memorax mingru": memorax}
    comparisons = {f"train, {peer}": functools.partial(training, options, python, peer, peer.split()[1]) for peer, python in peers.items()}
    report(options, "cartpole without velocities, PPO with a memory", "speed of training, one thread each",
           ["sb3-contrib", "stable-baselines3", "gymnasium", "torch", "numpy"], comparisons)


if __name__ == "__main__":
    main()
