"""failures_test.py: environments in Python that cannot be trained in, or fail: each is named, and nothing remains."""

import contextlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(os.environ["WD_SOURCE_DIR"])
sys.path.insert(0, str(ROOT / "tests" / "cli"))

from program import output, wdtrain  # noqa: E402

SLOWDOWN = int(os.environ.get("WD_SLOWDOWN", 1))
SHORT = ["--total_steps", 4096, "--num_envs", 8, "--train_batch_size", 512, "-s", "env.processes=2"]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """The working folder, in which names of modules are looked up."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "outside_games.py").symlink_to(ROOT / "tests" / "outside" / "outside_games.py")
    yield
    assert not workers_in(tmp_path)


def workers_in(folder):
    """Ids of the processes of Python whose working folder this is."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.readlink(path / "cwd") == str(folder) and b"worker.py" in (path / "cmdline").read_bytes():
                found.append(int(path.name))
    return found


def error_of(*arguments, code=1):
    done = wdtrain(*arguments)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr


@pytest.mark.parametrize(("name", "said"), [
    ("gym:Nope-v1", "gym:Nope-v1: NameNotFound: Environment `Nope` doesn't exist"),
    ("gym:CartPole-v9", "VersionNotFound"),
    ("nowhere:make", "No module named 'nowhere'"),
    ("pettingzoo:nowhere_v3", "No module named 'pettingzoo.nowhere_v3'"),
    ("outside_games:nothing", "outside_games.py) has no 'nothing'"),
    ("outside_games:number", "gives a int, and must give a gymnasium.Env or a pettingzoo.ParallelEnv"),
    ("outside_games:np", "is a module, and must be a function"),
    ("outside_games:turns", "aec_to_parallel"),
    ("outside_games:text_observations", "the observation 'observation' is a Text, and can be Box, Discrete"),
    ("outside_games:whole_box", "the action is a Box of int64 with 1,099,511,627,777 choices: give it smaller bounds"),
    ("outside_games:dict_actions", "the action has choices and numbers at once"),
    ("outside_games:many_kinds", "9 different kinds, and at most 8 are possible"),
    ("outside_games:nan_bounds", "the action has the bounds [nan, -1.0] and [1.0, 1.0]: give numbers"),
    (":make", "gym:ID, pettingzoo:MODULE or MODULE:FUNCTION"),
    ("gym:", "gym:ID, pettingzoo:MODULE or MODULE:FUNCTION"),
    ("gym:a b", "without spaces and quotes"),
    ("pickle:nowhere.pkl", "nowhere.pkl': wdtrain.train(FUNCTION) writes it"),
])
def test_what_cannot_be_trained_in_is_refused(name, said):
    text = error_of("train", "--env", name, *SHORT, code=2)
    assert said in text and "worker.py" not in text


@pytest.mark.parametrize(("setting", "said"), [
    ("env.kwargs=[1]", "must be text"), ("env.kwargs=five", "JSON object"), ("env.kwargs={how: tumble, speed: 9}", "unexpected keyword argument 'speed'"),
    ("env.starts=starts.json", "begins its episodes itself"), ("env.python=/nowhere/python", "/nowhere/python"), ("trainer.cuda_graphs=true", "leave it out"),
])
def test_wrong_settings_are_refused(setting, said):
    pathlib.Path("starts.json").write_text("[{}]")
    assert said in error_of("train", "--env", "outside_games:failing", "-s", "env.kwargs={how: no}", "-s", setting, *SHORT, code=2)


