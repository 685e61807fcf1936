"""`wdtrain list`: the state of every run below a folder."""

import fcntl
import json
import os
import pty
import shutil
import struct
import subprocess
import termios

import pytest

from checkpoint.runs import wait_for
from cli.program import output, wdtrain
from run_report.folders import make_run

SHORT = ["--env", "cartpole", "--device", "cpu", "--quiet", "--num_envs", 8, "--train_batch_size", 80, "--stop_return", "none"]


def listed(folder, *arguments):
    return {run["name"]: run for run in json.loads(output("list", folder, "--json", *arguments))}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One run of each kind."""
    base = tmp_path_factory.mktemp("runs")
    output(*SHORT, "--total_steps", 800, "--run_dir", base / "cartpole" / "finished")
    output(*SHORT, "--max_seconds", 0.2, "--total_steps", "1G", "--run_dir", base / "cartpole" / "stopped")
    for kind, code in (("throw", 1), ("kill", -9)):
        done = wdtrain(*SHORT, "--total_steps", 800, "--run_dir", base / kind, "--fault", f"iter=5,kind={kind}")
        assert done.returncode == code
    return base


def test_the_status_of_each_kind_of_run(runs):
    found = listed(runs)
    assert {name: run["status"] for name, run in found.items()} == {
        "cartpole/finished": "finished", "cartpole/stopped": "stopped", "throw": "failed", "kill": "killed"}
    run, folder = found["cartpole/finished"], runs / "cartpole" / "finished"
    summary = json.loads((folder / "summary.json").read_text())
    manifest = json.loads((folder / "checkpoints" / "latest" / "manifest.json").read_text())["checkpoint"]
    assert (run["env"], run["algorithm"], run["steps"], run["seed"]) == ("cartpole", "PPO", 800, summary["seed"])
    assert (run["last"], run["best"]) == (summary["mean_return"]["shared"], manifest["best_return"])
    assert run["steps_per_s"] == summary["env_steps_per_s"] and run["folder"] == str(folder)
    du = int(subprocess.run(["du", "-s", "-B1", folder], capture_output=True, text=True, check=True).stdout.split()[0])
    assert abs(run["bytes"] - du) <= 4096 and 0 <= run["age_s"] < 600


def test_a_run_that_holds_its_lock_is_running(runs):
    command = [os.environ["WDTRAIN"], *map(str, SHORT), "--total_steps", "1G", "--run_dir", str(runs / "now")]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(lambda: (runs / "now" / "metrics.jsonl").exists())
            assert listed(runs)["now"]["status"] == "running"
            process.kill()
            process.wait()
            assert listed(runs)["now"]["status"] == "killed"
        finally:
            process.kill()
    shutil.rmtree(runs / "now")


def test_a_lock_of_another_machine_is_believed_while_the_summary_is_young(tmp_path):
    run = make_run(tmp_path / "run", {"shared/entropy": [1.0]}, status="running")
    (run / ".lock").write_text("process 7 on elsewhere\n")
    assert listed(tmp_path)["run"]["status"] == "running"
    os.utime(run / "summary.json", (0, 0))
    assert listed(tmp_path)["run"]["status"] == "killed"


def test_sorting_and_filters(runs):
    assert list(listed(runs, "--sort", "status")) == ["throw", "cartpole/finished", "kill", "cartpole/stopped"]
    steps = [run["steps"] for run in listed(runs, "--sort", "steps").values()]
    assert steps == sorted(steps, reverse=True) and len(set(steps)) > 1
    assert list(listed(runs, "--filter", "status=killed")) == ["kill"]
    assert list(listed(runs, "--filter", "trainer.total_steps=800", "--filter", "env=cartpole")) == ["cartpole/finished", "kill", "throw"]
    assert output("list", runs, "--filter", "env=pendulum") == f"none of 4 runs below {runs} matches env=pendulum\n"


def test_an_unreadable_summary_is_no_error(tmp_path):
    make_run(tmp_path / "good", {"shared/recent_return": [1.5]})
    for name, text in (("empty", ""), ("list", "[1]"), ("types", '{"status": 3, "env": [], "env_steps": "x", "mean_return": 4}')):
        make_run(tmp_path / name, {"shared/recent_return": [1.5]})
        (tmp_path / name / "summary.json").write_text(text)
        (tmp_path / name / "config.yaml").write_text("{")
    found = listed(tmp_path)
    assert found["good"]["last"] == 1.5 and found["good"]["best"] is None
    assert {found[name]["status"] for name in ("empty", "list")} == {"unknown"} and found["types"]["steps"] is None
    output("list", tmp_path)
    output("report", tmp_path, "--out", tmp_path / "report.html")


def test_names_of_folders_cannot_forge_a_row_or_control_the_terminal(tmp_path):
    for name in (b"a\nforged  finished", b"b\xc2\x9b31m", b"c\x9b31m", b"d\x1b[31m", "é\xa0".encode()):
        make_run(tmp_path / "run", {"shared/recent_return": [1.5]}).rename(tmp_path / os.fsdecode(name))
    done = subprocess.run([os.environ["WDTRAIN"], "list", str(tmp_path)], capture_output=True, check=True)
    names = [line.split(b"  ")[0] for line in done.stdout.splitlines()[1:]]
    assert names == [b"a?forged", b"b?31m", b"c?31m", b"d?[31m", "é\xa0".encode()]


def on_a_terminal(columns, *arguments):
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen([os.environ["WDTRAIN"], *map(str, arguments)], stdout=side, stderr=side, env={**os.environ, "TERM": "xterm"})
    os.close(side)
    text = b""
    try:
        while chunk := os.read(main, 65536):
            text += chunk
    except OSError:  # the program has ended
        pass
    os.close(main)
    assert process.wait() == 0
    return text.decode().replace("\r\n", "\n")


def test_the_table_fits_the_terminal(tmp_path):
    make_run(tmp_path / "a_folder_with_a_very_long_name_that_no_narrow_terminal_has_room_for", {"shared/recent_return": [1.5]})
    make_run(tmp_path / "b", {"shared/recent_return": [2.5]})
    heading, *lines = output("list", tmp_path).splitlines()  # into a pipe: everything
    assert heading.split() == ["RUN", "STATUS", "ENV", "ALGORITHM", "STEPS", "LAST", "BEST", "STEPS/S", "SIZE", "AGE"]
    assert len({line.index("finished") for line in lines}) == 1 and len(lines) == 2
    *table, note = on_a_terminal(60, "list", tmp_path).splitlines()
    assert max(map(len, table)) <= 60 and "finished" in table[1] and "has_room_for" in table[1]
    assert note.startswith("no room for SIZE, STEPS/S, ")


def test_without_runs_it_says_so(tmp_path):
    done = wdtrain("list", tmp_path)
    assert done.returncode == 2 and f"{tmp_path}: there is no run in it or below it" in done.stderr
    assert 'did you mean "status"' in wdtrain("list", tmp_path, "--sort", "statsu").stderr
    assert wdtrain("list", tmp_path, "--sort", "foo").stderr.count("seed, stop_reason") == 1
    make_run(tmp_path / "run", {"shared/entropy": [1.0]})
    done = wdtrain("list", tmp_path, "--filter", "trainer.sed=1")
    assert done.returncode == 2 and '--filter trainer.sed=1: no run has a setting trainer.sed; did you mean "trainer.seed"?' in done.stderr
    assert "--filter env: must be KEY=VALUE" in wdtrain("list", tmp_path, "--filter", "env").stderr


def test_filters_compare_values_and_show_adds_settings(runs):
    for filters in (["trainer.total_steps=0.8k"], ["total_steps=8e2"], ["trainer.total_steps=800.0", "num_envs=8"], ["steps=800"]):
        found = listed(runs, *(word for one in filters for word in ("--filter", one)))
        assert set(found) == ({"cartpole/finished"} if filters == ["steps=800"] else {"cartpole/finished", "kill", "throw"}), filters
    assert listed(runs, "--filter", "cuda_graphs=True").keys() == listed(runs).keys() and not json.loads(output("list", runs, "--json", "--filter", "cuda_graphs=FALSE"))
    assert listed(runs, "--filter", "shared.algorithm=PPO").keys() == listed(runs).keys()
    shown = listed(runs, "--show", "trainer.seed,shared.num_epochs")["kill"]
    assert (shown["trainer.seed"], shown["policy.shared.num_epochs"], shown["seed"]) == ("1", "10", 1) and isinstance(shown["seed"], int)
    heading, *lines = output("list", runs, "--show", "total_steps", "--filter", "status=killed").splitlines()
    assert heading.split()[-1] == "trainer.total_steps" and [line.split()[-1] for line in lines] == ["800"]
    for option, word, hint in (("--filter", "lrr=1", 'did you mean "lr"'), ("--show", "num_env", 'did you mean "num_envs"'), ("--filter", "statsu=killed", 'did you mean "status"')):
        done = wdtrain("list", runs, option, word)
        assert done.returncode == 2 and hint in done.stderr, done.stderr
