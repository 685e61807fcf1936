"""Compares SAC, TD3 and DDPG on the pendulum with RLtools and Stable-Baselines3; prints one JSON object to stdout.

    .venv-peers/bin/python tools/bench/peers/pendulum.py [--pairs 3] [--seed 1] [--threads 2] [--only TEXT]

Every run trains 20,000 environment steps; a pair has one run of each side with the same seed. Times are wall
seconds of training alone: without start-up, imports, RLtools' compilation (its program is compiled before, as in
rltools_pendulum.py) and evaluations. Each 1,000 steps the greedy policy plays 100 episodes, always from the same
starts.

"to_goal": seconds of training until such an evaluation first returns -160 or more. Ours are those of a training
that ends there, without evaluations.
"processor": seconds that all threads compute. Ours are those of a whole process without evaluations, less those
of a process that trains 8 steps; the peers measure their training themselves.
"return": of 300 more greedy episodes after the last step.

All three programs play Gymnasium's Pendulum-v1: the same equations, limits and rewards, starts uniform in angle and
with speeds in [-1, 1], episodes of 200 steps (RLtools 2.2.1 and Gymnasium 1.4.0 by their sources).
"""

import functools
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from rltools_pendulum import file_of
from side_by_side import Ours, Unavailable, comparison, parser, report, shown

GOAL, EVERY, STEPS = -160, 1_000, 20_000
SOURCE = pathlib.Path(__file__).with_name("rltools_actor_critic.cpp")
# RLtools is faster on one thread than with MKL's two (5.4 s and 9.1 s of SAC, 2026-11-25, under other load), and so is
# Stable-Baselines3 (23 s and 323 s of 1,600 steps of SAC).
SB3_THREADS = 1
# RLtools' own defaults (layers of 64 and 64), with batches of 100 rows as its Python wrapper has them; and the
# settings of configs/pendulum_sac.yaml and configs/pendulum_td3.yaml.
RLTOOLS = {
    "default": dict(OF_BATCH=100, OF_WARM_UP=100, OF_DISCOUNT="0.99f"),
    "as sac": dict(OF_BATCH=256, OF_WARM_UP=500, OF_DISCOUNT="0.99f"),
    "as td3": dict(OF_BATCH=256, OF_WARM_UP=1000, OF_DISCOUNT="0.98f"),
    "tuned": dict(OF_BATCH=32, OF_WARM_UP=100, OF_DISCOUNT="0.98f", OF_LEARNING_RATE="4e-3f"),
}
# "tuned": each side with the settings with which it reached the goal soonest, of those that were tried on seeds 1 to 3
# (2026-11-25): RLtools' batches of 32, 48, 64 and 100 rows with rates of 1e-3, 2e-3 and 4e-3, and about 35 of ours. Ours
# makes one update for 4 steps, RLtools one for each.
QUICK = ["trainer.num_envs=16", "trainer.train_batch_size=16", *(f"policy.pendulum.{setting}" for setting in (
    "batch_size=32", "replay_ratio=8", "learning_starts=500", "random_steps=500", "n_step=3", "tau=0.01"))]
TUNED = {"sac": [*QUICK, *(f"policy.pendulum.{rate}=6e-3" for rate in ("lr", "critic_lr", "temperature_lr"))],
         "td3": [*QUICK, *(f"policy.pendulum.{rate}=4e-3" for rate in ("lr", "critic_lr"))]}
# Ours with the settings of RLtools: as many updates, of 100 rows.
AS_RLTOOLS = ["trainer.num_envs=4", "trainer.train_batch_size=4", "policy.pendulum.batch_size=100", "policy.pendulum.replay_ratio=100",
              "policy.pendulum.learning_starts=100", "policy.pendulum.random_steps=100", "policy.pendulum.gamma=0.99",
              "policy.pendulum.n_step=1"]


def compiled(algorithm, settings, folder):
    """RLtools' program, and the seconds and options of its compilation."""
    if not shutil.which("g++"):
        raise Unavailable("RLtools needs g++")
    headers = file_of("rltools", "rl_tools.h").parents[1]
    mkl, header = file_of("mkl", "libmkl_rt.so"), file_of("mkl-include", "mkl.h")
    defines = dict(OF_STEPS=STEPS, OF_HIDDEN=64, OF_LEARNING_RATE="1e-3f", OF_NOISE="0.1f") | settings
    options = ["-std=c++17", "-O3", "-march=native", "-ffast-math", "-DRL_TOOLS_BACKEND_ENABLE_MKL", "-DRL_TOOLS_DISABLE_UNALIGNED_MEMORY_ALLOCATIONS",
               *(["-DOF_SAC"] if algorithm == "sac" else []), *(f"-D{name}={value}" for name, value in defines.items())]
    program, start = pathlib.Path(folder) / "rltools_actor_critic", time.perf_counter()
    done = subprocess.run(["g++", *options, f"-I{headers}", f"-I{header.parent}", SOURCE, mkl, f"-Wl,-rpath,{mkl.parent}", "-o", program], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"g++ cannot compile {shown([SOURCE])}: {done.stderr[-2000:]}")
    return program, time.perf_counter() - start, options


