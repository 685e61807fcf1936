"""Compares learning with and without staggered resets: prints the tables of
docs/learning/staggered_resets.md.

WDTRAIN=build/wdtrain python tests/learn/staggered_resets.py [--seeds 5] [--jobs 2] [--out runs/staggered]

Trains each game with trainer.staggered_resets true and false over the same seeds; existing runs are not
repeated.
"""

import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import statistics
import subprocess

WDTRAIN = os.environ.get("WDTRAIN", "build/wdtrain")
CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs"
ARMS = ("true", "false")
GAMES = {
    "tag": {
        "train": ["--config", CONFIGS / "tag_continuous_small.yaml", "--set", "env.episode_length=500", "--num_envs", 16,
                  "--train_batch_size", 1600, "--total_steps", 96_000],
        # The period is the number of iterations per episode.
        "policy": "tagger", "period": 501 / 100,
        "rows": [("tags in an episode, last quarter of training", lambda lines: over_episodes(lines[3 * len(lines) // 4 :], "env/tags")),
                 ("`runner/recent_return` at 100 %", lambda lines: quarters(lines, "runner/recent_return")[3])],
    },
    "pendulum": {
        "train": ["--env", "pendulum", "--total_steps", 204_800],
        "policy": "shared", "period": 201 / 64,
        "rows": [],
    },
}


def call(*arguments):
    return subprocess.run([WDTRAIN, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def train(folder, game, arm, seed):
    run = folder / f"{game}_{arm}_{seed}"
    if not (run / "summary.json").exists() or json.loads((run / "summary.json").read_text())["status"] != "finished":
        call(*GAMES[game]["train"], "--set", f"trainer.staggered_resets={arm}", "--seed", seed, "--threads", 1, "--device", "cpu",
             "--set", "saving.metrics_log_freq=1", "--set", "saving.checkpoint_freq=0", "--run_dir", run, "--quiet")
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def swing(series, period):
    """Root mean square of the second half of a series, after the mean over one period around each point is
    subtracted."""
    half = max(1, round(period) // 2)
    left = [value - statistics.fmean(series[k - half : k + half + 1]) for k, value in enumerate(series) if half <= k < len(series) - half]
    left = left[len(left) // 2 :]
    return math.sqrt(statistics.fmean(value * value for value in left))


def over_episodes(lines, name):
    """Mean over the episodes that ended."""
    return sum(line["episodes"] * line[name] for line in lines if line["episodes"] > 0) / sum(line["episodes"] for line in lines)


def quarters(lines, name):
    """The last known value in each quarter of training."""
    known = [[line[name] for line in lines[k * len(lines) // 4 : (k + 1) * len(lines) // 4] if line[name] is not None] for k in range(4)]
    return [quarter[-1] if quarter else math.nan for quarter in known]


def interval(values):
    """The mean and its standard error."""
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{statistics.fmean(values):.4g} ± {error:.2g}"


def report(game, runs):
    settings, policy = GAMES[game], GAMES[game]["policy"]
    print(f"\n{game}\n\n| what | " + " | ".join(f"staggered_resets: {arm}" for arm in ARMS) + " | pairs: true - false |\n|---|---|---|---|")

    def row(name, value):
        by_arm = [[value(lines) for lines in runs[arm]] for arm in ARMS]
        print(f"| {name} | " + " | ".join(interval(values) for values in by_arm) + f" | {interval([a - b for a, b in zip(*by_arm)])} |")

    for k in range(4):
        row(f"`{policy}/recent_return` at {25 * (k + 1)} %", lambda lines: quarters(lines, f"{policy}/recent_return")[k])
    for name, value in settings["rows"]:
        row(name, value)
    for name in ("return_mean", "value_loss", "explained_variance"):
        row(f"swing of `{name}` from iteration to iteration", lambda lines: swing([line[f"{policy}/{name}"] for line in lines], settings["period"]))
    for arm in ARMS:
        series = [line[f"{policy}/return_mean"] for line in runs[arm][0]][-12:]
        print(f"\n`return_mean` of the last {len(series)} iterations, seed 1, {arm}: " + ", ".join(f"{value:.3g}" for value in series))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--games", nargs="+", default=list(GAMES), choices=GAMES)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("runs/staggered"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        under_way = {(game, arm): [pool.submit(train, options.out, game, arm, seed) for seed in range(1, options.seeds + 1)]
                     for game in options.games for arm in ARMS}
        for game in options.games:
            report(game, {arm: [run.result() for run in under_way[game, arm]] for arm in ARMS})


if __name__ == "__main__":
    main()
