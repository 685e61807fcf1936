"""The cost of distributed training: two workers of one training run against two separate runs with half the
replicas each, all with one thread, in alternating pairs. Prints environment steps per second and the share of
time in collective operations.

    python3 tools/bench/ranks.py [--pairs 5] [--seconds 50] [--config FILE] [-- SETTINGS]
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def command(out, envs, batch, arguments, more):
    settings = [a for s in (f"trainer.num_envs={envs}", f"trainer.train_batch_size={batch}", "trainer.threads=1", "saving.metrics_log_freq=1",
                            "saving.checkpoint_freq=0", "trainer.total_steps=1e12") for a in ("--set", s)]
    return [ROOT / "build/wdtrain", "--config", arguments.config, "--device", "cpu", "--quiet", "--run_dir", out, "--max_seconds",
            str(arguments.seconds), *settings, *more, *arguments.settings]


def speed(folder):
    # The first iteration is the warm-up.
    rows = [json.loads(line) for line in (pathlib.Path(folder) / "metrics.jsonl").read_text().splitlines()][1:]
    seconds = rows[-1]["time/wall_s"] - rows[0]["time/wall_s"]
    steps = rows[-1]["env_steps"] - rows[0]["env_steps"]
    return steps / seconds, sum(row["time/collective_s"] for row in rows[1:]) / seconds, len(rows)


def together(folder, arguments):
    subprocess.run(command(folder, arguments.envs, arguments.batch, arguments, ["--num_workers", "2"]), check=True)
    return speed(folder)


def apart(folder, arguments):
    halves = [subprocess.Popen(command(f"{folder}-{k}", arguments.envs // 2, arguments.batch // 2, arguments, [])) for k in range(2)]
    assert [half.wait() for half in halves] == [0, 0]
    return sum(speed(f"{folder}-{k}")[0] for k in range(2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=50)
    parser.add_argument("--envs", type=int, default=32)
    parser.add_argument("--batch", type=int, default=2560)
    parser.add_argument("--config", default=ROOT / "configs/tag_continuous.yaml")
    parser.add_argument("settings", nargs="*")
    arguments = parser.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for k in range(arguments.pairs):
            order = [together, apart] if k % 2 == 0 else [apart, together]
            results = {side: side(f"{folder}/{k}-{side.__name__}", arguments) for side in order}
            (joint, share, iterations), single = results[together], results[apart]
            ratios.append(joint / single)
            print(f"together {joint:.0f} steps/s ({iterations} iterations, {100 * share:.1f} % in collectives), apart {single:.0f}, "
                  f"ratio {joint / single:.3f}", flush=True)
    print(f"ratio: median {statistics.median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f}")


if __name__ == "__main__":
    main()