@pytest.mark.parametrize(("how", "said"), [
    ("raise", ["raised in replica 0: ValueError: the cow jumped over the moon", 'outside_games.py", line ', 'raise ValueError("the cow']),
    ("exit", ["ended with exit code 3"]),
    ("kill", ["was killed by signal 9 (SIGKILL)"]),
    ("hang", ["has not answered for 1 s (env.step_seconds", "outside_games.py", "in fail"]),
    ("shape", ["has the shape (3,), and the space says (2,)", "replica 0"]),
    ("surrogate", ["raised in replica 0: ValueError: no file na?ve.txt", "outside_games.py"]),
    ("long", ["raised in replica 0: ValueError: xxxx", "... (209,695,200 more characters)"]),
    ("textless", ["raised in replica 0: TextlessError: its text cannot be made: RuntimeError"]),
])
def test_what_fails_in_a_step_is_named(how, said):
    begun = time.monotonic()
    text = error_of("train", "--env", "outside_games:failing", "-s", f"env.kwargs={{how: {how}}}", "-s", f"env.step_seconds={1 if how == 'hang' else 60}", *SHORT)
    assert time.monotonic() - begun < 15 * SLOWDOWN
    assert all(one in text for one in [*said, "environment outside_games:failing: process 0 (pid "]), text
    assert "worker.py" not in text
    (summary,) = pathlib.Path("runs").glob("*/*/summary.json")
    assert json.loads(summary.read_text())["status"] == "failed"


@pytest.mark.parametrize("reward", ["two", "text", "complex", "large"])
def test_a_wrong_reward_is_named(reward):
    text = error_of("train", "--env", "outside_games:pays", "-s", f"env.kwargs={{reward: {reward}}}", *SHORT)
    assert "raised in replica 1: ValueError: the reward is " in text and ", and must be a number: return float(...)" in text, text


def test_a_wrong_reward_of_one_of_several_agents_is_named():
    text = error_of("train", "--env", "outside_games:Alphabets", "-s", "env.kwargs={reward: list}", *SHORT)
    assert "raised in replica 0, agent \u00e4_1: ValueError: the reward is [1.0, 2.0], of type list, and must be a number" in text, text


def test_an_array_of_one_number_is_a_reward():
    output("train", "--env", "outside_games:pays", "-s", "env.kwargs={reward: array}", *SHORT)


def test_agents_are_named_in_any_alphabet():
    assert "__2:" in output("train", "--env", "outside_games:Alphabets", *SHORT, "--print_config")


def test_a_python_without_numpy_is_answered_with_the_remedy():
    bare = pathlib.Path("bare")
    bare.write_text(f"#!/bin/sh\nexec {sys.executable} -I -S \"$@\"\n")
    bare.chmod(0o755)
    text = error_of("train", "--env", "gym:CartPole-v1", "-s", f"env.python={bare.resolve()}", *SHORT, code=2)
    assert "No module named 'numpy'" in text and "pip install numpy" in text and "WDTRAIN_PYTHON" in text and "Traceback" not in text


def test_modules_of_the_working_folder_hide_nothing():
    for name in ("json", "re", "struct", "socket", "mmap", "traceback", "numpy", "gymnasium", "cloudpickle", "random", "copy", "importlib", "warnings"):
        pathlib.Path(f"{name}.py").write_text("open('executed', 'w')")
    output("train", "--env", "gym:CartPole-v1", *SHORT, "--run_dir", "one")
    assert not os.path.exists("executed")
    # Those of the user are found all the same, and one that is named by a module of the library too.
    pathlib.Path("calendar.py").write_text("from outside_games import failing\nimport json\njson.dumps({})\ndef make():\n    return failing(how='no')\n")
    output("train", "--env", "calendar:make", *SHORT, "--run_dir", "two")


def test_what_fails_when_it_is_made_is_named():
    assert "OSError: no such license" in error_of("train", "--env", "outside_games:failing", "-s", "env.kwargs={how: make}", *SHORT, code=2)


def test_a_process_is_started_anew():
    done = wdtrain("train", "--env", "outside_games:failing", "-s", f"env.kwargs={{how: kill, at: 50, once: {os.getcwd()}/once}}", "-s",
                   "env.on_failure=restart", *SHORT)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("the process starts anew, and replicas 0 to 3 begin new episodes") + done.stderr.count("replicas 4 to 7 begin") in (1, 2)
    (summary,) = pathlib.Path("runs").glob("*/*/summary.json")
    assert json.loads(summary.read_text())["status"] == "finished"


def test_a_process_that_always_fails_is_given_up():
    text = error_of("train", "--env", "outside_games:failing", "-s", "env.kwargs={how: raise, at: 20}", "-s", "env.on_failure=restart", *SHORT)
    assert 4 <= text.count("the process starts anew") <= 9 and "5 times in a row, each within 100 steps" in text


