"""Adversaries of simple_tag that learn against past good agents, and those that learn against the latest one alone: prints the tables of
docs/learning/past_selves.md.

WDTRAIN=build/wdtrain python tests/learn/past_selves.py [--seeds 5] [--jobs 2] [--out runs/past_selves]

Trains both kinds over the same seeds with equal steps; then the adversaries of every run play the good agent of every run. Runs and matches
that exist are not repeated.
"""

import argparse
import concurrent.futures
import itertools
import json
import math
import os
import pathlib
import statistics
import subprocess

WDTRAIN = os.environ.get("WDTRAIN", "build/wdtrain")
CONFIG = pathlib.Path(__file__).resolve().parents[2] / "configs" / "simple_tag.yaml"
STEPS = 2_560_000  # those of CONFIG
KINDS = {
    "latest": [],
    "past": ["--set", f"opponents={{good_agent: [{{pool: {{size: 12, every: {STEPS // 40}, draw: uniform}}, share: 0.5}}]}}"],
}
T95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}  # Student's t, n - 1 degrees of freedom


def call(*arguments):
    return subprocess.run([WDTRAIN, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def train(run, kind, seed):
    if not (run / "summary.json").exists() or json.loads((run / "summary.json").read_text())["status"] != "finished":
        call("--config", CONFIG, *KINDS[kind], "--total_steps", STEPS, "--seed", seed, "--threads", 1, "--device", "cpu",
             "--set", "saving.checkpoint_freq=0", "--run_dir", run, "--quiet")


def match(folder, adversary, good_agent, episodes):
    """The return of each adversary in an episode."""
    kept = folder / f"{adversary}_meets_{pathlib.Path(good_agent).name}.json"
    if not kept.exists():
        text = call("eval", folder / adversary, "--policy", f"good_agent={good_agent}", "--episodes", episodes, "--threads", 1,
                    "--device", "cpu", "--json")
        kept.write_text(text)
    return json.loads(kept.read_text())


def interval(values):
    half = T95[len(values)] * statistics.stdev(values) / math.sqrt(len(values))
    return f"{statistics.fmean(values):.1f} ± {half:.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, choices=T95)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--episodes", type=int, default=500)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("runs/past_selves"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    seeds = range(1, options.seeds + 1)
    runs = [(kind, seed) for seed in seeds for kind in KINDS]
    name = lambda run: f"{run[0]}_{run[1]}"  # noqa: E731

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda run: train(options.out / name(run), *run), runs))
        pairs = list(itertools.product(runs, [*runs, "random"]))
        play = lambda a, b: match(options.out, name(a), b if b == "random" else options.out / name(b), options.episodes)  # noqa: E731
        returns = {pair: result["returns"]["adversary"]["mean"] for pair, result in zip(pairs, pool.map(lambda pair: play(*pair), pairs))}

    def mean(adversary, good_agents):
        return statistics.fmean(returns[adversary, other] for other in good_agents if other != adversary)

    of_kind = {kind: [(kind, seed) for seed in seeds] for kind in KINDS}
    print("| adversaries trained against | " + " | ".join(f"good agents of {kind}" for kind in KINDS)
          + " | all of other runs | the hardest of these | their own good agent | random |")
    print("|---|" + "---|" * 6)
    for kind, adversaries in of_kind.items():
        cells = [[mean(a, of_kind[other]) for a in adversaries] for other in KINDS]
        cells.append([mean(a, runs) for a in adversaries])
        cells.append([min(returns[a, other] for other in runs if other != a) for a in adversaries])
        cells.append([returns[a, a] for a in adversaries])
        cells.append([returns[a, "random"] for a in adversaries])
        print(f"| {kind} | " + " | ".join(interval(values) for values in cells) + " |")
    differences = [mean(("past", seed), runs) - mean(("latest", seed), runs) for seed in seeds]
    print(f"\npast - latest against all of other runs, by seed: {interval(differences)} ("
          + ", ".join(f"{value:.1f}" for value in differences) + ")")

    print("\n| adversaries | " + " | ".join(f"good agent of {name(run)}" for run in runs) + " |\n|---|" + "---|" * len(runs))
    for a in runs:
        print(f"| {name(a)} | " + " | ".join(f"{returns[a, b]:.1f}" for b in runs) + " |")
    print("\n| good agents of | return of adversaries of other runs against them |\n|---|---|")
    for kind, good_agents in of_kind.items():
        print(f"| {kind} | {interval([statistics.fmean(returns[a, g] for a in runs if a != g) for g in good_agents])} |")


if __name__ == "__main__":
    main()
