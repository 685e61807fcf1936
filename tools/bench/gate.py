"""Compares the speed of two builds of wdtrain in pairs; gate.sh makes the builds.

    python3 tools/bench/gate.py BASE_WDTRAIN NEW_WDTRAIN [--pairs 9] [--seconds 1] [--only TEXT] [--json FILE]
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "peers"))
from side_by_side import alternate  # noqa: E402

SIZE = ["--num_envs", "32", "--rollout_steps", "20"]
# A perceptron over all other agents, whose rows are long.
FULL = ["--config", str(pathlib.Path(__file__).resolve().parents[2] / "configs/tag_continuous_perceptron.yaml"), "--set",
        "trainer.observations=rows", *SIZE]
TABLE, BF16 = ["--set", "trainer.observations=table"], ["--set", "trainer.precision=bf16"]
GAMES = {"cartpole": ["--num_envs", "256", "--rollout_steps", "32"], "simple_tag": ["--num_envs", "512"],
         "tag_gridworld": ["--num_envs", "512"], "tag_continuous": FULL}
CASES = {f"{game}, {mode}": ["--env", game, "--mode", mode, *size] for game, size in GAMES.items() for mode in ("env", "act", "train")}
CASES |= {f"tag_continuous, {mode}, {name}": ["--env", "tag_continuous", "--mode", mode, *FULL, *more]
          for name, more in {"table": TABLE, "bf16": BF16, "table, bf16": [*TABLE, *BF16]}.items() for mode in ("env", "act", "train")}
CASES |= {f"tag_continuous, {mode}, entities": ["--env", "tag_continuous", "--mode", mode, *SIZE] for mode in ("act", "train")}
CASES["cartpole, train, bf16"] = [*CASES["cartpole, train"], *BF16]
SLOWER = 0.98


# Nothing here reads the ceilings of the machine. With any that are known, a benchmark does not measure them, which saves a second.
KNOWN = {"WD_BENCH_SETTING": json.dumps({"settings": {}, "ceilings": {"copy_GB_per_s": 1, "fp32_TFLOP_per_s": 1}})}


def speed(program, arguments, seconds):
    command = [program, "bench", *arguments, "--device", "cpu", "--seconds", str(seconds), "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **KNOWN})
    if done.returncode != 0:
        sys.exit(f"gate: {' '.join(map(str, command))} ended with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout)["env_steps_per_s"]


def interval(values):
    """The narrowest interval between two values, equally far from the ends, that covers the median with a probability of at least
    95 %, whatever the distribution is (the sign test's); the range, if there are fewer than six values."""
    ordered, n = sorted(values), len(values)
    drop = 0
    while 2 * sum(math.comb(n, k) for k in range(drop + 2)) / 2**n <= 0.05:
        drop += 1
    return ordered[drop], ordered[n - 1 - drop]


def compare(base, new, arguments, pairs, seconds):
    before, after = alternate(pairs, lambda: speed(base, arguments, seconds), lambda: speed(new, arguments, seconds))
    ratios = [b / a for a, b in zip(before, after)]
    return {"base": statistics.median(before), "new": statistics.median(after), "ratio": statistics.median(ratios),
            "interval": interval(ratios), "ratios": ratios}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    cases = {name: arguments for name, arguments in CASES.items() if options.only in name}
    if not cases:
        parser.error(f"no case contains '{options.only}'; the cases are: {'; '.join(CASES)}")
    base, new = options.base.absolute(), options.new.absolute()
    print(f"{'case':36}{'base [env/s]':>14}{'new [env/s]':>14}  ratio (95 % interval)")
    results, slower = {}, []
    for name, arguments in cases.items():
        results[name] = result = compare(base, new, arguments, options.pairs, options.seconds)
        least, most = result["interval"]
        is_slower = result["ratio"] < SLOWER and most < 1
        print(f"{name:36}{result['base']:14,.0f}{result['new']:14,.0f}  {result['ratio']:.3f} ({least:.3f} to {most:.3f})"
              + ("  slower" if is_slower else ""), flush=True)
        if is_slower:
            slower.append(name)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    sys.exit(f"slower: {'; '.join(slower)}" if slower else 0)


if __name__ == "__main__":
    main()
