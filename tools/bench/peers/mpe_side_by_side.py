"""Trains simple_spread with a recipe of JaxMARL (mpe_jaxmarl.py) and with ours; prints one JSON object to stdout.

    .venv-peers/bin/python tools/bench/peers/mpe_side_by_side.py [--algorithm ippo|vdn|qmix] [--config
    configs/simple_spread_qmix.yaml] [--set SECTION.KEY=VALUE] [--pairs 1] [--steps 0] [--seconds 0] [--seed 1]
    [--threads 2] [--goal -11] [--out FILE]

Both sides run on the same cores, one after the other: JaxMARL and ours, then ours and JaxMARL, and so on. A pair has
one run of each with the same seed, which is one greater in each pair. Both stop after --steps or --seconds of training
only; neither knows the goal. JaxMARL's schedules end after its 10 million steps, ours as the configuration says.

"seconds_to_goal": wall time of training until the return per agent first reaches the goal; null if it never does.
JaxMARL's is without compilation, which is given apart: "seconds_to_goal_with_compilation" adds it. Ours is the clock
of the run (time/wall_s), which includes creating the networks.
"return_after": return per agent in the last line up to a number of steps. "processor_s" is that of all threads of the
whole process, with start and compilation.

Returns of both sides are in mpe2's unit (mean over the agents, 25 steps; random play about -26) and are those of
training, with each side's exploration, over all episodes since the line before (ours: POLICY/mean_return). Lines are
about 50,000 steps apart for JaxMARL, and saving.metrics_log_freq iterations for ours.
"""

import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from side_by_side import ROOT, WDTRAIN, commit, peers_python, processor, shown, versions

AFTER = [250_000, 500_000, 1_000_000, 2_000_000, 3_000_000, 5_000_000, 7_500_000, 10_000_000]


