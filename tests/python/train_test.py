"""train_test.py: wdtrain.train() runs the program, shows its progress, stops it, and returns the run that it made."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import time
import types

import pytest

ROOT = pathlib.Path(os.environ["WD_SOURCE_DIR"])
sys.path.insert(0, str(ROOT / "python"))

import wdtrain  # noqa: E402

SLOWDOWN = int(os.environ.get("WD_SLOWDOWN", 1))
SHORT = {"device": "cpu", "total_steps": 2048, "num_envs": 64, "threads": 1}
ENDLESS = """
import sys
sys.path.insert(0, {package!r})
import wdtrain
wdtrain.train("cartpole", run_dir={folder!r}, device="cpu", threads=1, total_steps="1G", stop_return=None,
              fault="iter=3,kind=slow:200", progress={progress})
"""


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for process in processes_of(tmp_path / "run"):  # of a test that failed
        os.kill(process, signal.SIGKILL)


def wait_for(condition, what):
    deadline = time.monotonic() + 60 * SLOWDOWN
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def steps(folder):
    """Lines of the run's metrics."""
    with contextlib.suppress(FileNotFoundError):
        return (folder / "metrics.jsonl").read_bytes().count(b"\n")
    return 0


def processes_of(folder):
    """Ids of the programs that were started for this folder."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if f"--run_dir={folder}".encode() in words and words[0].endswith(b"wdtrain"):
                found.append(int(path.parent.name))
    return found


def error_of(kind, *names, **settings):
    with pytest.raises(kind) as caught:
        wdtrain.train(*names, **{"device": "cpu", **settings})
    return str(caught.value)


# --- what is trained ------------------------------------------------------------------------------------------


def test_a_training_returns_its_run(place, capfd):
    run = wdtrain.train("cartpole", algorithm="A2C", seed=3, tag="try", env_params={"episode_length": 100}, settings=["saving.keep_last=2"],
                        trainer={"chunk_rows": 4096}, **SHORT, **{"policy.shared.lr": 2e-3, "policy.shared.model.fc_dims": [32, 16]})
    config, policy = run.config, run.config["policy"]["shared"]
    assert run.summary["status"] == "finished" and run.metrics()["env_steps"].iloc[-1] == 2048
    assert (run.summary["seed"], config["trainer"]["num_envs"], config["trainer"]["chunk_rows"]) == (3, 64, 4096)
    assert (policy["algorithm"], policy["lr"], policy["model"]["fc_dims"]) == ("A2C", 2e-3, [32, 16])
    assert (config["env"]["episode_length"], config["saving"]["keep_last"]) == (100, 2)
    assert run.folder.parent == pathlib.Path("runs/try/cartpole") and re.fullmatch(r"\d{8}-\d{6}-3", run.folder.name)
    assert re.search(r"^iteration \d+ \| 2.05k/2.05k steps \| .+ steps/s \| return shared [\d.]+ \| ", capfd.readouterr().out, re.MULTILINE)


@pytest.mark.parametrize("policy", [{"shared": {"lr": 2e-3}}, "{shared: {lr: 2e-3}}"])
def test_an_algorithm_keeps_the_settings_beside_it(policy):
    given = {"settings": [f"policy={policy}"]} if isinstance(policy, str) else {"policy": policy}
    shared = wdtrain.train("cartpole", algorithm="A2C", **given, **SHORT).config["policy"]["shared"]
    assert (shared["algorithm"], shared["lr"]) == ("A2C", 2e-3)


def test_an_algorithm_is_that_of_all_policies():
    run = wdtrain.train("simple_tag", algorithm="A2C", progress=False, device="cpu", num_envs=4, train_batch_size=100, total_steps=100)
    assert {policy["algorithm"] for policy in run.config["policy"].values()} == {"A2C"} and len(run.config["policy"]) == 2


def test_an_algorithm_may_be_written_small():
    assert wdtrain.train("cartpole", algorithm="a2c", progress=False, **SHORT).config["policy"]["shared"]["algorithm"] == "A2C"


def test_two_at_once_have_runs_of_their_own(monkeypatch):
    monkeypatch.setattr(time, "strftime", lambda _: "20260101-000000")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        runs = list(pool.map(lambda lr: wdtrain.train("cartpole", progress=False, **SHORT, **{"policy.shared.lr": lr}), [1e-3, 2e-3]))
    assert [run.config["policy"]["shared"]["lr"] for run in runs] == [1e-3, 2e-3]
    assert {run.folder.name for run in runs} == {"20260101-000000-1", "20260101-000000-1-2"}


def test_a_run_goes_on(place, capfd):
    (place / "mine.yaml").write_text("name: cartpole\ntrainer: {seed: 5}\n")
    first = wdtrain.train(config=place / "mine.yaml", run_dir=place / "pole", **SHORT)
    capfd.readouterr()
    second = wdtrain.train(resume=first, total_steps=4096)
    assert set(re.findall(r"^[\d,]+ of [\d,]+ steps", capfd.readouterr().out, re.MULTILINE)) <= {"3,072 of 4,096 steps", "4,096 of 4,096 steps"}
    assert (second.folder, second.summary["env_steps"], second.summary["seed"]) == (place / "pole", 4096, 5)
    third = wdtrain.train(resume=second.checkpoints[2], total_steps=3072)
    assert (third.folder, third.summary["env_steps"]) == (place / "pole", 3072)
    assert "trainer.seed: 5 -> 6" in error_of(wdtrain.UsageError, resume=place / "pole", seed=6)


# --- several seeds --------------------------------------------------------------------------------------------


def test_seeds_are_trained_each_as_alone(place, capfd):
    rows = []
    runs = wdtrain.train("cartpole", seeds=range(2, 5), jobs=2, run_dir=place / "run", on_log=rows.append, **SHORT)
    assert [run.config["trainer"]["seed"] for run in runs] == [2, 3, 4] and [run.folder for run in runs] == [place / "run" / seed for seed in "234"]
    said = capfd.readouterr()
    assert "seed 4 | finished | iteration " in said.out and "2.05k of 2.05k steps" in said.out and "3 of 3 done" in said.out and "IQM" in said.out
    for run in runs:
        assert [row["iteration"] for row in rows if row["seed"] == run.config["trainer"]["seed"]] == list(run.metrics()["iteration"])
    alone = wdtrain.train("cartpole", seed=3, run_dir=place / "alone", progress=False, **SHORT)
    weights = [(run.folder / "weights" / "shared.safetensors").read_bytes() for run in (alone, *runs)]
    assert weights[0] == weights[2] != weights[1]
    again = wdtrain.train("cartpole", seeds=[4, 2], resume="auto", run_dir=place / "run", progress=False, **SHORT)
    assert [run.config["trainer"]["seed"] for run in again] == [4, 2] and capfd.readouterr().out == ""


def test_seeds_have_a_folder_of_their_own(place):
    runs = wdtrain.train("cartpole", seeds=[5], progress=False, **SHORT)
    assert re.fullmatch(r"runs/cartpole/\d{8}-\d{6}-seeds/5", os.path.relpath(runs[0].folder, place))
    assert "seeds" in error_of(wdtrain.UsageError, "cartpole", seeds=[1], seed=2)
    assert "names a seed twice" in error_of(wdtrain.UsageError, "cartpole", seeds=[1, 1])
    assert "is not empty" in error_of(wdtrain.UsageError, "cartpole", seeds=[1], run_dir=runs[0].folder.parent)


def test_a_seed_that_fails_is_named(place):
    message = error_of(wdtrain.RunError, "cartpole", seeds=[1, 2], run_dir=place / "run", fault="rank=0,iter=3,kind=throw", progress=False)
    assert "seed 1 failed with exit code 1" in message and "seed 2 failed with exit code 1" in message


def test_an_interrupt_ends_all_seeds_with_checkpoints(place):
    def interrupt(row):
        if row["seed"] == 2 and row["iteration"] >= 3 and steps(place / "run" / "1") > 2:
            signal.raise_signal(signal.SIGINT)

    endless = {"device": "cpu", "threads": 1, "total_steps": "1G", "stop_return": None, "jobs": 2, "progress": False}
    with pytest.raises(KeyboardInterrupt, match="resume='auto' goes on"):
        wdtrain.train("cartpole", seeds=[1, 2], run_dir=place / "run", on_log=interrupt, **endless)
    assert [wdtrain.Run(place / "run" / seed).summary["stop_reason"] for seed in "12"] == ["signal", "signal"]
    runs = wdtrain.train("cartpole", seeds=[1, 2], run_dir=place / "run", resume="auto", on_log=lambda row: False, **endless)
    assert [run.summary["status"] for run in runs] == ["stopped", "stopped"]


def test_a_population_returns_its_members_in_order(place, capfd):
    rows, lrs = [], [1e-3, 2e-3, 3e-3]
    members = {"trainer.population": 3, "members": {"policy.shared.lr": lrs}}
    runs = wdtrain.train("cartpole", run_dir=place / "run", on_log=rows.append, **members, **SHORT)
    assert [run.folder for run in runs] == [place / "run" / member for member in "012"] and [run.config["policy"]["shared"]["lr"] for run in runs] == lrs
    assert "member 2 | finished | iteration 2, 2.05k of 2.05k" in (said := capfd.readouterr().out) and "3 of 3 done" in said
    for member, run in enumerate(runs):
        assert [row["iteration"] for row in rows if row["member"] == member] == list(run.metrics()["iteration"])
    again = wdtrain.train(resume=place / "run", on_log=rows.append, progress=False)
    assert [run.folder for run in again] == [run.folder for run in runs] and len(rows) == 3 * len(runs[0].metrics())
    unnamed = wdtrain.train("cartpole", progress=False, **{**members, "trainer.population": 1, "members": {"policy.shared.lr": [1e-3]}}, **SHORT)
    assert re.fullmatch(r"runs/cartpole/\d{8}-\d{6}-population/0", os.path.relpath(unnamed[0].folder, place)) and len(unnamed) == 1
    assert "trainer.population excludes" in error_of(wdtrain.UsageError, "cartpole", seeds=[1, 2], **{"trainer.population": 2})


# --- while it trains ------------------------------------------------------------------------------------------

OFTEN = {**SHORT, "progress": False, "total_steps": 8192, "train_batch_size": 512, "saving.metrics_log_freq": 1}


def test_each_line_of_metrics_is_told(place):
    rows = []
    run = wdtrain.train("cartpole", run_dir=place / "run", on_log=rows.append, **OFTEN)
    assert len(rows) == 16 and [row["iteration"] for row in rows] == [row["iteration"] for row in run.rows()] and rows[3].keys() == run.rows()[3].keys()
    wdtrain.train(resume=run, on_log=rows.append, progress=False, total_steps=9216)
    assert [row["iteration"] for row in rows] == list(range(1, 19))  # none twice


def test_who_is_told_may_end_it(place):
    rows = []
    run = wdtrain.train("cartpole", run_dir=place / "run", on_log=lambda row: rows.append(row) or row["iteration"] < 3,
                        **{**OFTEN, "total_steps": "1G", "stop_return": None, "fault": "iter=3,kind=slow:200"})
    stopped_with_a_checkpoint(run.folder)
    assert rows[-1]["iteration"] == 3 and not processes_of(place / "run")
    assert wdtrain.train(resume=run, progress=False, total_steps=run.summary["env_steps"] + 512).summary["status"] == "finished"


def test_an_exception_of_who_is_told_ends_it(place):
    calls = []

    def fail(row):
        calls.append(row)
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        wdtrain.train("cartpole", run_dir=place / "run", on_log=fail, **{**OFTEN, "total_steps": "1G", "stop_return": None, "fault": "iter=3,kind=slow:200"})
    assert len(calls) == 1 and not processes_of(place / "run")
    stopped_with_a_checkpoint(place / "run")


# --- what comes of it -----------------------------------------------------------------------------------------


def test_runs_are_evaluated_and_shown(place, monkeypatch):
    run = wdtrain.train("tag_gridworld", run_dir=place / "run", progress=False, train_batch_size=1024, **SHORT)
    found = wdtrain.evaluate(run, episodes=4, greedy=True, seed=3, policy={"runner": "random"}, set={"env.episode_length": 7}, device="cpu")
    assert (found["episodes"], found["greedy"], found["seed"], found["players"]["runner"]) == (4, True, 3, "random") and found["length"]["mean"] <= 7
    assert set(found["returns"]) == {"tagger", "runner"} and "caught" in found["statistics"]
    monkeypatch.setenv("PATH", "/nowhere")  # without ffmpeg
    assert run.play(out=place / "film.gif", max_steps=5, device="cpu").read_bytes()[:4] == b"GIF8"
    assert "<html" in run.play(out=place / "page.html", max_steps=5, device="cpu").read_text()[:200]
    with pytest.raises(wdtrain.UsageError, match="nobody"):
        wdtrain.evaluate(run, policy={"nobody": "random"})


# --- what is wrong --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings, words", [
    ({"num_env": 3}, 'did you mean "num_envs"'), ({"zzz": 1e-3}, "given by path: **{'policy.shared.lr': 1e-3}"),
    ({"policy.shared.lrr": 3}, 'did you mean "lr"'), ({"settings": ["trainer.sed=3"]}, 'did you mean "seed"'),
    ({"num_envs": "many"}, "must be a whole number"), ({"policy.shared.lr": "high"}, "policy.shared.lr = high: must be a number"),
    ({"algorithm": "POP"}, "must be one of A2C,"), ({"env_params": {"lenght": 1}}, 'did you mean "length"'),
    ({"lr": 0.001}, 'did you mean **{"policy.shared.lr": 0.001}?'), ({"size": 6}, "env_params={'kwargs': {'size': ...}}"),
    ({"n_steps": 8}, "train_batch_size / num_envs"), ({"n_envs": 8}, "did you mean num_envs=8?"), ({"algorithm": print}, "give its name"), ({"verbose": 1}, "progress=False"), ({"tensorboard_log": "x"}, "run_dir"), ({"callback": print}, "on_log"),
    ({"policy_kwargs": {}}, "fc_dims"), ({"allow_drift": True}, "allow_drift=True is for"), ({"algorithm": "pop"}, "must be one of A2C,"),
    ({"settings": ["seed"]}, "'seed' is not SECTION.KEY=VALUE"), ({"resume": "nowhere"}, "there is no such folder"),
])
def test_a_wrong_setting_is_told_and_makes_no_folder(settings, words, place):
    assert words in error_of(wdtrain.UsageError, "cartpole", **settings)
    assert not list(place.iterdir())


def test_an_unknown_environment_is_told():
    assert 'did you mean "cartpole"' in error_of(ValueError, "cartpol")
    assert "give --env NAME" in error_of(ValueError)
    assert "env is 3" in error_of(TypeError, 3)


def test_a_folder_that_holds_something_is_refused_once(place, capfd):
    (place / "precious").write_text("")
    assert "is not empty (it holds precious)" in error_of(wdtrain.UsageError, "cartpole", run_dir=place)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("code, shown", [(2, ""), (0, "error: b\n")])
def test_an_error_waits_for_the_exit_code_that_says_whether_it_is_raised(code, shown, tmp_path, capfd):
    with open(tmp_path / "said", "w+b") as said:
        said.write(b"warning: a\nerror: b\n")
        said.flush()
        voice = sys.modules["wdtrain.train"]._Voice(said, False)
        voice.show()
        assert capfd.readouterr().err == "warning: a\n"
        voice.show(code)
        assert capfd.readouterr().err == shown


def test_a_training_that_is_refused_late_leaves_no_folder(place):
    words = error_of(wdtrain.UsageError, "tag_gridworld", num_envs=8, train_batch_size="8G", total_steps="16G")
    assert words.startswith("not enough memory") and not list(place.glob("runs/*/*"))


def test_a_training_that_fails_is_told(place):
    message = error_of(wdtrain.RunError, "cartpole", run_dir=place / "run", fault="iter=3,kind=nan:loss")
    assert "exit code 1" in message and str(place / "run") in message and "the policy loss is not finite" in message
    killed = error_of(wdtrain.RunError, "cartpole", run_dir=place / "killed", fault="iter=3,kind=kill")
    assert "signal SIGKILL" in killed and str(place / "killed") in killed


def test_a_program_that_is_missing_is_told(monkeypatch, place):
    monkeypatch.setenv("WDTRAIN", "nowhere/wdtrain")
    assert "WDTRAIN is 'nowhere/wdtrain'" in error_of(FileNotFoundError, "cartpole")
    monkeypatch.delenv("WDTRAIN")
    module = sys.modules["wdtrain.train"]
    monkeypatch.setenv("PATH", str(place))
    monkeypatch.setattr(module, "__file__", str(place / "prefix/lib/python3/site-packages/wdtrain/train.py"))
    assert "build it" in error_of(FileNotFoundError, "cartpole")
    for found in ["elsewhere/wdtrain", "build/wdtrain", "prefix/bin/wdtrain"]:  # each goes before the last
        (place / found).parent.mkdir(parents=True)
        (place / found).write_text("#!/bin/sh\n")
        (place / found).chmod(0o755)
        monkeypatch.setenv("PATH", str(place / "elsewhere"))
        assert module.find_program() == str(place / found)
    (place / "prefix/bin/wdtrain").write_text("#!/usr/bin/python3\nfrom wdtrain.train import main\n")  # of pip: it would find itself
    monkeypatch.setattr(module, "__file__", str(place / "prefix/lib/python3/site-packages/wdtrain/train.py"))
    (place / "build/wdtrain").rename(place / "other")
    assert module.find_program() == str(place / "elsewhere/wdtrain")
    (place / "other").rename(place / "build/wdtrain")
    monkeypatch.setattr(module, "__file__", str(place / "python/wdtrain/train.py"))
    assert module.find_program() == str(place / "build/wdtrain")
    monkeypatch.setattr(module, "__file__", str(place / "build/python/wdtrain/train.py"))
    assert module.find_program() == str(place / "build/wdtrain")


# --- progress -------------------------------------------------------------------------------------------------


def test_without_progress_only_warnings_are_shown(capfd):
    wdtrain.train("cartpole", progress=False, **SHORT)
    assert capfd.readouterr() == ("", "")
    wdtrain.train("cartpole", progress=False, **{**SHORT, "total_steps": 2000})
    out, err = capfd.readouterr()
    assert out == "" and "is rounded up to 2048" in err


def test_a_notebook_has_one_line_that_changes(monkeypatch, capfd):
    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    wdtrain.train("cartpole", **{**SHORT, "total_steps": 20480}, fault="iter=3,kind=slow:100")
    lines = capfd.readouterr().out.split("\r")
    assert lines[0] == "" and 3 <= len(lines) <= 8, lines
    assert "| 20.5k/20.5k steps | " in lines[-1] and lines[-1].endswith("\n") and "\n" not in "".join(lines[:-1])


# --- how it ends ----------------------------------------------------------------------------------------------


def start(folder, **how):
    code = ENDLESS.format(package=str(ROOT / "python"), folder=str(folder), progress=how.pop("progress", True))
    return subprocess.Popen([sys.executable, "-c", code], text=True, **how)


def stopped_with_a_checkpoint(folder):
    told = json.loads((folder / "summary.json").read_text())
    assert (told["status"], told["stop_reason"]) == ("stopped", "signal"), told
    assert int(os.readlink(folder / "checkpoints" / "latest")) == told["iterations"] > 0
    assert processes_of(folder) == []


@pytest.mark.parametrize("group", [False, True])
def test_an_interrupt_ends_in_good_order_and_the_run_goes_on(group, place):
    folder = place / "run"
    process = start(folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    wait_for(lambda: steps(folder) >= 3, "training did not begin")
    (os.killpg if group else os.kill)(process.pid, signal.SIGINT)
    _, text = process.communicate(timeout=60 * SLOWDOWN)
    assert process.returncode == -signal.SIGINT, text
    assert f"\nKeyboardInterrupt: the training was interrupted; its folder is {folder}; wdtrain.train(resume='{folder}') goes on\n" in text
    assert text.count("once more to stop at once") == 1
    stopped_with_a_checkpoint(folder)
    before = wdtrain.Run(folder).summary["env_steps"]
    run = wdtrain.train(resume=folder, total_steps=before + 2048)
    assert (run.folder, run.status, run.summary["env_steps"]) == (folder, "finished", before + 2048)


def test_ctrl_c_in_a_terminal(place):
    """The program draws its table, hears one signal, though the terminal sends it to all, and the run is complete."""
    folder = place / "run"
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm"
        os.execv(sys.executable, [sys.executable, "-c", ENDLESS.format(package=str(ROOT / "python"), folder=str(folder), progress=True)])
    text = b""

    def read():
        nonlocal text
        while select.select([terminal], [], [], 0)[0]:
            try:
                text += os.read(terminal, 1 << 16)
            except OSError:  # all processes have closed it
                return True
        return False

    wait_for(lambda: read() or steps(folder) >= 4, "training did not begin")
    os.write(terminal, b"\x03")
    wait_for(read, "training did not end")
    assert os.waitpid(child, 0)[1] == signal.SIGINT, text
    assert b"\x1b[J" in text and re.search(rb"iteration \d", text) and b"KeyboardInterrupt: the training was interrupted" in text, text
    assert text.count(b"once more to stop at once") == 1
    stopped_with_a_checkpoint(folder)


def test_a_second_interrupt_insists(place):
    folder = place / "run"
    code = ENDLESS.format(package=str(ROOT / "python"), folder=str(folder), progress=False).replace("slow:200", "hang")
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    wait_for(lambda: steps(folder) >= 2, "training did not begin")
    process.send_signal(signal.SIGINT)
    time.sleep(1)
    assert process.poll() is None and processes_of(folder)
    process.send_signal(signal.SIGINT)
    _, text = process.communicate(timeout=20 * SLOWDOWN)
    assert process.returncode == -signal.SIGINT and "KeyboardInterrupt: the training was interrupted" in text
    assert processes_of(folder) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_python_that_dies_leaves_no_program_behind(number, place):
    folder = place / "run"
    process = start(folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: steps(folder) >= 3, "training did not begin")
    assert len(processes_of(folder)) == 1
    process.send_signal(number)
    assert process.wait(timeout=60) == -number
    wait_for(lambda: not processes_of(folder), "the program goes on")
    stopped_with_a_checkpoint(folder)


def test_another_exception_ends_the_program_too(place, monkeypatch):
    module, folder = sys.modules["wdtrain.train"], place / "run"

    def show(*_):
        if steps(folder) >= 3:
            raise BrokenPipeError("nobody reads")

    monkeypatch.setattr(module._Voice, "show", show)
    with pytest.raises(BrokenPipeError):
        wdtrain.train("cartpole", run_dir=folder, device="cpu", total_steps="1G", stop_return=None, fault="iter=3,kind=slow:200")
    assert processes_of(folder) == []


def test_an_interrupt_while_the_program_starts_leaves_none_behind(place, monkeypatch):
    module, folder = sys.modules["wdtrain.train"], place / "run"
    start_it = module._start

    def interrupted(*arguments):
        process = start_it(*arguments)
        signal.raise_signal(signal.SIGINT)
        return process

    monkeypatch.setattr(module, "_start", interrupted)
    with pytest.raises(KeyboardInterrupt, match="interrupted before it began"):
        wdtrain.train("cartpole", run_dir=folder, device="cpu", total_steps="1G", stop_return=None, fault="iter=3,kind=slow:200")
    time.sleep(0.5)
    assert processes_of(folder) == []


def test_documentation_runs():
    text = (ROOT / "docs/python.md").read_text()
    section = text[text.index("## Train\n"):text.index("## Environments\n")]
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert len(blocks) == 1
    known = {}
    exec(blocks[0], known)
    assert known["run"].summary["env_steps"] >= 200_000 and known["policy"] is not None