def killed_training(seed, on_failure):
    """Kills one of two processes at a random moment of a training without an end."""
    draw = random.Random(seed)
    folder = pathlib.Path(f"run{seed}")
    command = [os.environ["WDTRAIN"], "train", "--env", "gym:CartPole-v1", "--total_steps", "1G", "--num_envs", "8", "--train_batch_size", "512", "--run_dir",
               str(folder), "-s", "env.processes=2", "-s", f"env.on_failure={on_failure}", "-s", "eval.every=1", "--stop_return", "none"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as program:
        deadline = time.monotonic() + 60 * SLOWDOWN
        while not (victims := workers_in(pathlib.Path.cwd())):
            assert time.monotonic() < deadline and program.poll() is None
            time.sleep(0.01)
        time.sleep(draw.uniform(0.0, 2.0))
        victims = workers_in(pathlib.Path.cwd()) or victims
        with contextlib.suppress(ProcessLookupError):
            os.kill(draw.choice(victims), draw.choice([signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV]))
        killed = time.monotonic()
        if on_failure == "stop":
            said = program.communicate(timeout=60 * SLOWDOWN)[1]
            assert program.returncode in (1, 2) and time.monotonic() - killed < 5 * SLOWDOWN, said
        else:
            time.sleep(1.5)
            program.send_signal(signal.SIGINT)
            said = program.communicate(timeout=60 * SLOWDOWN)[1]
            # While it starts, there is nothing to go on with.
            assert program.returncode == 130 or (program.returncode in (1, 2) and not (folder / "metrics.jsonl").exists()), said
        assert "was killed by signal" in said, said


@pytest.mark.parametrize("seed", range(4))
def test_a_process_is_killed_at_a_random_moment(seed):
    killed_training(seed, "stop" if seed % 2 == 0 else "restart")


@pytest.mark.parametrize("everything", [False, True])
def test_ctrl_c_ends_in_good_order(everything):
    """Also if it reaches the processes of Python too, as in a terminal."""
    command = [os.environ["WDTRAIN"], "train", "--env", "gym:CartPole-v1", "--total_steps", "1G", "--stop_return", "none", "--run_dir", "run"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True) as program:
        deadline = time.monotonic() + 60 * SLOWDOWN
        while not os.path.exists("run/metrics.jsonl") or os.path.getsize("run/metrics.jsonl") == 0:
            assert time.monotonic() < deadline and program.poll() is None
            time.sleep(0.05)
        os.killpg(program.pid, signal.SIGINT) if everything else program.send_signal(signal.SIGINT)
        said = program.communicate(timeout=60 * SLOWDOWN)[1]
    assert program.returncode == 130 and "Traceback" not in said and "killed" not in said, said
    # What goes on says what is not exact.
    said = wdtrain("train", "--resume", "run", "--total_steps", json.loads(pathlib.Path("run/summary.json").read_text())["env_steps"] + 4096)
    assert said.returncode == 0 and "all replicas begin new episodes" in said.stderr


def test_a_program_that_is_killed_leaves_no_process():
    command = [os.environ["WDTRAIN"], "train", "--env", "gym:CartPole-v1", "--total_steps", "1G", "--stop_return", "none", "--run_dir", "run"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as program:
        deadline = time.monotonic() + 60 * SLOWDOWN
        while not workers_in(pathlib.Path.cwd()):
            assert time.monotonic() < deadline and program.poll() is None
            time.sleep(0.02)
        program.kill()
    while workers_in(pathlib.Path.cwd()):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_without_python_all_else_works():
    environment = {**os.environ, "WDTRAIN_PYTHON": "/nowhere/python", "PATH": "/nowhere"}
    environment.pop("VIRTUAL_ENV", None)
    assert "cartpole" in output("envs", env=environment)
    output("train", "--env", "cartpole", "--total_steps", 2048, "--device", "cpu", env=environment)
    done = wdtrain("train", "--env", "gym:CartPole-v1", env=environment)
    assert done.returncode == 2 and "/nowhere/python" in done.stderr and "WDTRAIN_PYTHON" in done.stderr