def peer_run(command, environment=None):
    """What a peer's program prints as its last line."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=os.environ | (environment or {}))
    if done.returncode != 0:
        raise RuntimeError(f"{shown(command)} ended with {done.returncode}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def processor_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def our_run(ours, algorithm, seed, changes, threads):
    """Trainings with the same seed, so with the same bits: one without evaluations for the times, one with them for the
    step at which the goal is reached, and one that ends there."""
    training = ["--config", f"configs/pendulum_{algorithm}.yaml", "--seed", seed, "--device", ours.device, "--quiet"]
    for setting in [f"trainer.threads={threads}", *changes]:
        training += ["--set", setting]
    with tempfile.TemporaryDirectory() as folder:
        def trained(name, steps, *more):
            """The metrics, and the processor seconds of the process."""
            before = processor_of_children()
            ours.run(*training, "--total_steps", steps, *more, "--run_dir", f"{folder}/{name}")
            lines = (pathlib.Path(folder) / name / "metrics.jsonl").read_text().splitlines()
            return list(map(json.loads, lines)), processor_of_children() - before

        startup = trained("startup", 8)[1]

        def cost(name, steps):
            lines, processor = trained(name, steps)
            return {"wall": lines[-1]["time/wall_s"], "processor": processor - startup, "env_steps": lines[-1]["env_steps"]}

        run = cost("whole", STEPS)
        evaluations, _ = trained("evaluated", STEPS, "--set", f"eval.every={EVERY}", "--set", "eval.episodes=100", "--set", "eval.greedy=true",
                                 "--set", f"eval.seed={seed}")
        reached = [line["env_steps"] for line in evaluations if line.get("eval/pendulum/return", GOAL - 1) >= GOAL]
        if reached:
            run["to_goal"] = cost("to_goal", reached[0])
        played = json.loads(ours.run("eval", f"{folder}/whole", "--greedy", "--episodes", "300", "--seed", 1000 + seed, "--json"))
        ours.command = ["wdtrain", *training]
        return run | {"return": played["returns"]["pendulum"]["mean"]}


def ratios(runs, value):
    """Median, least and most of the pairs' ratios of a value, if all runs have it; above 1, ours is faster."""
    pairs = [(value(a), value(b)) for a, b in zip(runs["peer"], runs["ours"])]
    if any(value is None for pair in pairs for value in pair):
        return None
    found = [a / b for a, b in pairs]
    return {"median": statistics.median(found), "least": min(found), "most": max(found)}


def compare(options, algorithm, peer, changes=()):
    """`peer(seed)` returns a run of the peer."""
    if options.device != "cpu":
        raise Unavailable("these trainings are compared on the CPU")
    ours, runs = Ours(options.device), {"peer": [], "ours": []}

    def side(name, make):
        runs[name].append(make(options.seed + len(runs[name])))
        print(f"  {name}: {json.dumps(runs[name][-1])}", file=sys.stderr, flush=True)
        return runs[name][-1]["wall"]

    result = comparison(options, lambda: side("peer", peer), lambda: side("ours", lambda seed: our_run(ours, algorithm, seed, changes, options.threads)), ours,
                        unit="seconds", goal=GOAL, threads_of_ours=options.threads, threads_of_peer=1)
    result["to_goal"] = ratios(runs, lambda run: run.get("to_goal", {}).get("wall"))
    result["processor"] = ratios(runs, lambda run: run["processor"])
    result["processor_to_goal"] = ratios(runs, lambda run: run.get("to_goal", {}).get("processor"))
    for name, made in runs.items():
        reached = [run["to_goal"] for run in made if "to_goal" in run]
        result[name] |= {"runs": made, "reached": len(reached), "processor_median": statistics.median(run["processor"] for run in made),
                         "return_median": statistics.median(run["return"] for run in made)}
        if reached:
            result[name] |= {"processor_to_goal_median": statistics.median(run["processor"] for run in reached), "to_goal_median": statistics.median(run["wall"] for run in reached),
                             "env_steps_to_goal_median": statistics.median(run["env_steps"] for run in reached)}
    return result


def rltools(options, algorithm, settings, changes=()):
    with tempfile.TemporaryDirectory() as folder:
        program, compilation, flags = compiled(algorithm, RLTOOLS[settings], folder)
        result = compare(options, algorithm, lambda seed: peer_run([program, seed, GOAL, EVERY], {"MKL_THREADING_LAYER": "SEQUENTIAL"}), changes)
    return result | {"compilation_s": compilation, "compiler": shown(["g++", *flags])}


def sb3(options, algorithm):
    import stable_baselines3  # noqa: F401: not there is a reason to skip
    script = pathlib.Path(__file__).with_name("pendulum_train.py")
    return compare(options, algorithm, lambda seed: peer_run([sys.executable, script, algorithm, "--seed", seed, "--threads", SB3_THREADS, "--steps", STEPS,
                                                              "--every", EVERY, "--goal", GOAL]))


def main():
    options = parser(__doc__.splitlines()[0])
    options.set_defaults(pairs=3)
    options.add_argument("--seed", type=int, default=1, help="of the first pair")
    options.add_argument("--threads", type=int, default=2, help="of ours; the peers have one, with which they are faster")
    options = options.parse_args()
    comparisons = {}
    for algorithm in ("sac", "td3"):
        name = algorithm.upper()
        comparisons |= {f"{name}, rltools": functools.partial(rltools, options, algorithm, "default"),
                        f"{name}, rltools, ours as theirs": functools.partial(rltools, options, algorithm, "default", AS_RLTOOLS),
                        f"{name}, rltools, theirs as ours": functools.partial(rltools, options, algorithm, f"as {algorithm}"),
                        f"{name}, rltools, tuned": functools.partial(rltools, options, algorithm, "tuned", TUNED[algorithm])}
    comparisons |= {f"{name.upper()}, sb3": functools.partial(sb3, options, name) for name in ("sac", "td3", "ddpg")}
    report(options, "pendulum, actors and critics", f"{STEPS} steps, and to a mean return of {GOAL}", ["rltools", "mkl", "stable-baselines3", "gymnasium", "torch"],
           comparisons)


if __name__ == "__main__":
    main()
