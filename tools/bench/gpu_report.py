"""Writes the results of gpu.sh as DATE-gpu.json and DATE-gpu.md: steps with their outcome, and figures with
machine, commit and command. DATE-gpu.log has the end of each step's output. DATE is that of the first step.

If the emulated GPU was used instead of a GPU, the files are called DATE-gpu-standin and say so in the first line.
"""

import argparse
import importlib.metadata
import json
import os
import pathlib
import platform
import subprocess

TITLES = ["step", "outcome", "seconds", "command", "last line"]


def said(*command):
    """The output of a command, or the error that prevents it."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"unknown: {error}"
    return done.stdout.strip() if done.returncode == 0 else f"unknown: {done.stderr.strip()[-200:]}"


def machine(device):
    memory = next(line for line in pathlib.Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    cpu = next((line.split(":")[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "")
    gpu = said("nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader") if device == "cuda" else None
    return {"gpu": gpu, "cpu": cpu, "cores": os.cpu_count(),
            "memory_gib": int(memory.split()[1]) // 2**20, "system": platform.platform()}


def read(path):
    """The JSON of a step, or None if the step left none that can be read."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def report(work, device, commit):
    steps = [dict(zip(TITLES, line.split("\t"))) for line in (work / "steps.tsv").read_text().splitlines()]
    for step in steps:
        step["seconds"] = int(step["seconds"])
    wanted = [step["step"].removeprefix("bench_") for step in steps if step["step"].startswith(("bench_", "sweep_"))]
    return {
        "date": (work / "date").read_text().strip(),
        "device": device if device == "cuda" else "emulated GPU standing in: no figure here is a GPU's",
        "machine": machine(device),
        "commit": commit,
        "nvcc": (said("nvcc", "--version").splitlines() or [""])[-1],
        "torch": importlib.metadata.version("torch"),
        "steps": steps,
        "bench": {name: read(work / f"bench_{name}.json") for name in wanted},
        "profiles": {path.stem.removeprefix("profile_"): read(path) for path in sorted(work.glob("profile_*.json"))},
        "learned": {path.stem.removeprefix("learn_"): read(path) for path in sorted(work.glob("learn_*.json"))},
        "kernels": {one["name"]: {"us": 1e-3 * one["real_time"] / 100, **{key: one[key] for key in ("bytes_per_second", "items_per_second") if key in one}}
                    for one in (read(work / "kernels.json") or {}).get("benchmarks", []) if "/cuda" in one["name"]},
        "peers": {path.stem.removeprefix("peers_"): read(path) for path in sorted(work.glob("peers_*.json"))},
    }


def table(titles, rows):
    return "\n".join(["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)] +
                     ["| " + " | ".join(str(cell).replace("|", "/") for cell in row) + " |" for row in rows])


def page(data):
    lines = [f"# {data['date']}, {data['machine']['gpu'] or 'emulated GPU standing in: no figure here is a GPU’s'}", "",
             f"Commit {data['commit']}, torch {data['torch']}, {data['machine']['cores']} cores, {data['machine']['system']}.", "",
             table(TITLES, [[step[title] for title in TITLES] for step in data["steps"]]), ""]
    rows = [[mode, f"{found['env_steps_per_s']:,.0f}", f"{found['agent_steps_per_s']:,.0f}"]
            for mode, found in data["bench"].items() if found and "env_steps_per_s" in found]
    for mode, found in data["bench"].items():
        for row in (found or {}).get("rows", []):
            setting = ", ".join(f"{key.split('.')[-1]} {value}" for key, value in row["settings"].items())
            result = row.get("result")
            cells = [f"{result[unit]:,.0f}" for unit in ("env_steps_per_s", "agent_steps_per_s")] if result else [row["status"], ""]
            rows.append([f"{mode}: {setting}", *cells])
    if data["kernels"]:
        lines += [table(["kernels_bench", "µs a call", "TB/s"], [[name, f"{one['us']:,.1f}", f"{one.get('bytes_per_second', 0) / 1e12:.2f}"]
                                                              for name, one in data["kernels"].items()]), ""]
    missing = [mode for mode, found in data["bench"].items() if not found]
    if rows:
        lines += [table(["wdtrain bench", "env/s", "agent/s"], rows), ""]
    if missing:
        lines += ["Not measured: " + ", ".join(missing) + ".", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder of steps.tsv and the steps' JSON")
    parser.add_argument("--device", choices=["cuda", "emulated"], required=True)
    parser.add_argument("--commit", default="unknown", help="what was built")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    data = report(arguments.work, arguments.device, arguments.commit)
    arguments.out.mkdir(parents=True, exist_ok=True)
    name = arguments.out / f"{data['date']}-gpu{'' if arguments.device == 'cuda' else '-standin'}"
    name.with_suffix(".json").write_text(json.dumps(data, indent=2) + "\n")
    logs = [(step, arguments.work / f"{step['step']}.log") for step in data["steps"]]
    name.with_suffix(".log").write_text("".join(f"=== {step['step']}: {step['outcome']}: {step['command']}\n{path.read_text(errors='replace')[-100_000:]}\n"
                                                for step, path in logs if path.exists()))
    name.with_suffix(".md").write_text(page(data))
    print(f"written to {name}.json and {name.name}.md")


if __name__ == "__main__":
    main()
