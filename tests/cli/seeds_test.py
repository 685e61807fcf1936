"""`train --seeds`: one training for each seed, the same as alone, through failures, Ctrl-C and kills."""

import contextlib
import json
import os
import pathlib
import pty
import random
import re
import select
import signal
import subprocess
import time

import pytest

from checkpoint.runs import left, wait_for
from cli.program import output, wdtrain
from launcher.gangs import variables_of
from launcher.nvml import driver  # noqa: F401

STEPS = 64 * 40
SHORT = ["train", "cartpole", "--device", "cpu", "--num_envs", 8, "--train_batch_size", 64, "--total_steps", STEPS, "--stop_return", 1e9,
         "--set", "saving.checkpoint_freq=5", "--set", "saving.metrics_log_freq=1"]
ENDLESS = [*SHORT, "--total_steps=1G"]
del ENDLESS[ENDLESS.index("--total_steps") : ENDLESS.index("--total_steps") + 2]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What three trainings of one seed each leave."""
    place = tmp_path_factory.mktemp("alone")
    for seed in (1, 2, 3):
        output(*SHORT, "--seed", seed, "--run_dir", place / str(seed), "--quiet")
    return {seed: left(place / str(seed)) for seed in (1, 2, 3)}


def results(folder):
    return {seed: left(folder / str(seed)) for seed in (1, 2, 3)}


def starts(folder):
    return len((folder / "starts.jsonl").read_text().splitlines())


def begin(*arguments, **settings):
    words = [os.environ["WDTRAIN"], *map(str, arguments)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **settings)


def processes_of(folder):
    """Those that train below this folder."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if f"--run_dir={folder}/".encode() in path.read_bytes():
                found.append(int(path.parent.name))
    return found


def rows(folder):
    with contextlib.suppress(FileNotFoundError):
        return len((folder / "metrics.jsonl").read_text().splitlines())
    return 0


def test_each_seed_trains_as_it_does_alone(alone, tmp_path):
    folder = tmp_path / "some seeds"
    text = output(*SHORT, "--seeds", "1..3", "--run_dir", folder)
    assert results(folder) == alone
    assert {path.name for path in folder.iterdir()} == {"1", "2", "3", "report.html", ".lock"}
    for seed in (1, 2, 3):
        assert len(re.findall(rf"^seed {seed} \| finished \| iteration 40, 2.56k of 2.56k steps ", text, re.M)) == 2
    assert "3 of 3 done, 0 running, 0 failed | 7.68k of 7.68k steps" in text
    assert re.search(r"^shared/recent_return: IQM [\d.]+ of 3 seeds$", text, re.M)
    assert "stop_return 1.0e+09: reached by 0 of 3 seeds" in text
    refused = wdtrain(*SHORT, "--seeds", "1..3", "--run_dir", folder)
    assert refused.returncode == 2 and "--resume auto" in refused.stderr and starts(folder / "1") == 1
    again = wdtrain(*SHORT, "--seeds", "1,2..3", "--run_dir", folder, "--resume", "auto", "--quiet")
    assert (again.returncode, again.stdout, results(folder)) == (0, "", alone), again.stderr
    assert starts(folder / "1") == 1, "a finished seed begins no more"


def test_lists_jobs_and_the_folder_without_a_name(alone, tmp_path):
    text = output(*SHORT, "--seeds", "3,1", "--jobs", 1, "--threads", 2, "--quiet", cwd=tmp_path)
    (folder,) = (tmp_path / "runs" / "cartpole").iterdir()
    assert text == "" and re.fullmatch(r"\d{8}-\d{6}-seeds", folder.name)
    assert [left(folder / seed) for seed in "31"] == [alone[3], alone[1]]
    begun = [json.loads((folder / seed / "summary.json").read_text())["hardware"] and (folder / seed / "config.yaml").stat().st_mtime for seed in "31"]
    assert begun[0] < begun[1]
    assert "threads: 2" in (folder / "1" / "config.yaml").read_text()


