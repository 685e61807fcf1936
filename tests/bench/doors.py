"""Compares environments in Python with those in the program, and with EnvPool, in pairs.

    .venv/bin/python tests/bench/doors.py [--pairs 9] [--seconds 1] [--only TEXT] [--json FILE]

Both sides use all processors, and write rows of observations, not tables. Python's side sends actions that were drawn before, in turn; the program draws them. EnvPool wants
packages of other versions: `python3 -m venv .venv-envpool && .venv-envpool/bin/pip install envpool`. Without it, its rows are left out.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(pathlib.Path(__file__).parent / "peers"))
from gate import KNOWN, interval  # noqa: E402
from side_by_side import alternate  # noqa: E402

# Behind either side, which has `env`, 16 `actions` and how many `envs` there are.
PLAY = """
def play(seconds):
    begin, steps = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        for one in actions:
            env.step(one)
        steps += 16
    return steps * envs / (time.perf_counter() - begin)
play(0.3)
print(play(seconds))
"""
DOOR = """
import sys, time, torch, wdtrain
name, envs, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
env = wdtrain.make(name, envs, **eval(sys.argv[4]))
env.reset()
if hasattr(env, "roles"):
    actions = [{key: torch.stack([torch.randint(0, n, role.action.shape[:2]) for n in role.heads], -1) for key, role in env.roles.items()} for _ in range(16)]
else:
    actions = [torch.randint(0, env.single_action_space.n, (envs,)) for _ in range(16)]
    if env.game.arrays == "numpy":
        actions = [one.numpy() for one in actions]
"""
ENVPOOL = """
import sys, time, numpy, envpool
envs, seconds = int(sys.argv[2]), float(sys.argv[3])
env = envpool.make_gymnasium("CartPole-v1", num_envs=envs, num_threads=int(sys.argv[4]))
env.reset()
actions = [numpy.random.randint(0, 2, envs) for _ in range(16)]
"""
NUMPY = "{'arrays': 'numpy'}"
POOL_PYTHON = ROOT / ".venv-envpool/bin/python"


def python(code, *arguments, interpreter=sys.executable):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "build/python")}
    done = subprocess.run([interpreter, "-c", code + PLAY, *map(str, arguments)], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return float(done.stdout)


def program(name, envs, seconds, *settings):
    command = [ROOT / "build/wdtrain", "bench", "--env", name, "--mode", "env", "--num_envs", str(envs), "--device", "cpu", "--seconds", str(seconds),
               "--json", "-", *settings]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **KNOWN})
    return json.loads(done.stdout)["env_steps_per_s"]


def envpool(envs, seconds):
    return max(python(ENVPOOL, "cartpole", envs, seconds, threads, interpreter=POOL_PYTHON) for threads in (1, os.cpu_count()))


CASES = {
    "tag_continuous, 1,024 replicas, against bench": lambda s: (lambda: program("tag_continuous", 1024, s, "--set", "trainer.observations=rows"), lambda: python(DOOR, "tag_continuous", 1024, s, "{}")),
    "cartpole, 65,536 replicas, against bench": lambda s: (lambda: program("cartpole", 65536, s), lambda: python(DOOR, "cartpole", 65536, s, "{}")),
    "cartpole, 1,024 replicas, against bench": lambda s: (lambda: program("cartpole", 1024, s), lambda: python(DOOR, "cartpole", 1024, s, NUMPY)),
    "cartpole, 1,024 replicas, against EnvPool": lambda s: (lambda: envpool(1024, s), lambda: python(DOOR, "cartpole", 1024, s, NUMPY)),
    "cartpole, 64 replicas, against EnvPool": lambda s: (lambda: envpool(64, s), lambda: python(DOOR, "cartpole", 64, s, NUMPY)),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    results = {}
    print(f"{'case':48}{'other [env/s]':>15}{'Python [env/s]':>16}  ratio (95 % interval)")
    for name, sides in CASES.items():
        if options.only not in name:
            continue
        if "EnvPool" in name and not POOL_PYTHON.exists():
            print(f"{name:48}left out: there is no envpool")
            continue
        other, ours = alternate(options.pairs, *sides(options.seconds))
        ratios = [b / a for a, b in zip(other, ours, strict=True)]
        least, most = interval(ratios)
        results[name] = {"other": other, "python": ours, "ratio": statistics.median(ratios), "interval": [least, most]}
        print(f"{name:48}{statistics.median(other):15,.0f}{statistics.median(ours):16,.0f}  {statistics.median(ratios):.3f} ({least:.3f} to {most:.3f})",
              flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
