"""Runs all peers one after the other, prints a table, and writes docs/benchmarks/DATE-peers-DEVICE.json.

    tools/bench/peers/setup.sh
    .venv-peers/bin/python tools/bench/peers/run.py --cpu [--pairs 5] [--seconds 10] [--only TEXT] [--precision tf32] [--out FILE]

Without .venv-peers, peers run with the Python that runs this script, which may have some of them.
Does not build anything: uses the existing build/wdtrain. Peers that cannot run here are listed in the
table and in the file, with the reason. Nothing else should be running, because both sides use all cores.
"""

import argparse
import datetime
import json
import pathlib
import subprocess
import sys

from side_by_side import PRECISIONS, ROOT, peers_python, shown

HERE = pathlib.Path(__file__).parent
SCRIPTS = ["warpdrive_python", "tag_continuous_jax", "simple_tag_jaxmarl", "foraging", "cartpole", "rltools_pendulum", "pendulum", "memory", "warpdrive_gpu"]


def run(script, arguments):
    command = [peers_python(), HERE / f"{script}.py", "--pairs", arguments.pairs, "--seconds", arguments.seconds, "--device", arguments.device]
    if arguments.only:
        command += ["--only", arguments.only]
    if arguments.precision != "fp32":
        command += ["--precision", arguments.precision]
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, cwd=ROOT)
    if done.returncode != 0:
        return {"peer": script, "failed": f"{shown(command)} ended with {done.returncode}; its messages are above", "comparisons": {}, "not_run": {}}
    return json.loads(done.stdout.splitlines()[-1])


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def row(peer, name, result):
    ratio, unit = result["ratio"], {"env_steps_per_s": "env/s", "seconds": "s"}[result["unit"]]
    cells = [peer, name, *(f"{number(result[side]['median'])} {unit}" for side in ("peer", "ours")),
             f"{number(ratio['median'])} ({number(ratio['least'])} to {number(ratio['most'])})"]
    return cells[:-1] + [cells[-1] + (f"; {result['note']}" if "note" in result else "")]


def table(reports):
    rows = [["peer", "comparison", "peer, median", "ours, median", "ours faster by (range of pairs)"]]
    for report in reports:
        rows += [row(report["peer"], name, result) for name, result in report["comparisons"].items()]
        rows += [[report["peer"], name, "not run: " + why] for name, why in report["not_run"].items()]
        if "failed" in report:
            rows.append([report["peer"], "", "failed: " + report["failed"]])
    widths = [max(len(r[k]) for r in rows if len(r) == 5) for k in range(4)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(r, widths + [0] * 5)).rstrip() for r in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    device = parser.add_mutually_exclusive_group(required=True)
    device.add_argument("--cpu", action="store_const", const="cpu", dest="device")
    device.add_argument("--gpu", action="store_const", const="gpu", dest="device")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--scripts", nargs="+", choices=SCRIPTS, default=SCRIPTS)
    parser.add_argument("--only", help="make only the comparisons whose name holds this")
    parser.add_argument("--precision", choices=PRECISIONS, default="fp32", help="tf32: of scripts that know it, on a GPU")
    parser.add_argument("--setup", action="store_true", help="install the peers first")
    parser.add_argument("--out", type=pathlib.Path, help="in place of docs/benchmarks/DATE-peers-DEVICE.json")
    arguments = parser.parse_args()
    if arguments.setup:
        subprocess.run([HERE / "setup.sh", {"cpu": "cpu", "gpu": "cuda"}[arguments.device]], check=True)
    date = datetime.date.today().isoformat()
    out = arguments.out or ROOT / f"docs/benchmarks/{date}-peers-{arguments.device}.json"
    reports = []
    for script in arguments.scripts:  # save after each script, so that results survive if the time runs out
        reports.append(run(script, arguments))
        out.write_text(json.dumps({"date": date, "command": shown([peers_python(), *sys.argv]), "reports": reports}, indent=2) + "\n")
    print(table(reports))
    print(f"written to {shown([out])}")
    broken = any("failed" in report or any(why.startswith("failed") for why in report["not_run"].values()) for report in reports)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
