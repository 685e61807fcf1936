"""Scaling curves from `wdtrain bench --sweep`: replicas from 1 to the memory limit, agents from 10 to 2,000
and rollouts of 10 to 200 steps, with the environment alone and with training. Each curve is a
part of one JSON file; curves that are not requested remain in that file.

    python3 tools/bench/curves.py [--device cpu|cuda] [--seconds 1] [--memory_gb 2] [--out
    docs/benchmarks/curves]
                                  [CURVE ...]

On the CPU all curves take about ten minutes, and a single curve takes less than two.
"""

import argparse
import datetime
import json
import pathlib
import platform
import shlex
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
WDTRAIN = ROOT / "build/wdtrain"
BOTH = ["--sweep", "mode=env,train"]
NEAREST = ["--set", "env.use_full_observation=false", "--set", "trainer.observations=rows"]

# The swept and the fixed settings. A GPU has room for more.
CURVES = {
    "cpu": {
        "replicas_cartpole": ["--env", "cartpole", "--rollout_steps", "32", "--sweep", "num_envs=1..16384", *BOTH],
        "replicas_tag_continuous": ["--env", "tag_continuous", "--rollout_steps", "20", "--sweep", "num_envs=1..512", *BOTH],
        "agents_tag_continuous": ["--env", "tag_continuous", "--num_envs", "8", "--rollout_steps", "20", *NEAREST, "--sweep",
                                  "num_runners=5,15,35,75,155,315,635,1275,1995", *BOTH],
        "steps_cartpole": ["--env", "cartpole", "--num_envs", "256", "--sweep", "rollout_steps=10..200", *BOTH],
        "steps_tag_continuous": ["--env", "tag_continuous", "--num_envs", "16", "--sweep", "rollout_steps=10..200", *BOTH],
    },
    "cuda": {
        "replicas_cartpole": ["--env", "cartpole", "--rollout_steps", "32", "--sweep", "num_envs=64..1048576", *BOTH],
        "replicas_tag_continuous": ["--env", "tag_continuous", "--rollout_steps", "20", "--sweep", "num_envs=16..16384", *BOTH],
        "agents_tag_continuous": ["--env", "tag_continuous", "--num_envs", "512", "--rollout_steps", "20", *NEAREST, "--sweep",
                                  "num_runners=5,15,35,75,155,315,635,1275,1995", *BOTH],
        "steps_cartpole": ["--env", "cartpole", "--num_envs", "16384", "--sweep", "rollout_steps=10..200", *BOTH],
        "steps_tag_continuous": ["--env", "tag_continuous", "--num_envs", "512", "--sweep", "rollout_steps=10..200", *BOTH],
    },
}


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def commit():
    done = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty", "--abbrev=7"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--seconds", default="1", help="of each measurement")
    parser.add_argument("--memory_gb", default="2", help="the limit on a CPU")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/benchmarks/curves")
    parser.add_argument("curves", nargs="*", metavar="CURVE", help="all, or some of: " + ", ".join(CURVES["cpu"]))
    arguments = parser.parse_args()
    curves = CURVES[arguments.device]
    unknown = set(arguments.curves) - set(curves)
    if unknown:
        parser.error(f"no such curve: {', '.join(sorted(unknown))}")

    measured = commit()  # read the commit before a file changes the tree
    arguments.out.mkdir(parents=True, exist_ok=True)
    file = arguments.out / f"{arguments.device}.json"
    found = json.loads(file.read_text()) if file.exists() else {}
    for name in arguments.curves or curves:
        answer = arguments.out / "curve.json"
        command = [WDTRAIN, "bench", "--device", arguments.device, "--seconds", arguments.seconds, *curves[name]]
        if arguments.device == "cpu":
            command += ["--memory_gb", arguments.memory_gb]
        shown = shlex.join(str(part) for part in command).replace(f"{ROOT}/", "")
        print(shown, flush=True)
        subprocess.run([*command, "--json", answer], check=True)
        found[name] = {"date": datetime.date.today().isoformat(), "commit": measured, "machine": processor(), "command": shown,
                       **json.loads(answer.read_text())}
        answer.unlink()
        file.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
