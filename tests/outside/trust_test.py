"""A run of a stranger starts no environment in Python, whatever reads it; one's own runs ask for nothing."""

import json
import os
import pathlib
import pickle
import re
import shutil
import sys

import pytest

from cli.program import output, wdtrain

SMALL = ["--device", "cpu", "--num_envs", 4, "--train_batch_size", 64, "--total_steps", 256]
GAME = """
import os, gymnasium
with open(os.environ["STARTED"], "a") as file:
    file.write("started ")
def make(**arguments):
    return gymnasium.make("CartPole-v1", **arguments)
Wrap = gymnasium.Wrapper
"""
SOURCE = """
#include <cstdlib>
#include <fstream>
static const bool started = [] { return static_cast<bool>(std::ofstream(std::getenv("STARTED"), std::ios::app) << "started "); }();
"""
KINDS = ["function", "source", "pickle", "interpreter", "os:system"]


class Place:
    """A folder of games, a stranger's home and one's own, and whether a game was started."""

    def __init__(self, folder):
        self.folder, self.mark = folder, folder / "started"
        (folder / "strange_game.py").write_text(GAME)
        chase = pathlib.Path(os.environ["WD_SOURCE_DIR"]) / "examples" / "custom_env" / "chase.cu"
        (folder / "chase.cu").write_text(SOURCE + chase.read_text())
        python = folder / "python"
        python.write_text(f'#!/bin/sh\necho started >> "$STARTED"\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
        sys.path.insert(0, str(folder))
        os.environ["STARTED"] = os.devnull
        import strange_game  # noqa: PLC0415
        (folder / "game.pkl").write_bytes(pickle.dumps(strange_game.make))
        self.cartpole = folder / "cartpole"
        self.call("--env", "cartpole", "--run_dir", self.cartpole, *SMALL, good=True)

    def call(self, *arguments, home="own", good=False, **settings):
        variables = {**os.environ, "XDG_STATE_HOME": str(self.folder / home), "XDG_CACHE_HOME": str(self.folder / "cache"), "STARTED": str(self.mark), "PYTHONPATH": str(self.folder),
                     "WDTRAIN_PYTHON": sys.executable, **settings}
        done = wdtrain(*arguments, env={key: value for key, value in variables.items() if value is not None}, cwd=self.folder)
        assert not good or done.returncode == 0, done.stderr
        return done

    def started(self):
        before = self.mark.exists()
        self.mark.unlink(missing_ok=True)
        return before

    def train(self, kind, run, home):
        game = {"function": ["--env", "strange_game:make"], "source": ["--env", self.folder / "chase.cu"], "pickle": ["--env", f"pickle:{self.folder / 'game.pkl'}"],
                "interpreter": ["--env", "gym:CartPole-v1", "--set", f"env.python={self.folder / 'python'}"]}[kind]
        self.call(*game, "--run_dir", run, *SMALL, home=home, good=True)
        assert self.started()

    def strange(self, kind):
        run = self.folder / f"strange {kind.replace(':', '_')}"
        if run.exists():
            return run
        if kind != "os:system":
            self.train(kind, run, "stranger")
            return run
        shutil.copytree(self.cartpole, run, symlinks=True)
        for folder in (run, run / "checkpoints" / "latest"):
            (folder / "config.yaml").write_text(f'name: os:system\nenv: {{kwargs: {{command: "touch {self.mark}"}}}}\ntrainer: {{seed: 1}}\n')
        return run


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return Place(tmp_path_factory.mktemp("trust"))


def uses(run, cartpole, out):
    """By command: the ways in which it takes a run, a checkpoint or a configuration; None: it takes none."""
    folders, config = [run, run / "checkpoints" / "latest"], run / "config.yaml"
    played = [[*words] for folder in folders for words in ([folder], ["--run", folder], [cartpole, "--policy", f"shared={folder}"])]
    own = ["--env", "cartpole", "--run_dir", out, *SMALL]
    return {
        "train": [[*own, "--set", f"opponents.shared=[{one}]", *more] for one in folders for more in ([], ["--print_config"])]
                 + [["--resume", one, *more] for one in folders for more in ([], ["--print_config"], ["--allow_drift"], ["--num_workers", "2"])]
                 + [["--warm_start", run, "--config", config, "--run_dir", out]]
                 + [["--config", file, *more] for file in (config, run / "checkpoints" / "latest" / "config.yaml") for more in (["--print_config"], ["--auto_scale"])],
        "eval": [[*words, "--episodes", 1] for words in played] + [[run, "--compare"]],
        "play": [[*words, "-o", out.with_suffix(".html")] for words in played],
        "league": [[*words, "-o", out.with_suffix(".html")] for folder in folders for words in ([folder, "random"], ["random", folder])],
        "record": [[folder, "--out", out, "--steps", 64] for folder in folders] + [["--random", "--config", config, "--out", out, "--steps", 64]],
        "reproduce": [[run], [run, "--print"]],
        "bench": [["--config", config], ["--config", config, "--sweep", "trainer.num_envs=4"]],
        "check": [["--config", config], ["--config", config, "--algorithm", "PPO"]],
        "trace": [["--config", config, "--script", config, "--out", out]],
        "report": [[run, "--out", out]],
        "list": [[run.parent]], "status": [[run], [run, "--json"]],
        "doctor": None, "envs": None, "config": None, "completion": None, "man": None, "new": None,
    }


QUIET = {"report", "list", "status"}  # read runs and say what they find
TOOLS = {"export", "convert", "track"}  # programs of Python, which read weights


def commands():
    """Those of the program's own table."""
    table = output("--help").split("\n\n")[2]
    return set(re.findall(r"^  (\w+) ", table, re.MULTILINE)) - TOOLS


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_starts_the_game_of_a_strangers_run(kind, place, tmp_path):
    run = place.strange(kind)
    told = uses(run, place.cartpole, tmp_path / "out")
    assert commands() == set(told)
    place.started()
    for command, ways in told.items():
        for words in ways or []:
            done = place.call(command, *words)
            assert not place.started(), (command, words, done.stderr)
            refused = done.returncode == 2 and ("--trust" in done.stderr or "is a run of" in done.stderr)
            damaged = kind == "os:system" and "where its manifest says" in done.stderr
            assert command in QUIET or refused or damaged, (command, words, done.stdout, done.stderr)
            assert "json.exception" not in done.stderr
            shutil.rmtree(tmp_path / "out", ignore_errors=True)


def test_the_name_and_what_would_run_are_shown(place):
    for kind, shown in {"function": "it would run strange_game:make with the arguments {}", "os:system": 'os:system with the arguments {"command": "touch ',
                        "source": f"is a program: {place.folder}/chase.cu would be compiled and run",
                        "interpreter": "gym:CartPole-v1 with the arguments {}, by the interpreter /"}.items():
        done = place.call("eval", place.strange(kind))
        assert done.returncode == 2 and shown in done.stderr and "give --trust if you trust it" in done.stderr


@pytest.mark.parametrize("kind", KINDS[:4])
def test_ones_own_run_asks_for_nothing_also_where_it_was_moved(kind, place, tmp_path):
    run = tmp_path / "run"
    place.train(kind, run, "own")
    moved = run.rename(tmp_path / "moved")
    for words in (["eval", moved, "--episodes", 1], ["play", moved, "-o", tmp_path / "page.html"], ["reproduce", moved], ["--resume", moved, "--total_steps", 512]):
        place.call(*words, good=True)
        assert place.started()
    if kind != "source":
        other_arguments = place.call("eval", moved, "--set", "env.kwargs={sutton_barto_reward: true}")
        assert other_arguments.returncode == 2 and "--trust" in other_arguments.stderr and not place.started()
    shutil.rmtree(place.folder / "own")


def test_a_source_file_in_the_folder_of_a_run_is_the_runs(place, tmp_path):
    run = tmp_path / "run"
    place.train("source", run, "own")
    copy = run / "source" / "chase.cu"
    place.call("--env", copy, "--run_dir", tmp_path / "of copy", *SMALL, good=True)
    for folder in (run, run / "checkpoints" / "latest"):
        config = folder / "config.yaml"
        config.write_text(config.read_text().replace(f"{place.folder}/chase.cu", str(copy)))
    place.started()
    done = place.call("eval", run)
    assert done.returncode == 2 and "give --trust" in done.stderr and not place.started()
    place.call("eval", tmp_path / "of copy", "--episodes", 1, good=True)
    assert place.started()


def test_trust_and_the_name_of_the_environment_start_it(place, tmp_path):
    run = shutil.copytree(place.strange("function"), tmp_path / "run", symlinks=True)
    place.call("eval", run, "--episodes", 1, "--trust", good=True)
    assert place.started()
    source = shutil.copytree(place.strange("source"), tmp_path / "source", symlinks=True)
    place.call("eval", source, "--episodes", 1, "--trust", home="empty", good=True)
    assert place.started()
    place.call("eval", source, "--episodes", 1, "--env", place.folder / "chase.cu", home="empty", good=True)
    assert place.started()
    place.call("--env", "strange_game:make", "--resume", run, "--total_steps", 320, home="empty", good=True)
    assert place.started()
    python = shutil.copytree(place.strange("interpreter"), tmp_path / "python", symlinks=True)
    resume = ["--env", "gym:CartPole-v1", "--resume", python, "--total_steps", 320]
    assert place.call(*resume, home="empty").returncode == 2 and not place.started()
    place.call(*resume, "--set", f"env.python={sys.executable}", "--allow_drift", home="empty", good=True)
    assert not place.started()


def test_wrappers_are_code_too(place, tmp_path):
    run, wrapped = tmp_path / "run", ["--set", "env.wrappers=[strange_game.Wrap]"]
    place.call("--env", "gym:CartPole-v1", *wrapped, "--run_dir", run, *SMALL, home="stranger", good=True)
    assert place.started()
    resume = ["--env", "gym:CartPole-v1", "--resume", run, "--total_steps", 320]
    for words in (["eval", run], resume):
        done = place.call(*words, home="empty")
        assert done.returncode == 2 and 'wrapped by ["strange_game.Wrap"]' in done.stderr and not place.started()
    place.call(*resume, *wrapped, home="empty", good=True)
    assert place.started()


def test_another_pickled_file_is_another_game(place, tmp_path):
    run = tmp_path / "run"
    place.train("pickle", run, "own")
    with (place.folder / "game.pkl").open("ab") as file:
        file.write(b" ")
    assert place.call("eval", run).returncode == 2 and not place.started()


def test_without_a_home_the_flag_is_needed(place, tmp_path):
    done = place.call("--env", "strange_game:make", "--run_dir", tmp_path / "run", *SMALL, XDG_STATE_HOME=None, HOME=None, good=True)
    assert place.started()
    done = place.call("eval", tmp_path / "run", XDG_STATE_HOME=None, HOME=None)
    assert done.returncode == 2 and "neither $XDG_STATE_HOME nor $HOME is set" in done.stderr and not place.started()


def test_a_pipe_in_place_of_a_runs_configuration_is_refused(place, tmp_path):
    run = shutil.copytree(place.cartpole, tmp_path / "run", symlinks=True)
    (run / "config.yaml").unlink()
    os.mkfifo(run / "config.yaml")
    for words in (["eval", run], ["play", run], ["record", run, "--out", tmp_path / "out", "--steps", 64], ["reproduce", run], ["--config", run / "config.yaml"],
                  ["--env", "cartpole", "--set", f"opponents.shared=[{run}]", "--print_config"], ["--resume", run]):
        done = place.call(*words)
        assert done.returncode == 2 and "config.yaml" in done.stderr, done.stderr


def test_a_run_of_another_environment_is_refused_by_name_before_it_is_read(place):
    run = place.strange("function")
    (run / "config.yaml").write_text("name: os:system\nenv: [1]\n")
    done = place.call("--env", "cartpole", "--set", f"opponents.shared=[{run}]", "--print_config")
    assert done.returncode == 2 and f"{run}: is a run of os:system, and this game is cartpole" in done.stderr


def test_what_is_noted_says_what_was_begun(place, tmp_path):
    place.call("--env", "strange_game:make", "--set", "env.kwargs={render_mode: null}", "--run_dir", tmp_path / "run", *SMALL, home="noted", good=True)
    (note,) = (place.folder / "noted" / "wd" / "begun").iterdir()
    assert json.loads(pathlib.Path(note).read_text()) == {"do": "make", "environment": "strange_game:make", "kwargs": '{"render_mode": null}', "python": "", "wrappers": []}
