"""Compares the autoscaler with a full grid: the setting it chooses against the best of all grid settings that
stay within the same memory and end an iteration within 10 seconds, measured in the same run. The choice and
the best few settings are then measured in turns in one process to find the best of those few. That one is
measured once more, because the best of several noisy medians is biased upward.

    python3 tools/bench/autoscale_grid.py [--memory_gb 2] [--seconds 1] [--json FILE] cartpole tag_gridworld
    ...
    # on a GPU, with all of its memory:
    python3 tools/bench/autoscale_grid.py --device cuda --memory_gb 0 --json FILE tag_continuous
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
WDTRAIN = ROOT / "build/wdtrain"
# The replicas and steps at which the search begins. On a CPU, games of 105 agents begin small, as
# docs/autoscale.md advises; on a GPU they begin at WarpDrive's setting.
STARTS = {"cpu": {"cartpole": (32, 32), "tag_gridworld": (64, 50), "tag_continuous": (4, 10)},
          "cuda": {"cartpole": (256, 32), "tag_gridworld": (64, 50), "tag_continuous": (250, 100)}}
FINALISTS, FINAL_ROUNDS, ROUNDS = 3, 3, 9
MOST_SECONDS = 10  # per iteration, as autoscale.max_iteration_seconds


def as_order(envs, steps):
    return {"num_envs": envs, "rollout_steps": steps, "train_batch_size": envs * steps}


class Game:
    def __init__(self, name, arguments):
        self.name, self.seconds, self.device = name, arguments.seconds, arguments.device
        self.memory = None  # [bytes] available to a worker, known after the search
        self.envs, self.steps = STARTS[self.device][name]
        self.options = ["--env", name, "--device", self.device, "--stop_return", "none", "--set", f"trainer.num_envs={self.envs}", "--set",
                        f"trainer.train_batch_size={self.envs * self.steps}", "--set", f"autoscale.memory_gb={arguments.memory_gb}", "--set", f"autoscale.min_rollout={self.steps}",
                        "--set", f"autoscale.probe_seconds={arguments.seconds}", "--set", f"autoscale.max_seconds={arguments.search_seconds}"]

    def search(self, folder):
        """The report of the search, and the summary of a short training run with the chosen setting."""
        run = f"{folder}/{self.name}"
        subprocess.run([WDTRAIN, *self.options, "--auto_scale=refresh", "--max_seconds", "30", "--total_steps", "1e9", "--run_dir", run],
                       check=True, env={**os.environ, "XDG_CACHE_HOME": folder})
        report, summary = (json.loads(pathlib.Path(run, name).read_text()) for name in ("autoscale.json", "summary.json"))
        self.memory = report["limits"]["memory_bytes"]
        return report, summary

    def run(self, folder, memory, **order):
        answer = pathlib.Path(folder, "answer.json")
        answer.unlink(missing_ok=True)
        order |= {"max_seconds": 200, "max_iteration_seconds": 0, "measured_seconds": self.seconds, "memory_bytes": memory if self.device == "cpu" else 0, "answer": str(answer)}
        subprocess.run([WDTRAIN, *self.options, "-a", "--quiet"], env={**os.environ, "WD_PROBE": json.dumps(order)}, stderr=subprocess.DEVNULL)
        return json.loads(answer.read_text()) if answer.exists() else {"outcome": "out_of_memory"}

    def probe(self, envs, steps, folder):
        outcome = self.run(folder, self.memory, probe=as_order(envs, steps))
        fits = outcome["outcome"] == "fits" and outcome["bytes"] <= self.memory
        return (outcome["env_steps_per_s"], outcome["bytes"]) if fits else None

    def ratio(self, a, b, folder, rounds=ROUNDS):
        """The speed of a relative to that of b: quartiles over all turns."""
        ratios = [1.0, 1.0] if a == b else []
        for k in range(rounds if a != b else 0):
            one, other = (a, b) if k % 2 == 0 else (b, a)
            outcome = self.run(folder, 2 * self.memory, probe=as_order(*one), beside=as_order(*other))
            ratios += [r if k % 2 == 0 else 1 / r for r in outcome["ratios"]]
        return statistics.quantiles(ratios, n=4)

    def grid(self, folder):
        found = {}
        for steps in (self.steps, 2 * self.steps, 4 * self.steps):
            envs = self.envs
            while envs * steps < MOST_SECONDS * max([speed for speed, _ in found.values()], default=1e9) and (measured := self.probe(envs, steps, folder)):
                found[envs, steps] = measured
                print(f"{self.name} {envs} x {steps}: {measured[0]:.0f} env/s, {measured[1] / 2**20:.0f} MiB", flush=True)
                envs *= 2
        return found


def compare(game, folder):
    report, summary = game.search(folder)
    chosen = report["chosen"]["num_envs"], report["chosen"]["rollout_steps"]
    grid = game.grid(folder)
    best = sorted(grid, key=lambda setting: -grid[setting][0])[:FINALISTS]
    fastest = min(best, key=lambda setting: game.ratio(chosen, setting, folder, FINAL_ROUNDS)[1])
    return {"env": game.name, "start": [game.envs, game.steps], "chosen": chosen, "best_of_grid": fastest, "grid_settings": len(grid),
            "chosen_env_s": report["chosen"]["env_steps_per_s"], "best_env_s": grid[fastest][0], "ratio_quartiles": game.ratio(chosen, fastest, folder),
            "over_start_quartiles": game.ratio(chosen, (game.envs, game.steps), folder), "probes": len(report["tries"]),
            "search_seconds": sum(t["seconds"] for t in report["tries"]), "memory_limit": game.memory,
            "peak_memory_of_training": summary["peak_memory_bytes"]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("envs", nargs="+", choices=sorted(STARTS["cpu"]))
    parser.add_argument("--device", choices=sorted(STARTS), default="cpu")
    parser.add_argument("--memory_gb", type=float, default=2, help="autoscale.memory_gb")
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--search_seconds", type=float, default=600, help="autoscale.max_seconds")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.envs:
            results.append(compare(Game(name, arguments), folder))
            print(json.dumps(results[-1]), flush=True)
            if arguments.json:
                arguments.json.write_text(json.dumps(results, indent=2) + "\n")
    print("| env | start | chosen (probes, seconds) | best of grid (settings) | chosen / best, quartiles | chosen / start | peak MiB |\n|---|---|---|---|---|---|---|")
    for r in results:
        low, middle, high = r["ratio_quartiles"]
        print(f"| {r['env']} | {r['start'][0]} x {r['start'][1]} | {r['chosen'][0]} x {r['chosen'][1]} ({r['probes']}, {r['search_seconds']:.0f}) "
              f"| {r['best_of_grid'][0]} x {r['best_of_grid'][1]} ({r['grid_settings']}) | {middle:.3f} ({low:.3f} to {high:.3f}) "
              f"| {r['over_start_quartiles'][1]:.2f} | {r['peak_memory_of_training'] / 2**20:.0f} |")


if __name__ == "__main__":
    main()
