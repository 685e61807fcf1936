"""train_test.py: trainings in environments in Python, and the commands that use their runs."""

import os
import pathlib
import re
import sys
import threading

import numpy as np
import pytest

ROOT = pathlib.Path(os.environ["WD_SOURCE_DIR"])
sys.path.insert(0, str(ROOT / "tests" / "cli"))
sys.path.insert(0, str(ROOT / "tests" / "outside"))
sys.path.insert(0, str(ROOT / "python"))

import outside_games  # noqa: E402
from program import output, wdtrain  # noqa: E402

import wdtrain as package  # noqa: E402

SHORT = ["--total_steps", 2048, "--num_envs", 8, "--train_batch_size", 512]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "outside_games.py").symlink_to(ROOT / "tests" / "outside" / "outside_games.py")


def trained(name, folder, *arguments):
    output("train", "--env", name, *SHORT, "--run_dir", folder, *arguments)
    return {policy: package.Run(folder).weights(policy) for policy in package.Run(folder).config["policy"]}


def same(a, b):
    return all(np.array_equal(a[policy][name], b[policy][name]) for policy in a for name in a[policy])


@pytest.mark.parametrize("name", ["gym:CartPole-v1", "pettingzoo:mpe2.simple_tag_v3", "outside_games:Masked", "gym:MountainCarContinuous-v0"])
def test_results_do_not_depend_on_processes(name):
    one = trained(name, "one", "-s", "env.processes=1")
    assert same(one, trained(name, "three", "-s", "env.processes=3"))
    assert not same(one, trained(name, "other", "--seed", 2))


def test_a_critic_reads_the_state():
    trained("pettingzoo:mpe2.simple_spread_v3", "run", "-s", "policy.agent.algorithm=MAPPO", "-s", "policy.agent.model={separate_value: true, critic_reads: [state]}")
    assert package.Run("run").summary["status"] == "finished"


def test_two_workers_train_together():
    output("train", "--env", "gym:CartPole-v1", *SHORT, "--num_workers", 2, "--run_dir", "two")
    summary = package.Run("two").summary
    assert summary["status"] == "finished" and summary["workers"] == 2


def test_illegal_choices_are_not_made():
    """The game pays 1 for a legal choice and -100 for another."""
    trained("outside_games:Masked", "run")
    assert package.Run("run").summary["mean_return"]["agent"] == 10


@pytest.mark.parametrize("algorithm", ["DQN", "SAC"])
def test_algorithms_with_a_memory_learn_here_too(algorithm):
    name, more = ("gym:CartPole-v1", []) if algorithm == "DQN" else ("gym:Pendulum-v1", [])
    output("train", "--env", name, *SHORT, "--run_dir", "run", "-s", f"policy.agent.algorithm={algorithm}", *more)
    assert package.Run("run").summary["status"] == "finished"


def test_other_commands_work_on_such_runs(monkeypatch):
    trained("gym:CartPole-v1", "run", "-s", "eval.every=1", "-s", "eval.episodes=4")
    assert "8 episodes of gym:CartPole-v1" in output("eval", "--run", "run", "--episodes", 8)
    output("play", "--run", "run")
    assert pathlib.Path("run/rollout.html").exists() and pathlib.Path("run/report.html").exists()
    output("record", "run", "--steps", 512, "--out", "recorded")
    output("train", "--env", "gym:CartPole-v1", "--run_dir", "cloned", "-s", "trainer.offline=recorded", "-s", "policy.agent.algorithm=BC", "--total_steps", 1024,
           "--train_batch_size", 512)
    assert "gym:CartPole-v1: 1 agent, an episode truncates after 500 steps" in output("envs", "gym:CartPole-v1")
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")
    pathlib.Path("bin").mkdir()
    pathlib.Path("bin/ffmpeg").symlink_to(imageio_ffmpeg.get_ffmpeg_exe())
    monkeypatch.setenv("PATH", f"{pathlib.Path.cwd()}/bin:{os.environ['PATH']}")
    output("play", "--run", "run", "--out", "episode.gif")
    assert pathlib.Path("episode.gif").read_bytes()[:10] == b"GIF89a" + (600).to_bytes(2, "little") + (400).to_bytes(2, "little")
    trained("outside_games:Crowd", "crowd")
    done = wdtrain("play", "--run", "crowd", "--out", "crowd.mp4")
    assert done.returncode == 2 and "render() returns nothing" in done.stderr


def test_a_function_is_trained_in(monkeypatch, tmp_path):
    length = 5

    def make():
        return outside_games.echo("box", length=length)

    run = package.train(make, total_steps=512, num_envs=8, train_batch_size=256, device="cpu", progress=False)
    assert re.fullmatch(r"pickle:/.*/runs/.environments/test_a_function_is_trained_in.make-\w{16}.pkl", run.config["name"])
    assert run.folder.parent.name == "test_a_function_is_trained_in.make" and run.summary["status"] == "finished"
    run, here = package.Run(run.folder.absolute()), pathlib.Path.cwd()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert package.evaluate(run, episodes=2)["episodes"] == 2  # in another folder
    assert package.train(resume=run, total_steps=1024, progress=False).summary["env_steps"] == 1024
    (here / "runs/.environments").rename(here / "runs/moved")
    with pytest.raises(package.UsageError, match="No such file or directory: '/.*/runs/.environments/test_a_function_is_trained_in.make"):
        package.evaluate(run, trust=True)
    (here / "runs/moved").rename(here / "runs/.environments")
    monkeypatch.chdir(here)
    named = package.train(outside_games.seeded, total_steps=512, num_envs=8, train_batch_size=256, device="cpu", progress=False)
    assert named.config["name"] == "outside_games:seeded"


def test_what_cannot_be_pickled_is_refused():
    lock = threading.Lock()
    with pytest.raises(package.UsageError, match="cannot be pickled"):
        package.train(lambda: lock)


def test_documentation_runs():
    text = (ROOT / "docs/python.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", text[text.index("## From Stable"):text.index("## Train\n")], re.DOTALL)
    known = {"__name__": "__main__"}
    exec(block, known)
    assert known["run"].summary["status"] == "finished" and set(known["run"].config["policy"]) == {"agent"}