def timed_run(command):
    """What a program prints, and the processor time [s] of it and its threads."""
    before = os.times()
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=ROOT)
    after = os.times()
    if done.returncode != 0:
        raise RuntimeError(f"{shown(command)} ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
    return done.stdout, after.children_user + after.children_system - before.children_user - before.children_system


def result(options, command, lines, processor_s, compilation):
    """`lines` are (steps, seconds, return per agent)."""
    if not lines:
        raise RuntimeError(f"no episode ended in {shown(command)}")
    steps, seconds, returned = next((line for line in lines if line[2] >= options.goal), (None, None, None))
    after = {str(n): [line for line in lines if line[0] <= n][-1][2] for n in AFTER if lines[0][0] <= n <= lines[-1][0]}
    return {"seconds_to_goal": seconds, "env_steps_to_goal": steps, "seconds_to_goal_with_compilation": seconds and seconds + compilation,
            "compilation_s": compilation, "env_steps": lines[-1][0], "seconds": lines[-1][1], "env_steps_per_s": lines[-1][0] / lines[-1][1],
            "return": lines[-1][2], "best_return": max(line[2] for line in lines), "return_after": after, "processor_s": round(processor_s, 1),
            "command": shown(command)}


def peer(options, seed):
    command = [peers_python(), pathlib.Path(__file__).with_name("mpe_jaxmarl.py"), "--algorithm", options.algorithm, "--steps", options.steps,
               "--seconds", options.seconds, "--seed", seed, "--threads", options.threads, "--goal", options.goal]
    printed, processor_s = timed_run(command)
    rows = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    greedy = [row["greedy_return_per_agent"] for row in rows if "greedy_return_per_agent" in row]
    lines = [(row["env_steps"], row["seconds"], row["return_per_agent"]) for row in rows if "env_steps" in row]
    found = result(options, command, lines, processor_s, rows[0]["compilation_s"])
    return found | {"greedy_return": greedy[-1], "greedy_to_goal": rows[-1]["result"]["greedy_to_goal"]}


def ours(options, seed):
    with tempfile.TemporaryDirectory() as folder:
        command = [WDTRAIN, "--config", options.config, *(word for setting in options.set for word in ("--set", setting)), "--seed", seed,
                   "--threads", options.threads, "--device", "cpu", "--max_seconds", options.seconds, "--quiet"]
        command += ["--total_steps", options.steps] if options.steps else []
        _, processor_s = timed_run([*command, "--run_dir", f"{folder}/run"])
        rows = [json.loads(line) for line in (pathlib.Path(folder) / "run/metrics.jsonl").read_text().splitlines()]
    name = next(key for key in rows[0] if key.endswith("/mean_return"))
    lines = [(row["env_steps"], row["time/wall_s"], row[name]) for row in rows if row.get(name) is not None]
    return result(options, command, lines, processor_s, 0.0) | {"metric": name}


def ratio(pairs, field):
    """Of JaxMARL's seconds to ours, per pair; above 1, ours is faster. None for a pair in which a side did not get
    there."""
    found = [pair["peer"][field] / pair["ours"][field] if pair["peer"][field] and pair["ours"][field] else None for pair in pairs]
    reached = [value for value in found if value is not None]
    return {"values": found, "median": statistics.median(reached) if reached else None}


def number(value, digits=2):
    return "never" if value is None else f"{value:,.{digits}f}"


def table(pairs):
    rows = [["pair", "side", "s to the goal", "with compilation", "steps to the goal", "steps/s", "return at the end", "returns after steps"]]
    for k, pair in enumerate(pairs):
        for side in ("peer", "ours"):
            r = pair[side]
            after = ", ".join(f"{int(n) / 1e6:g} M: {value:.2f}" for n, value in r["return_after"].items())
            rows.append([str(k + 1), side, number(r["seconds_to_goal"], 1), number(r["seconds_to_goal_with_compilation"], 1), number(r["env_steps_to_goal"], 0),
                         number(r["env_steps_per_s"], 0), f"{r['return']:.2f} at {r['env_steps'] / 1e6:.2f} M", after])
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--algorithm", choices=["ippo", "vdn", "qmix"], default="qmix", help="JaxMARL's recipe")
    parser.add_argument("--config", type=pathlib.Path, default=pathlib.Path("configs/simple_spread_qmix.yaml"), help="ours")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="a setting of ours")
    parser.add_argument("--pairs", type=int, default=1)
    parser.add_argument("--steps", type=int, default=0, help="environment steps of each run; 0: JaxMARL's 10 million, and the configuration's")
    parser.add_argument("--seconds", type=float, default=0.0, help="most wall time of training of each run; 0: no limit")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--goal", type=float, default=-11.0, help="return per agent")
    parser.add_argument("--out", type=pathlib.Path, help="write the JSON object to this file too")
    options = parser.parse_args()
    if not WDTRAIN.exists():
        sys.exit(f"{shown([WDTRAIN])} has not been built")
    if not (ROOT / options.config).exists():
        sys.exit(f"there is no {options.config}: give --config")
    # Both sides inherit it.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:options.threads])
    peer_options = argparse.Namespace(**vars(options) | {"steps": options.steps or 10_000_000})
    pairs, loads = [], [os.getloadavg()[0]]
    for k in range(options.pairs):
        sides = [("peer", lambda: peer(peer_options, options.seed + k)), ("ours", lambda: ours(options, options.seed + k))]
        pair = {}
        for side, run in sides if k % 2 == 0 else reversed(sides):
            print(f"pair {k + 1} of {options.pairs}: {side}", file=sys.stderr, flush=True)
            pair[side] = run()
            loads.append(os.getloadavg()[0])
        pairs.append({"seed": options.seed + k, "first": "peer" if k % 2 == 0 else "ours", **pair})
    report = {"peer": "JaxMARL MPE_simple_spread_v3",
              "what": f"JaxMARL's {options.algorithm}, and ours with {options.config}: until {options.goal} per agent",
              "date": datetime.date.today().isoformat(), "commit": commit(), "machine": processor() | {"cores": len(os.sched_getaffinity(0))},
              "load_averages": loads, "threads": options.threads, "versions": versions("jaxmarl", "jax", "jaxlib", "optax"),
              "command": shown([peers_python(), *sys.argv]), "goal": options.goal, "unit": "seconds", "pairs": pairs,
              "ratio": ratio(pairs, "seconds_to_goal"), "ratio_with_compilation": ratio(pairs, "seconds_to_goal_with_compilation")}
    print(table(pairs), file=sys.stderr)
    without, included = ("-" if report[name]["median"] is None else number(report[name]["median"]) for name in ("ratio", "ratio_with_compilation"))
    print(f"JaxMARL's seconds to the goal are ours times {without}, with compilation {included} (median of pairs in which both reach it)", file=sys.stderr)
    text = json.dumps(report)
    print(text, flush=True)
    if options.out:
        options.out.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