@pytest.mark.parametrize("who", ["parent", "all"])
def test_killed_at_any_moment_it_goes_on_to_the_same_results(who, alone, tmp_path):
    folder, chance = tmp_path / "run", random.Random(who)
    command = [*SHORT, "--seeds", "1..3", "--jobs", 2, "--run_dir", folder, "--resume", "auto", "--quiet"]
    for _ in range(4):
        batch = begin(*command)
        with contextlib.suppress(subprocess.TimeoutExpired):
            batch.wait(chance.uniform(0.3, 1.2))
        for process in [batch.pid, *(processes_of(folder) if who == "all" else [])]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        batch.communicate()
    done = wdtrain(*command)
    assert (done.returncode, results(folder)) == (0, alone), done.stderr
    for seed in "123":
        iterations = [json.loads(line)["iteration"] for line in (folder / seed / "metrics.jsonl").read_text().splitlines()]
        assert iterations == list(range(1, 41))


def test_children_of_a_killed_parent_end_with_a_checkpoint(tmp_path):
    batch = begin(*ENDLESS, "--seeds", "1..2", "--jobs", 2, "--run_dir", tmp_path / "run", "--quiet")
    wait_for(lambda: all(rows(tmp_path / "run" / seed) > 3 for seed in "12"))
    batch.kill()
    batch.communicate()
    wait_for(lambda: not processes_of(tmp_path / "run"))
    for seed in "12":
        summary = json.loads((tmp_path / "run" / seed / "summary.json").read_text())
        assert (summary["status"], summary["stop_reason"]) == ("stopped", "signal")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_all_in_good_order(number, tmp_path):
    batch = begin(*ENDLESS, "--seeds", "1..3", "--jobs", 2, "--run_dir", tmp_path / "some run")
    wait_for(lambda: all(rows(tmp_path / "some run" / seed) > 3 for seed in "12"))
    batch.send_signal(number)
    out, err = batch.communicate(timeout=30)
    assert batch.returncode == 128 + number, err
    assert f"to go on: the same command with --run_dir '{tmp_path}/some run' --resume auto\n" in err and "failed" not in err
    for seed in "12":
        assert json.loads((tmp_path / "some run" / seed / "summary.json").read_text())["status"] == "stopped"
    assert not (tmp_path / "some run" / "3").exists() and "seed 1 | stopped" in out


def test_a_second_signal_ends_them_at_once(tmp_path):
    batch = begin(*ENDLESS, "--seeds", "1..2", "--jobs", 2, "--run_dir", tmp_path / "run", "--fault", "rank=0,iter=3,kind=hang", "--quiet")
    wait_for(lambda: all(rows(tmp_path / "run" / seed) == 2 for seed in "12"))
    batch.send_signal(signal.SIGINT)
    assert "once more to stop at once" in batch.stderr.readline()
    time.sleep(0.3)
    assert batch.poll() is None
    batch.send_signal(signal.SIGINT)
    batch.communicate(timeout=30)
    assert batch.returncode == 130 and not processes_of(tmp_path / "run")


def test_a_seed_that_fails_is_named_and_the_others_end(alone, tmp_path):
    folder = tmp_path / "run"
    output(*SHORT, "--seed", 2, "--run_dir", folder / "2", "--quiet")
    for path in (folder / "2" / "checkpoints").glob("*/manifest.json"):
        path.write_text("{}")
    command = [*SHORT, "--seeds", "1..3", "--run_dir", folder, "--resume", "auto"]
    done = wdtrain(*command)
    assert done.returncode == 1
    assert done.stderr.count("error: seed 2 failed with exit code 1") == 2 and "checkpoints can be read; nothing was changed" in done.stderr
    assert "seed 2 | failed | " in done.stdout and "2 of 3 done, 0 running, 1 failed" in done.stdout
    assert [left(folder / seed) for seed in "13"] == [alone[1], alone[3]]
    (tmp_path / "other" / "2").mkdir(parents=True)
    (tmp_path / "other" / "2" / "precious").write_text("x")
    done = wdtrain(*SHORT, "--seeds", "1..2", "--run_dir", tmp_path / "other", "--resume", "auto", "--quiet")
    assert done.returncode == 2 and "is not empty (it holds precious)" in done.stderr
    assert left(tmp_path / "other" / "1") == alone[1]


def test_warnings_are_shown_once(tmp_path):
    done = wdtrain("train", "cartpole", "--device", "cpu", "--total_steps", 1000, "--seeds", "1..3", "--run_dir", tmp_path / "run")
    assert len(re.findall(r"^warning: seed \d: .* is rounded up to 1024", done.stderr, re.M)) == 1
    assert done.stderr.count("is rounded up to") == 1


