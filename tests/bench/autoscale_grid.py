"""The autoscaler against a full grid: what it chooses, and the best of all settings of the grid that stay within the same memory, measured
in the same run. The choice and the best few are measured again in turns, since the best of many noisy timings is too good.

    python3 tests/bench/autoscale_grid.py [--memory_gb 2] [--seconds 1] [--json FILE] cartpole tag_gridworld ...
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
# Where the search begins: replicas and steps. The games of 105 agents are begun small, as docs/autoscale.md advises for a CPU.
STARTS = {"cartpole": (32, 32), "tag_gridworld": (64, 50), "tag_continuous": (4, 10)}
FINALISTS, ROUNDS = 3, 9


class Game:
    def __init__(self, name, arguments):
        self.name, self.memory, self.seconds = name, int(arguments.memory_gb * 2**30), arguments.seconds
        self.envs, self.steps = STARTS[name]
        self.options = ["--env", name, "--device", "cpu", "--stop_return", "none", "--set", f"trainer.num_envs={self.envs}", "--set",
                        f"trainer.train_batch_size={self.envs * self.steps}", "--set", f"autoscale.memory_gb={arguments.memory_gb}",
                        "--set", f"autoscale.probe_seconds={arguments.seconds}", "--set", f"autoscale.max_seconds={arguments.search_seconds}"]

    def search(self, folder):
        """The report, and the summary of a short training with what was chosen."""
        run = f"{folder}/{self.name}"
        subprocess.run([WDTRAIN, *self.options, "--auto_scale=refresh", "--max_seconds", "5", "--total_steps", "1e9", "--run_dir", run],
                       check=True, env={**os.environ, "XDG_CACHE_HOME": folder})
        return [json.loads(pathlib.Path(run, name).read_text()) for name in ("autoscale.json", "summary.json")]

    def probe(self, envs, steps, folder):
        answer = pathlib.Path(folder, "answer.json")
        answer.unlink(missing_ok=True)
        order = {"num_envs": envs, "rollout_steps": steps, "max_seconds": 20, "measured_seconds": self.seconds, "memory_bytes": self.memory,
                 "answer": str(answer)}
        subprocess.run([WDTRAIN, *self.options, "-a", "--quiet"], env={**os.environ, "WD_PROBE": json.dumps(order)}, stderr=subprocess.DEVNULL)
        outcome = json.loads(answer.read_text()) if answer.exists() else {"outcome": "out_of_memory"}
        fits = outcome["outcome"] == "fits" and outcome["bytes"] <= self.memory
        return (outcome["env_steps_per_s"], outcome["bytes"]) if fits else None

    def grid(self, folder):
        found = {}
        for steps in (self.steps, 2 * self.steps, 4 * self.steps):
            envs = self.envs
            while measured := self.probe(envs, steps, folder):
                found[envs, steps] = measured
                print(f"{self.name} {envs} x {steps}: {measured[0]:.0f} env/s, {measured[1] / 2**20:.0f} MiB", flush=True)
                envs *= 2
        return found


def compare(game, folder):
    report, summary = game.search(folder)
    chosen = report["chosen"]["num_envs"], report["chosen"]["rollout_steps"]
    grid = game.grid(folder)
    best = sorted(grid, key=lambda setting: -grid[setting][0])[:FINALISTS]
    speeds = {setting: [] for setting in (chosen, *best)}
    for k in range(ROUNDS):
        for setting in list(speeds) if k % 2 == 0 else reversed(list(speeds)):
            speeds[setting].append(game.probe(*setting, folder)[0])
    medians = {setting: statistics.median(values) for setting, values in speeds.items()}
    fastest = max(best, key=medians.get)
    ratios = [a / b for a, b in zip(speeds[chosen], speeds[fastest], strict=True)]
    return {"env": game.name, "start": [game.envs, game.steps], "chosen": chosen, "best_of_grid": fastest, "grid_settings": len(grid),
            "chosen_env_s": medians[chosen], "best_env_s": medians[fastest], "ratio_median": statistics.median(ratios),
            "ratio_range": [min(ratios), max(ratios)], "probes": len(report["tries"]),
            "search_seconds": sum(t["seconds"] for t in report["tries"]), "memory_limit": game.memory,
            "peak_memory_of_training": summary["peak_memory_bytes"], "gain_over_start": medians[chosen] / grid[game.envs, game.steps][0]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("envs", nargs="+", choices=sorted(STARTS))
    parser.add_argument("--memory_gb", type=float, default=2)
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
    print("| env | start | chosen (probes, seconds) | best of grid (settings) | env/s chosen / best | ratio, pairs | peak MiB |\n|---|---|---|---|---|---|---|")
    for r in results:
        print(f"| {r['env']} | {r['start'][0]} x {r['start'][1]} | {r['chosen'][0]} x {r['chosen'][1]} ({r['probes']}, {r['search_seconds']:.0f}) "
              f"| {r['best_of_grid'][0]} x {r['best_of_grid'][1]} ({r['grid_settings']}) | {r['chosen_env_s']:.0f} / {r['best_env_s']:.0f} "
              f"| {r['ratio_median']:.3f} ({r['ratio_range'][0]:.3f} to {r['ratio_range'][1]:.3f}) | {r['peak_memory_of_training'] / 2**20:.0f} |")


if __name__ == "__main__":
    main()
