"""What the parts of examples/connect4/strong.yaml are worth: trains variants of it, and judges their checkpoints by exact values.

WDTRAIN=build/wdtrain .venv/bin/python tests/learn/connect_four.py [--seeds 3] [--steps 12M] [--jobs 2] [--only TEXT] [--out runs/connect_four]

Prints a table of mistakes by class (medians over seeds, of the likeliest move), and writes the picture docs/learning/connect_four_parts.svg: the mean over the classes
during training. A variant that was trained before, in the folder of --out, is only judged again.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))

from judges import connect_four as judge  # noqa: E402
from learn.curve import picture  # noqa: E402

COLORS = ["blue", "red", "green", "orange", "violet"]  # of learn.curve
POOL = "opponents.shared=[{{pool: {{size: 12, every: {every}}}, share: 0.5}}, self]"
VARIANTS = {
    "as shipped": [],
    "with a pool": [POOL],
    "usual starts": ["env.random_plies=0"],
    "played starts": ["env.random_plies=0", "env.reset=played", "env.played_moves=[0, 40]"],
    "without threats": ["env.threats=false"],
}
POINTS = 8  # checkpoints of a training that are judged


def train(run, settings, seed, steps):
    done = run / "summary.json"
    if done.exists() and json.loads(done.read_text())["status"] == "finished":
        return
    game = ROOT / "examples/connect4"
    batch = 4096
    given = [*settings, f"policy.shared.lr=[[0, 1e-3], [{steps}, 0]]", f"saving.checkpoint_freq={steps // batch // POINTS}", f"saving.keep_last={POINTS + 2}",
             "saving.checkpoint_seconds=0", "eval.every=0"]
    sets = [argument for setting in given for argument in ("--set", setting.format(every=steps // 40) if setting is POOL else setting)]
    command = [os.environ.get("WDTRAIN", ROOT / "build/wdtrain"), "train", game / "connect4.cu", "--config", game / "strong.yaml", "--total_steps", steps, "--seed", seed,
               "--threads", 1, "--device", "cpu", "--quiet", "--run_dir", run, *sets]
    subprocess.run(list(map(str, command)), check=True)


def judged(run, where, seen):
    """(environment steps, mistakes by class) of each checkpoint, the last one at the end."""
    found = []
    for folder in sorted((run / "checkpoints").glob("[0-9]*")):
        checkpoint = judge.wdtrain.Run(folder)
        mistakes = judge.mistakes(judge.probabilities_of(checkpoint, *seen), where)
        found.append((int(checkpoint.metadata("shared")["env_steps"]), {of: 100 * greedy for of, (greedy, _) in mistakes.items()}))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=lambda text: int(float(text.replace("M", "e6"))), default=12_000_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="variants whose name holds this")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("runs/connect_four"))
    options = parser.parse_args()
    variants = {name: settings for name, settings in VARIANTS.items() if options.only in name}
    runs = {(name, seed): options.out / f"{name.replace(' ', '_')}_{seed}" for name in variants for seed in range(1, options.seeds + 1)}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda key: train(runs[key], VARIANTS[key[0]], key[1], options.steps), runs))
    where = judge.positions()
    seen = {threats: judge.observed(where, threats=threats) for threats in (False, True)}
    curves = {key: judged(run, where, seen["env.threats=false" not in VARIANTS[key[0]]]) for key, run in runs.items()}
    classes = list(next(iter(curves.values()))[0][1])
    print("| | " + " | ".join(classes) + " |\n|---|" + "---|" * len(classes))
    for name in variants:
        ends = [curves[name, seed][-1][1] for seed in range(1, options.seeds + 1)]
        print(f"| {name} | " + " | ".join(f"{statistics.median(end[of] for end in ends):.1f}" for of in classes) + " |")
    bundle = []
    for name in variants:
        of_seed = [[(steps, statistics.fmean(mistakes.values())) for steps, mistakes in curves[name, seed]] for seed in range(1, options.seeds + 1)]
        bundle.append([(points[0][0], statistics.median(value for _, value in points)) for points in zip(*of_seed)])
    title = "% mistakes: " + ", ".join(f"{name} ({color})" for name, color in zip(variants, COLORS))
    (ROOT / "docs/learning/connect_four_parts.svg").write_text(picture(title, [bundle]))


if __name__ == "__main__":
    main()
