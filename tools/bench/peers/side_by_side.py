"""Shared by all comparisons here: running our program, alternating it with a peer, and printing the result
object."""

import argparse
import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
WDTRAIN = pathlib.Path(os.environ.get("WDTRAIN", ROOT / "build/wdtrain"))
PRECISIONS = {"fp32": "highest", "tf32": "tensorfloat32"}  # ours, and jax's names for them


def peers_python():
    """The Python in which setup.sh installed the peers, or the one that runs this script."""
    installed = ROOT / ".venv-peers/bin/python"
    return installed if installed.exists() else pathlib.Path(sys.executable)


class Unavailable(Exception):
    """A comparison that cannot be made here, with the reason."""


def parser(description, seconds=10.0):
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--pairs", type=int, default=5, help="windows of each side; they alternate")
    options.add_argument("--seconds", type=float, default=seconds, help="least length of a window")
    options.add_argument("--device", choices=["cpu", "gpu"], default="cpu", help="of both sides")
    options.add_argument("--only", help="make only the comparisons whose name holds this")
    return options


def shown(command):
    """A command as typed in the repository's folder."""
    return shlex.join(str(part) for part in command).replace(f"{ROOT}/", "")


class Ours:
    """Our program: lists its environments, runs benchmarks and training, and stores the last command."""

    # Measured by the first benchmark. Later benchmarks reuse it, as a sweep does, which saves two seconds
    # each.
    ceilings = None

    def __init__(self, device):
        self.device = {"cpu": "cpu", "gpu": "cuda"}[device]
        if not WDTRAIN.exists():
            raise Unavailable(f"{shown([WDTRAIN])} has not been built")

    def need(self, environment):
        names = [entry["name"] for entry in json.loads(self.run("envs", "--json"))]
        if environment not in names:
            raise Unavailable(f"{shown([WDTRAIN])} does not know the environment '{environment}': it is older than the source")

    def run(self, *arguments, environment=None):
        self.command = [WDTRAIN, *arguments]
        done = subprocess.run(list(map(str, self.command)), capture_output=True, text=True, cwd=ROOT, env=os.environ | (environment or {}))
        if done.returncode != 0:
            raise RuntimeError(f"{shown(self.command)} ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
        return done.stdout

    def bench(self, mode, environment, seconds, num_envs=None, batch=None, settings=(), rollout_steps=None):
        """Environment steps per second; mode is env or train."""
        arguments = ["--env", environment, "--mode", mode, "--seconds", seconds, "--device", self.device, "--json"]
        if num_envs is not None:
            arguments += ["--num_envs", num_envs]
        if batch is not None:
            arguments += ["--train_batch_size", batch]
        if rollout_steps is not None:
            arguments += ["--rollout_steps", rollout_steps]
        for setting in settings:
            arguments += ["--set", setting]
        known = {"WD_BENCH_SETTING": json.dumps({"settings": {}, "ceilings": Ours.ceilings})} if Ours.ceilings else {}
        result = json.loads(self.run("bench", *arguments, environment=known))
        Ours.ceilings = result["ceilings"]
        return result["env_steps_per_s"]

    def train(self, *arguments):
        """Wall time [s] of a whole training process, and its summary."""
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            self.run(*arguments, "--device", self.device, "--quiet", "--run_dir", f"{folder}/run")
            seconds = time.perf_counter() - start
            summary = json.loads((pathlib.Path(folder) / "run/summary.json").read_text())
        self.command = self.command[:-2]  # without the temporary folder
        return seconds, summary


def alternate(pairs, peer, ours):
    """Values of both sides, measured alternately: peer, ours, ours, peer, peer, ours, ..."""
    values = {"peer": [], "ours": []}
    for k in range(pairs):
        sides = [("peer", peer), ("ours", ours)]
        for side, measure in sides if k % 2 == 0 else reversed(sides):
            values[side].append(measure())
    return values["peer"], values["ours"]


def comparison(options, peer, ours, program, unit="env_steps_per_s", **facts):
    """One comparison as an object. A ratio above 1 means that ours is faster, whatever the unit."""
    theirs, mine = alternate(options.pairs, peer, ours)
    ratios = [a / b if unit == "seconds" else b / a for a, b in zip(theirs, mine)]
    return {"unit": unit, **facts,
            "peer": {"median": statistics.median(theirs), "values": theirs},
            "ours": {"median": statistics.median(mine), "values": mine, "command": shown(program.command)},
            "ratio": {"median": statistics.median(ratios), "least": min(ratios), "most": max(ratios), "values": ratios}}


def processor():
    """Name, family, model and vector instructions of the processor, as Linux reports them, and which vectors ours
    uses, if `wdtrain doctor` says so."""
    fields = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())  # of the first core
    flags = fields.get("flags", "").split()
    return {"processor": fields.get("model name", platform.processor()), "family": fields.get("cpu family"), "model": fields.get("model"),
            "vector_flags": [flag for flag in ("avx2", "avx512f", "avx512_bf16") if flag in flags], "vectors_of_ours": vectors_of_ours()}


def vectors_of_ours():
    if not WDTRAIN.exists():
        return None
    said = subprocess.run([WDTRAIN, "doctor", "--quick"], capture_output=True, text=True, cwd=ROOT).stdout
    found = re.search(r"\S+-bit vectors.*\S", said)
    return found[0] if found else None


