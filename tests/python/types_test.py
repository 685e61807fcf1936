"""types_test.py: a type checker finds the faults of a program that uses wdtrain, and no other ones."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(os.environ["WD_SOURCE_DIR"])
GOOD = """
import numpy
import wdtrain

def on_log(row: dict[str, float]) -> bool:
    return row["iteration"] < 10

run = wdtrain.train("cartpole", total_steps=1000, num_envs=8, device="cpu", on_log=on_log, policy={"shared": {"lr": 1e-3}})
print(run.folder.name, run.metrics()["shared/recent_return"], wdtrain.evaluate(run, episodes=3, greedy=True)["returns"])
print([each.folder for each in wdtrain.train("cartpole", seeds=range(1, 4), jobs=2, total_steps=1000)])
policy = run.policy("shared")
env = wdtrain.make("cartpole", seed=1)
observation, info = env.reset()
env.step(policy.act(observation))
batch = wdtrain.make("cartpole", num_envs=8, device="cpu", episode_length=9)
batch.actions[:] = policy.act(batch.reset()[0])[:, 0]
weights: dict[str, numpy.ndarray] = run.weights()
for other in wdtrain.runs("runs"):
    print(other.status, other.play(out="episode.gif").name)
"""
BAD = """
import wdtrain
wdtrain.train("cartpole", total_steps="many")
run = wdtrain.train("cartpole")
print(run.polcy)
wdtrain.make("cartpole", num_envs="8")
wdtrain.evaluate(run, episodes="all")
"""


def test_mypy_finds_the_faults(tmp_path):
    (tmp_path / "good.py").write_text(GOOD)
    (tmp_path / "bad.py").write_text(BAD)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", tmp_path / "cache", "good.py", "bad.py"]
    done = subprocess.run(command, cwd=tmp_path, env=os.environ | {"MYPYPATH": str(ROOT / "python")}, capture_output=True, text=True)
    assert re.findall(r"^(\w+\.py:\d+): error", done.stdout, re.MULTILINE) == ["bad.py:3", "bad.py:5", "bad.py:6", "bad.py:7"], done.stdout + done.stderr


def test_the_package_says_that_it_is_typed():
    assert (ROOT / "python/wdtrain/py.typed").exists() and "py.typed" in (ROOT / "python/pyproject.toml").read_text()