@pytest.mark.parametrize("more, words", [
    (["--set", "policy.shared.lrr=1"], "unknown key"), (["--set", "trainer.observations=table"], "this environment has no Spec::table"),
    (["--seed", 3], "name all seeds with --seeds"), (["--set", "trainer.seed=3"], "name all seeds with --seeds"),
    (["--resume", "runs/a"], "--resume auto goes on"), (["--resume", "auto"], "give --run_dir FOLDER"), (["--profile"], "--profile"), (["--auto_scale"], "--auto_scale"),
    (["--num_nodes", 2, "--node_index", 0], "--num_nodes"), (["--jobs", 0], "--jobs 0"), (["--jobs", "many"], "--jobs many"),
    (["--warm_start", "nowhere"], "nowhere"),
])
def test_what_is_wrong_is_one_error_and_begins_nothing(more, words, tmp_path):
    done = wdtrain("train", "cartpole", "--device", "cpu", "--seeds", "1..3", *more, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("error: ")) == (2, "", 1), done.stderr
    assert words in done.stderr and not list(tmp_path.iterdir())


@pytest.mark.parametrize("seeds, words", [("3..1", "FIRST..LAST"), ("1,2,1..3", "twice"), ("a", "whole number"), ("1..", "whole number"), (",", "whole number"),
                                          ("0..10k", "at most 1000"), ("-1", "must be in [0, ")])
def test_lists_that_are_none(seeds, words, tmp_path):
    done = wdtrain("train", "cartpole", f"--seeds={seeds}", cwd=tmp_path)
    assert (done.returncode, words in done.stderr) == (2, True), done.stderr


def test_workers_of_a_job_have_no_seeds(tmp_path):
    done = wdtrain("train", "cartpole", "--seeds", "1..2", cwd=tmp_path, env={**os.environ, "RANK": "0", "WORLD_SIZE": "2"})
    assert done.returncode == 2 and "outside of torchrun and srun" in done.stderr
    assert wdtrain("train", "cartpole", "--jobs", 2).returncode == 2


def test_the_configuration_of_the_first_seed_is_shown(tmp_path):
    text = output("train", "cartpole", "--seeds", "7,5", "--print_config", cwd=tmp_path)
    assert re.search(r"seed: 7 +# --seeds", text) and not list(tmp_path.iterdir())


def test_each_seed_may_have_workers(tmp_path):
    words = [*SHORT, "--num_workers", 2]
    output(*words, "--seed", 2, "--run_dir", tmp_path / "alone", "--quiet")
    output(*words, "--seeds", "1..2", "--run_dir", tmp_path / "run", "--quiet")
    assert left(tmp_path / "run" / "2") == left(tmp_path / "alone")


@pytest.mark.parametrize("jobs, seen", [([], ["0", "2"]), (["--jobs", 3], ["0", "2", "0"])])
def test_seeds_are_spread_over_gpus(jobs, seen, driver, tmp_path):
    words = [word for word in ENDLESS if word not in ("--device", "cpu")]  # torch finds none of these GPUs
    batch = begin(*words, "--seeds", "1..4", *jobs, "--run_dir", tmp_path / "run", env={**os.environ, **driver(3, CUDA_VISIBLE_DEVICES="0,2")})
    try:
        wait_for(lambda: len(processes_of(tmp_path / "run")) == len(seen))
        assert [variables_of(pid)["CUDA_VISIBLE_DEVICES"] for pid in sorted(processes_of(tmp_path / "run"))] == seen
    finally:
        os.killpg(batch.pid, signal.SIGKILL)
        batch.communicate()


def test_a_terminal_has_a_table_that_changes(tmp_path):
    ours, theirs = pty.openpty()
    batch = subprocess.Popen([os.environ["WDTRAIN"], *map(str, ENDLESS), "--seeds", "1..3", "--max_seconds", "2", "--jobs", "2", "--run_dir", tmp_path / "run"],
                             stdout=theirs, stderr=subprocess.PIPE, env={**os.environ, "TERM": "xterm"}, start_new_session=True)
    os.close(theirs)
    text = b""
    while select.select([ours], [], [], 30)[0]:
        with contextlib.suppress(OSError):
            got = os.read(ours, 65536)
            text += got
            if got:
                continue
        break
    assert batch.wait(30) == 0
    batch.stderr.close()
    os.close(ours)
    assert text.count(b"\x1b[4A") >= 2 and b"2 running" in text and b"seed 3 | waiting" in text
    assert b"3 of 3 done" in text.rsplit(b"\x1b[J", 1)[1]
