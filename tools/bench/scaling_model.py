"""A model, not a measurement: how N workers would scale, given the iterations of one worker.

An iteration of N workers takes as long as the longest of N iterations drawn from those measured with one
worker, plus the all-reduces of its optimizer steps. Each all-reduce takes 2 (N - 1) latencies, plus 2 (N - 1)
/ N of the gradient's bytes at the link's bandwidth (a ring).

    python3 tools/bench/scaling_model.py RUN --bytes 2000000 --steps 32 --latency 20e-6 --bandwidth 300e9

RUN is a run folder of one worker with saving.metrics_log_freq=1. --mean scales its iterations to that
mean: it combines the spread of an available machine with the speed of one that is not available.
"""

import argparse
import json
import pathlib
import random
import statistics


def iteration_seconds(run):
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    walls = [row["time/wall_s"] for row in rows]
    return [b - a for a, b in zip(walls, walls[1:])][1:]  # the first is the warm-up


def modelled(seconds, workers, arguments, draws=20_000):
    source = random.Random(workers)
    longest = statistics.fmean(max(source.choice(seconds) for _ in range(workers)) for _ in range(draws))
    ring = 2 * (workers - 1) * arguments.latency + 2 * (workers - 1) / workers * arguments.bytes / arguments.bandwidth
    return longest, arguments.steps * ring


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("--bytes", type=float, required=True, help="of the gradients that an optimizer step of all policies sums")
    parser.add_argument("--steps", type=int, required=True, help="optimizer steps of an iteration")
    parser.add_argument("--latency", type=float, required=True, help="of one message [s]")
    parser.add_argument("--bandwidth", type=float, required=True, help="bytes a second")
    parser.add_argument("--mean", type=float, help="of an iteration [s]")
    arguments = parser.parse_args()
    seconds = iteration_seconds(arguments.run)
    if arguments.mean:
        seconds = [s * arguments.mean / statistics.fmean(seconds) for s in seconds]
    alone = statistics.fmean(seconds)
    print(f"{len(seconds)} iterations of {alone:.4f} s, deviation {statistics.stdev(seconds):.4f} s")
    print("| workers | longest of N [s] | all-reduces [s] | efficiency |\n|---|---|---|---|")
    for workers in (1, 2, 4, 8, 16, 32, 64):
        longest, reducing = modelled(seconds, workers, arguments)
        print(f"| {workers} | {longest:.4f} | {reducing:.4f} | {100 * alone / (longest + reducing):.1f} % |")


if __name__ == "__main__":
    main()
