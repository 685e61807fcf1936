"""Policies that learn against past selves of their opponent, and those that learn against the latest one alone: prints the tables of
docs/learning/past_selves.md.

WDTRAIN=build/wdtrain python tests/learn/past_selves.py simple_tag|connect4 [--seeds 5] [--jobs 2] [--out runs/past_selves_GAME]

Trains both kinds over the same seeds with equal steps; then those of every run play those of every run. Runs and matches that exist are not
repeated.
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
SOURCE = pathlib.Path(__file__).resolve().parents[2]
KINDS = ("latest", "past")
T95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}  # Student's t, n - 1 degrees of freedom


def call(*arguments):
    return subprocess.run([WDTRAIN, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def interval(values):
    half = T95[len(values)] * statistics.stdev(values) / math.sqrt(len(values))
    return f"{statistics.fmean(values):.3g} ± {half:.2g}"


class SimpleTag:
    """The adversaries' good agent has a pool; the score is an adversary's return."""

    train = ["--config", SOURCE / "configs" / "simple_tag.yaml"]
    steps, policy, episodes, others = 2_560_000, "good_agent", 500, ["random"]

    @staticmethod
    def score(play, a, b):
        return play(a, "good_agent", b)["returns"]["adversary"]["mean"]


class Connect4:
    """One policy of both roles has a pool; the score is the share of games won, draws half, as first and as second."""

    train = ["--env", SOURCE / "examples" / "connect4" / "connect4.cu"]
    steps, policy, episodes, others = 1_000_000, "shared", 200, ["random", "scripted"]

    @staticmethod
    def score(play, a, b):
        first = play(a, "second", b)["returns"]["first"]["mean"]
        return (2.0 + first + play(a, "first", b)["returns"]["second"]["mean"]) / 4.0


GAMES = {"simple_tag": SimpleTag, "connect4": Connect4}


def train(game, run, kind, seed):
    if (run / "summary.json").exists() and json.loads((run / "summary.json").read_text())["status"] == "finished":
        return
    pool = f"opponents.{game.policy}=[{{pool: {{size: 12, every: {game.steps // 40}, draw: uniform}}, share: 0.5}}]"
    call("train", *game.train, *(["--set", pool] if kind == "past" else []), "--total_steps", game.steps, "--seed", seed, "--threads", 1,
         "--device", "cpu", "--set", "saving.checkpoint_freq=0", "--run_dir", run, "--quiet")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game", choices=GAMES)
    parser.add_argument("--seeds", type=int, default=5, choices=T95)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    game, out = GAMES[options.game], options.out or pathlib.Path("runs") / f"past_selves_{options.game}"
    out.mkdir(parents=True, exist_ok=True)
    seeds = range(1, options.seeds + 1)
    runs = [(kind, seed) for seed in seeds for kind in KINDS]

    def name(player):
        return player if isinstance(player, str) else f"{player[0]}_{player[1]}"

    def play(run, side, player):
        """Run's policies in fresh episodes, in which the player has this side."""
        kept = out / f"{name(run)}_meets_{side}_{name(player)}.json"
        if not kept.exists():
            given = player if isinstance(player, str) else out / name(player)
            kept.write_text(call("eval", out / name(run), "--policy", f"{side}={given}", "--episodes", game.episodes, "--threads", 1,
                                 "--device", "cpu", "--json"))
        return json.loads(kept.read_text())

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda run: train(game, out / name(run), *run), runs))
        pairs = list(itertools.product(runs, [*runs, *game.others]))
        scores = dict(zip(pairs, pool.map(lambda pair: game.score(play, *pair), pairs)))

    def mean(run, against):
        return statistics.fmean(scores[run, other] for other in against if other != run)

    of_kind = {kind: [(kind, seed) for seed in seeds] for kind in KINDS}
    columns = {f"against *{kind}*": lambda run, kind=kind: mean(run, of_kind[kind]) for kind in KINDS}
    columns["all of other runs"] = lambda run: mean(run, runs)
    columns["the hardest of these"] = lambda run: min(scores[run, other] for other in runs if other != run)
    columns["their own"] = lambda run: scores[run, run]
    columns |= {other: lambda run, other=other: scores[run, other] for other in game.others}
    print("| learned against | " + " | ".join(columns) + " |\n|---|" + "---|" * len(columns))
    for kind in KINDS:
        print(f"| {kind} | " + " | ".join(interval([column(run) for run in of_kind[kind]]) for column in columns.values()) + " |")
    differences = [mean(("past", seed), runs) - mean(("latest", seed), runs) for seed in seeds]
    print(f"\npast - latest against all of other runs, by seed: {interval(differences)} (" + ", ".join(f"{value:.2g}" for value in differences) + ")")
    print("\n| | " + " | ".join(map(name, runs)) + " |\n|---|" + "---|" * len(runs))
    for a in runs:
        print(f"| {name(a)} | " + " | ".join(f"{scores[a, b]:.3g}" for b in runs) + " |")
    print("\n| those played against | score of other runs against them |\n|---|---|")
    for kind in KINDS:
        print(f"| {kind} | {interval([statistics.fmean(scores[a, g] for a in runs if a != g) for g in of_kind[kind]])} |")


if __name__ == "__main__":
    main()