def gpu():
    try:
        return subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def commit():
    """What was built: WD_COMMIT says it where there is no git, or no repository."""
    if os.environ.get("WD_COMMIT"):
        return os.environ["WD_COMMIT"]

    def git(*words):
        return subprocess.run(["git", *words], capture_output=True, text=True, cwd=ROOT).stdout.strip()
    try:
        head = git("rev-parse", "--short", "HEAD")
    except OSError:
        head = ""
    if not head:
        return "unknown"
    return head + (" with changes" if git("status", "--porcelain", "--untracked-files=no") else "")


def versions(*packages):
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = None
    return found


def report(options, name, description, packages, comparisons):
    """Prints one JSON object. `comparisons` maps names to functions without arguments, which return an
    object or raise Unavailable."""
    results, skipped = {}, {}
    for key, make in comparisons.items():
        if options.only and options.only not in key:
            continue
        try:
            print(f"{name}: {key}", file=sys.stderr, flush=True)
            results[key] = make()
        # A failing comparison does not end the others.
        except (Unavailable, ImportError, RuntimeError) as why:
            skipped[key] = str(why) if not isinstance(why, RuntimeError) else f"failed: {why}"
            print(f"{name}: {key}: not run: {why}", file=sys.stderr, flush=True)
    cores = len(os.sched_getaffinity(0))
    json.dump({"peer": name, "what": description, "date": datetime.date.today().isoformat(), "commit": commit(),
               "machine": {**processor(), "cores": cores, "gpu": gpu()}, "device": options.device,
               "threads": f"both sides may use all {cores} cores, each by its own default; only the side that is measured runs",
               "versions": versions(*packages), "command": shown([peers_python(), *sys.argv]), "pairs": options.pairs,
               "comparisons": results, "not_run": skipped}, sys.stdout)
    print(flush=True)


def jax_for(device, precision="fp32"):
    """Imports jax on the device that both sides use. Products of float32 are computed in `precision`, as ours are;
    on a GPU jax would use TF32 by default, and would take most of the memory."""
    os.environ.setdefault("JAX_PLATFORMS", {"cpu": "cpu", "gpu": "cuda"}[device])
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    jax.config.update("jax_default_matmul_precision", PRECISIONS[precision])
    try:
        jax.devices()
    # AssertionError if jax has no plugin for the device.
    except (RuntimeError, AssertionError) as why:
        raise Unavailable(f"jax sees no {device}: {str(why) or 'it has no plugin for one'}".splitlines()[0]) from why
    return jax


def timed(jax, advance, carry, seconds, steps):
    """Steps per second of `carry = advance(carry)`, which makes `steps` steps, measured for at least
    `seconds`. Waits for the device at both ends. Call it once before, because the first call compiles."""
    jax.block_until_ready(carry)
    rounds, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds or rounds == 0:
        carry = advance(carry)
        jax.block_until_ready(carry)
        rounds += 1
    return carry, rounds * steps / (time.perf_counter() - start)


class JaxLoop:
    """A jitted `carry -> carry` that is measured repeatedly; on first use it compiles and runs once."""

    def __init__(self, jax, advance, carry, steps):
        self.jax, self.advance, self.carry, self.steps = jax, jax.jit(advance, donate_argnums=0), carry, steps
        self.warm = False

    def speed(self, seconds):
        if not self.warm:
            self.carry, _ = timed(self.jax, self.advance, self.carry, 0.0, self.steps)
            self.carry, _ = timed(self.jax, self.advance, self.carry, 0.1 * seconds, self.steps)
            self.warm = True
        self.carry, speed = timed(self.jax, self.advance, self.carry, seconds, self.steps)
        return speed

    def serve(self, first):
        """Compiles, prints `first`, and then for each number of seconds that it reads the speed of such a window."""
        self.speed(0.0)
        print(first, flush=True)
        for line in sys.stdin:
            print(self.speed(float(line)), flush=True)


class Served:
    """A peer in a process of its own, which measures only when asked: it prints a line when it is ready, and then the speed of a
    window for each number of seconds that it reads (JaxLoop.serve)."""

    def __init__(self, command, settings, **options):
        self.command = command
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=os.environ | settings, **options)

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{shown(self.command)} ended with {self.process.wait()}; its messages are above")
        return line

    def speed(self, seconds):
        print(seconds, file=self.process.stdin, flush=True)
        return float(self.answer())

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class TunedProcess(Served):
    """A tuned peer. Its replicas are divided between one host device per core, and it uses huge pages; XLA and glibc read both
    settings at their start."""

    def __init__(self, script, arguments, options, replicas):
        cores = len(os.sched_getaffinity(0)) if options.device == "cpu" else 1
        if replicas % cores:
            raise Unavailable(f"{replicas} replicas cannot be divided between {cores} host devices: give --replicas a multiple of {cores}")
        flags = f"--xla_force_host_platform_device_count={cores} --xla_cpu_multi_thread_eigen=false"
        self.facts = {"XLA_FLAGS": flags, "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
        super().__init__([sys.executable, pathlib.Path(__file__).with_name(script), *arguments, "--replicas", replicas, "--device", options.device],
                         self.facts | {"XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip()})
        self.deviation = float(self.answer())  # after the check and the compilation
