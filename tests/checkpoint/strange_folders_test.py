"""Run folders that others created, moved, deleted or filled: nothing outside of a run is touched, and a
run continues if it can."""

import json
import os
import shutil
import signal
import stat
import subprocess

import pytest

from checkpoint.runs import WDTRAIN, iterations, left, options, run, wait_for

LONG = [*options("cartpole", "PPO", iterations=100_000), "--quiet"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    assert run(*options("cartpole", "PPO", 4), "--run_dir", folder).returncode == 0
    return folder


@pytest.fixture
def copied(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "copied", symlinks=True)


def contents(folder):
    return {str(path): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def go_on(what):
    return run("--resume", what, "--total_steps", 448)


def test_a_checkpoint_outside_of_its_run_is_refused_and_nothing_is_touched(finished, tmp_path):
    project = tmp_path / "project"
    for part in ("models", "weights", "checkpoints/00000007"):
        (project / part).mkdir(parents=True)
    for name, text in (("config.yaml", "my: precious config\n"), ("metrics.jsonl", "mine\n" * 1000), ("summary.json", '{"mine": 1}'),
                       ("weights/shared.safetensors", "mine"), ("checkpoints/00000007/data", "mine")):
        (project / name).write_text(text)
    saved = (finished / "checkpoints" / "latest").resolve()
    shutil.copytree(saved, project / "models" / "mybest")
    shutil.copytree(saved, project / "checkpoints" / saved.name)
    before = contents(project)
    for place, why in (("models/mybest", "it must be in RUN/checkpoints"), (f"checkpoints/{saved.name}", "does not belong to a run"), ("", "does not belong to a run")):
        done = go_on(project / place)
        assert done.returncode == 2, done.stderr
        assert why in done.stderr and "--warm_start" in done.stderr, done.stderr
        assert contents(project) == before
    (project / "config.yaml").unlink()
    assert "config.yaml is missing" in go_on(project).stderr
    # The remedy that the message suggests works.
    assert run(*options("cartpole", "PPO", 1), "--run_dir", tmp_path / "new", "--warm_start", project / "models" / "mybest").returncode == 0


def test_a_checkpoint_of_another_run_is_refused(copied, tmp_path):
    other = tmp_path / "other"
    assert run(*options("cartpole", "PPO", 6), "--seed", 5, "--run_dir", other).returncode == 0
    shutil.copytree((other / "checkpoints" / "latest").resolve(), copied / "checkpoints" / "00000006")
    (copied / ".lock").unlink()
    before = contents(copied)
    done = go_on(copied)
    assert (done.returncode, "is a run of cartpole with seed 1, the checkpoint is of cartpole with seed 5" in done.stderr) == (2, True), done.stderr
    (copied / ".lock").unlink()
    assert contents(copied) == before


def test_a_renamed_checkpoint_is_left_out(copied):
    (copied / "checkpoints" / "00000004").rename(copied / "checkpoints" / "00000900")
    done = go_on(copied)
    assert "holds iteration 4 and must be named 00000004: rename it" in done.stderr
    assert (done.returncode, (copied / "checkpoints" / ".aside-00000900").exists()) == (0, True)


LINKED = ["metrics.jsonl", "log.txt", "events", "weights"]


@pytest.mark.parametrize("how", ["link", "hard link", "pipe"])
@pytest.mark.parametrize("name", LINKED)
def test_a_run_from_a_stranger_leads_nowhere_else(name, how, copied, tmp_path):
    victim = tmp_path / "victim"
    path = next(copied.glob("events.out*")) if name == "events" else copied / name
    if name == "weights":
        if how != "link":
            pytest.skip("a folder")
        shutil.rmtree(path)
        victim.mkdir()
    else:
        path.unlink()
        victim.write_text("line\n" * 50_000)
    before = contents(tmp_path / "victim") if victim.is_dir() else victim.read_bytes()
    if how == "pipe":
        os.mkfifo(path)
    else:
        (os.symlink if how == "link" else os.link)(victim, path)
    done = go_on(copied)
    words = {"link": "is a link, which is not followed", "hard link": "has another name elsewhere", "pipe": "is not a regular file"}
    assert (done.returncode, words[how] in done.stderr) == (2, True), done.stderr
    assert (contents(victim) if victim.is_dir() else victim.read_bytes()) == before


def test_checkpoints_behind_a_link_are_not_touched(copied, tmp_path):
    (copied / "checkpoints").rename(tmp_path / "victim")
    (copied / "checkpoints").symlink_to(tmp_path / "victim")
    before = contents(tmp_path / "victim"), (copied / "metrics.jsonl").read_bytes()
    done = go_on(copied)
    assert (done.returncode, "checkpoints: is a link, which is not followed" in done.stderr) == (2, True), done.stderr
    assert (contents(tmp_path / "victim"), (copied / "metrics.jsonl").read_bytes()) == before


def test_a_pipe_as_summary_is_not_waited_for(copied):
    (copied / "summary.json").unlink()
    os.mkfifo(copied / "summary.json")
    assert run("--resume", copied).returncode == 0


@pytest.mark.parametrize("what", ["checkpoints", "run"])
def test_a_folder_that_goes_away_while_training_is_made_again(what, tmp_path):
    folder = tmp_path / "run"
    process = subprocess.Popen([WDTRAIN, *LONG, "--run_dir", str(folder), "--fault", "iter=1,kind=slow:20"], stderr=subprocess.PIPE, text=True)
    wait_for(lambda: iterations(folder) >= 5)
    gone = folder if what == "run" else folder / "checkpoints"
    gone.rename(tmp_path / "moved")
    wait_for(lambda: (folder / "checkpoints" / "latest").exists())
    seen = iterations(folder)
    wait_for(lambda: iterations(folder) > seen + 2)
    process.send_signal(signal.SIGTERM)
    _, text = process.communicate(timeout=30)
    assert process.returncode == 143, text
    assert "was deleted while training (or moved); it is made again" in text
    assert "File exists" not in text and "cannot make it" not in text, text
    assert (folder / "config.yaml").exists() and (folder / ".lock").exists()
    last = json.loads((folder / "summary.json").read_text())["iterations"]
    assert run("--resume", folder, "--total_steps", 56 * (last + 2)).returncode == 0


def test_the_lock_that_was_removed_is_taken_again(tmp_path):
    folder = tmp_path / "run"
    process = subprocess.Popen([WDTRAIN, *LONG, "--run_dir", str(folder), "--fault", "iter=1,kind=slow:20"], stderr=subprocess.PIPE, text=True)
    wait_for(lambda: iterations(folder) >= 3)
    (folder / ".lock").unlink()
    wait_for(lambda: (folder / ".lock").exists())
    done = run("--resume", folder)
    process.kill()
    process.communicate()
    assert (done.returncode, "is in use by process" in done.stderr) == (2, True), done.stderr


def test_a_save_that_fails_leaves_nothing_behind(tmp_path):
    for call in ("fsync:40", "rename:30"):
        folder = tmp_path / call.replace(":", "-")
        done = run(*options("cartpole", "PPO"), "--run_dir", folder, failpoint=f"{call}:ENOSPC")
        assert "older checkpoints are unchanged" in done.stderr, done.stderr
        assert [path.name for path in (folder / "checkpoints").iterdir() if path.name.startswith(".stage")] == []


def test_what_has_a_checkpoints_name_is_set_aside(tmp_path):
    folder = tmp_path / "run"
    process = subprocess.Popen([WDTRAIN, *LONG, "--run_dir", str(folder), "--set", "saving.checkpoint_freq=20", "--fault", "iter=10,kind=slow:100"],
                               stderr=subprocess.PIPE, text=True)
    wait_for(lambda: iterations(folder) >= 10)
    (folder / "checkpoints" / "00000020").write_text("mine")
    wait_for(lambda: (folder / "checkpoints" / "00000020" / "manifest.json").exists())
    process.kill()
    _, text = process.communicate()
    assert "00000020 was there already: set aside" in text
    assert (folder / "checkpoints" / ".aside-00000020").read_text() == "mine"


def test_checkpoints_have_the_rights_that_the_umask_leaves(finished):
    mask = os.umask(0)
    os.umask(mask)
    for path in (finished / "checkpoints" / "latest").resolve(), finished / "checkpoints" / "latest" / "weights":
        assert stat.S_IMODE(path.stat().st_mode) == 0o777 & ~mask


def test_checkpoints_by_time_change_nothing_else(tmp_path):
    slow = ["--fault", "iter=1,kind=slow:60"]
    for name, seconds in (("with", "0.1"), ("without", "0")):
        more = ["--set", "saving.checkpoint_freq=0", "--set", f"saving.checkpoint_seconds={seconds}", "--set", "saving.keep_last=100"]
        assert run(*options("cartpole", "PPO"), *more, *slow, "--run_dir", tmp_path / name).returncode == 0
    assert left(tmp_path / "with") == left(tmp_path / "without")
    names = {name: [path.name for path in (tmp_path / name / "checkpoints").iterdir() if path.name.isdigit()] for name in ("with", "without")}
    assert sorted(names["without"]) == ["00000000", "00000012"]
    assert len(names["with"]) >= 4, names  # every second iteration


def test_going_on_tells_what_is_made_again_and_puts_the_old_error_by(tmp_path):
    folder = tmp_path / "run"
    arguments = [*options("cartpole", "PPO", 6), "--set", "saving.checkpoint_freq=4", "--run_dir", folder]
    assert run(*arguments, "--fault", "iter=4,kind=segv").returncode == -signal.SIGSEGV
    assert json.loads((folder / "error.json").read_text())["iteration"] == 4
    # summary.json is written once per second; this test inserts the number of a killed run.
    summary = json.loads((folder / "summary.json").read_text())
    (folder / "summary.json").write_text(json.dumps({**summary, "iterations": 3}))
    done = subprocess.run([WDTRAIN, "--resume", str(folder)], capture_output=True, text=True)
    assert done.returncode == 0
    assert "the run had come to iteration 3: 3 iterations are made again" in done.stderr
    assert (folder / "previous_error.json").exists() and not (folder / "error.json").exists()
    assert json.loads((folder / "summary.json").read_text())["status"] == "finished"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_a_checkpoint_that_may_not_be_read_says_so(finished, tmp_path):
    place = shutil.copytree((finished / "checkpoints" / "latest").resolve(), tmp_path / "theirs")
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:
        if parent.name.startswith("pytest"):
            parent.chmod(0o755)
    place.chmod(0o700)
    done = subprocess.run([WDTRAIN, "--env", "cartpole", "--warm_start", str(place), "--run_dir", "/proc/none"], capture_output=True, text=True,
                          user=65534, group=65534, extra_groups=[])
    assert "Permission denied" in done.stderr and "no such file" not in done.stderr, done.stderr


@pytest.mark.parametrize("name", ["rollout.html", ".rollout.html.tmp", "report.html", ".report.html.tmp"])
@pytest.mark.parametrize("how", ["link", "dangling link", "hard link", "pipe"])
def test_pages_that_no_user_named_lead_nowhere_else(name, how, copied, tmp_path):
    victim, path = tmp_path / "victim", copied / name
    path.unlink(missing_ok=True)
    if how != "dangling link":
        victim.write_text("mine")
    if how == "pipe":
        os.mkfifo(path)
    else:
        (os.link if how == "hard link" else os.symlink)(victim, path)
    if "rollout" in name:
        done = subprocess.run([WDTRAIN, "play", "--run", str(copied), "--max_steps", "3"], capture_output=True, text=True, timeout=60)
    else:
        done = subprocess.run([WDTRAIN, "report", "."], capture_output=True, text=True, timeout=60, cwd=copied)
    assert done.returncode == 0, done.stderr
    assert (victim.read_text() if victim.exists() else None) == (None if how == "dangling link" else "mine")
    page = copied / ("rollout.html" if "rollout" in name else "report.html")
    assert page.is_file() and not page.is_symlink() and page.read_text().lower().startswith("<!doctype html>")
    assert not (copied / f".{page.name}.tmp").exists()


def test_recorded_episodes_do_not_follow_a_link_and_are_missed_in_one_line(copied, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (copied / "rollouts").symlink_to(tmp_path / "elsewhere")
    done = run("--resume", copied, "--total_steps", 448, "--set", "play.every=1", "--set", "play.max_steps=3")
    assert done.returncode == 0 and list((tmp_path / "elsewhere").iterdir()) == []
    assert done.stderr.count("rollouts: is a link, which is not followed") == 1, done.stderr
    assert done.stderr.count("training goes on without rollouts") == 1


def test_an_old_error_that_cannot_be_put_by_is_a_warning(copied):
    (copied / "error.json").write_text("{}")
    (copied / "previous_error.json").mkdir()
    done = go_on(copied)
    assert done.returncode == 0 and "error.json is about an earlier failure" in done.stderr, done.stderr


@pytest.mark.parametrize("old", [False, True])
def test_a_run_that_was_killed_before_its_report_gets_it_when_it_is_continued(old, copied):
    page, rest = copied / "report.html", copied / ".report.html.tmp"
    rest.write_text("a part")
    if old:
        os.utime(page, (1, 1))
    else:
        page.unlink()
    done = subprocess.run([WDTRAIN, "--resume", str(copied)], capture_output=True, text=True)
    assert done.returncode == 0 and "nothing is left to do" in done.stderr
    assert page.stat().st_mtime > 1 and not rest.exists()
    written = page.stat().st_mtime_ns
    assert run("--resume", copied).returncode == 0 and page.stat().st_mtime_ns == written, "once is enough"
