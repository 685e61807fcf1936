"""Compares cartpole with Stable-Baselines3 and with a jitted PPO in jax; prints one JSON object to stdout.

    .venv-peers/bin/python tools/bench/peers/cartpole.py [--pairs 5] [--seconds 10] [--device cpu|gpu]

"to 490": DQN, until 20 greedy episodes, played every 5,000 steps, return 490. "to 475": seconds of a whole process, including startup and jax's compilation, until the last 100 episodes
return 475 on average (cartpole_train.py); every pair uses another seed. "train": environment steps per
second of training with 256 replicas in rollouts of 32 steps, with 10 epochs of 4 minibatches; in "tuned peer"
by cartpole_tuned.py.
"""

import functools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

from side_by_side import JaxLoop, Ours, TunedProcess, Unavailable, comparison, jax_for, parser, report, shown

REPLICAS, STEPS = 256, 32


DQN = ["--config", "configs/cartpole_dqn.yaml", "--set", "eval.every=5_000", "--set", "eval.episodes=20", "--set", "trainer.stop_on=eval",
       "--stop_return", "490"]


def to_goal(options, peer):
    if peer.startswith("sb3"):
        import stable_baselines3  # noqa: F401: not there is a reason to skip
    else:
        jax_for(options.device)
    ours = Ours(options.device)
    runs = {"peer": [], "ours": []}
    script = pathlib.Path(__file__).with_name("cartpole_train.py")
    environment = os.environ | {"JAX_PLATFORMS": {"cpu": "cpu", "gpu": "cuda"}[options.device]}

    def theirs():
        command = [sys.executable, script, peer, "--seed", len(runs["peer"]) + 1, "--most_steps", options.most_steps]
        start = time.perf_counter()
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment)
        seconds = time.perf_counter() - start
        if done.returncode != 0:
            raise RuntimeError(f"{shown(command)}: {done.stderr[-2000:]}")
        runs["peer"].append(json.loads(done.stdout.splitlines()[-1]) | {"seconds": seconds})
        return seconds

    def mine():
        what = DQN if peer == "sb3-dqn" else ["--env", "cartpole", "--total_steps", options.most_steps]
        seconds, summary = ours.train(*what, "--seed", len(runs["ours"]) + 1)
        runs["ours"].append({"env_steps": summary["env_steps"], "return": summary["mean_return"]["cart" if peer == "sb3-dqn" else "shared"],
                             "reached": summary["stop_reason"] == "stop_return", "seconds": seconds})
        return seconds

    result = comparison(options, theirs, mine, ours, unit="seconds")
    for side in runs:
        result[side] |= {"runs": runs[side], "reached": sum(run["reached"] for run in runs[side]), "env_steps_median": statistics.median(run["env_steps"] for run in runs[side])}
    if result["peer"]["reached"] + result["ours"]["reached"] < 2 * options.pairs:
        result["note"] = "some runs did not reach the goal: their seconds are those until they stopped, and the ratio says nothing"
    return result


def training(options, tuned):
    ours = Ours(options.device)
    if tuned:
        peer = TunedProcess("cartpole_tuned.py", [], options, REPLICAS)
    else:
        jax = jax_for(options.device)
        from cartpole_train import OURS, cartpole_training
        game = cartpole_training(**OURS | {"replicas": REPLICAS, "steps": STEPS})
        peer = JaxLoop(jax, game.iterate, game.start(0), REPLICAS * STEPS)
    settings = ["trainer.stop_return=none"]
    try:
        return comparison(options, lambda: peer.speed(options.seconds), lambda: ours.bench("train", "cartpole", options.seconds, REPLICAS, REPLICAS * STEPS, settings),
                          ours, replicas=REPLICAS, steps=STEPS, **(peer.facts if tuned else {}))
    finally:
        if tuned:
            peer.end()


def puffer():
    raise Unavailable("PufferLib 3.0.0 is published as source only, and its build downloads raylib from outside the package registry; "
                      "later versions do not train on a CPU")


def main():
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--most_steps", type=int, default=2_000_000, help="at which a training gives up")
    options = options.parse_args()
    comparisons = {f"to 475, {peer}": functools.partial(to_goal, options, peer) for peer in ("sb3", "jax-zoo", "jax-ours")}
    if options.device == "gpu":
        def sb3_on_gpu():
            raise Unavailable("Stable-Baselines3 trains so small a network on the CPU; see the comparison there")
        comparisons["to 475, sb3"] = sb3_on_gpu
    comparisons["to 490 by DQN, sb3"] = functools.partial(to_goal, options, "sb3-dqn")
    comparisons["to 475, pufferlib without LSTM"] = puffer
    comparisons["train, jax"] = functools.partial(training, options, False)
    comparisons["train, jax, tuned peer"] = functools.partial(training, options, True)
    report(options, "cartpole, PPO", "to a mean return of 475; and speed of training", ["stable-baselines3", "gymnasium", "torch", "jax", "jaxlib", "optax"], comparisons)


if __name__ == "__main__":
    main()
