"""Run folders written by hand, and what a report contains."""

import base64
import json
import re
import zlib

CONFIG = """name: "cartpole"
trainer:
  total_steps: 100000
  seed: {seed}
  max_seconds: 0
  threads: {threads}
  stop_return: {stop_return}
policy:
  shared:
    roles: ["cart"]
    algorithm: PPO
    lr: {lr}
    model:
      fc_dims: {fc_dims}
play:
  every: {every}
saving:
  run_dir: "{folder}"
"""


SETTINGS = {"seed": 1, "lr": 0.001, "threads": 0, "stop_return": "none", "fc_dims": "[64, 64]", "every": 0}


def search():
    """autoscale.json of a search with three probes; the second is chosen."""
    def probe(replicas, steps):
        return {"num_envs": replicas, "rollout_steps": steps, "train_batch_size": replicas * steps}

    def one(stage, setting, outcome, speed, memory, detail=""):
        return {"stage": stage, **setting, "outcome": outcome, "bytes": memory, "env_steps_per_s": speed, "seconds": 1.0, "detail": detail,
                "ratios": [], "predicted_bytes": 0, "beside": None}

    return {"version": 3, "env": "cartpole", "device": "cpu", "num_workers": 1, "objective": "speed",
            "limits": {"memory_bytes": None, "max_envs": 100, "max_batch": 10000, "min_batch": 1, "max_seconds": 0.0}, "total_steps": 1000,
            "status": "chosen", "reason": "memory is full", "at_max_batch": False, "start": probe(32, 16),
            "chosen": {**probe(64, 16), "env_steps_per_s": 2000.0, "bytes": 2**28, "flags": "--set trainer.num_envs=64"},
            "memory": {"fixed_bytes": 0.0, "bytes_per_replica": -1.5, "bytes_per_replica_step": 1.0},
            "tries": [one("replicas", probe(128, 16), "out_of_memory", 0.0, 0, "<b>5 GB</b>"), one("replicas", probe(64, 16), "fits", 2000.0, 2**28),
                      one("replicas", probe(32, 16), "fits", 1500.0, 2**27)]}


def make_run(folder, rows, status="finished", settings={}, seed=1, lr=0.001, **summary):
    """`settings`: values of CONFIG. `rows`: lists of metrics by name; iteration, env_steps (100 per iteration) and time are added."""
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(CONFIG.format(**{**SETTINGS, "seed": seed, "lr": lr, **settings}, folder=folder))
    lines = []
    count = max(len(values) for values in rows.values())
    for i in range(count):
        row = {"iteration": i + 1, "env_steps": 100 * (i + 1), "agent_steps": 100 * (i + 1)}
        row.update({name: values[i] for name, values in rows.items() if i < len(values)})
        row["time/wall_s"] = 0.5 * (i + 1)
        lines.append(json.dumps(row, separators=(",", ":")) + "\n")
    (folder / "metrics.jsonl").write_text("".join(lines))
    last = rows.get("shared/recent_return", [None])[-1]
    content = {"status": status, "env": "cartpole", "device": "cpu", "seed": seed, "iterations": count, "env_steps": 100 * count,
               "wall_s": 0.5 * count, "env_steps_per_s": 200.0, "peak_memory_bytes": 2**27, "mean_return": {"shared": last},
               "stop_reason": "total_steps", **summary}
    (folder / "summary.json").write_text(json.dumps(content))
    return folder


def content(page):
    packed = re.search(r'id="report">([^<]*)</script>', page.read_text())[1]
    return json.loads(zlib.decompress(base64.b64decode(packed)))


def metric(report, name):
    (found,) = [each for each in report["metrics"] if each["name"] == name]
    return found


def cumulated(differences):
    total, sums = 0, []
    for difference in differences:
        total += difference
        sums.append(total)
    return sums


def points(curve):
    """[(steps, value)] of a curve of the page."""
    return list(zip(cumulated(curve["steps"]), curve["values"]))
