"""Training with several workers: how it stops, and how it fails."""

import json
import os
import pathlib
import re
import signal
import time

import pytest

from checkpoint.runs import left, options
from distributed.jobs import GRIDWORLD, alive, children, finish, iterations, run, shell_loop, start, trained, wait_for

ENDLESS = options("tag_gridworld", "PPO", iterations=100_000)
LONG = [*ENDLESS, "--set", "saving.checkpoint_freq=1000"]


def error(folder):
    return json.loads((folder / "error.json").read_text())


def summary(folder):
    return json.loads((folder / "summary.json").read_text())


def checkpoints(folder):
    return sorted(path.name for path in (folder / "checkpoints").iterdir() if path.name.isdigit())


def test_L1_a_killed_rank_ends_the_job(tmp_path):
    folder = tmp_path / "run"
    process = start(*LONG, "--run_dir", folder, workers=4)
    wait_for(lambda: iterations(folder) >= 3)
    ranks = children(process.pid)
    assert len(ranks) == 4
    begun = time.monotonic()
    os.kill(ranks[1], signal.SIGKILL)
    finish(process, 15)
    assert time.monotonic() - begun < 5 + 2
    assert process.returncode == 128 + signal.SIGKILL
    assert not any(alive(pid) for pid in ranks)
    assert "rank 1" in process.stderr_text and error(folder)["rank"] == 1


@pytest.mark.parametrize("kind, code", [("throw", 1), ("exit:7", 7), ("kill", 137), ("segv", 139), ("oom", 1), ("exit:0", 1)])
def test_L2_L4_exit_codes_and_reports(kind, code, tmp_path):
    folder = tmp_path / "run"
    done = run(*GRIDWORLD, "--run_dir", folder, "--fault", f"rank=1,iter=5,kind={kind}")
    assert done.returncode == code, done.stderr_text
    told = error(folder)
    assert (told["rank"], told["iteration"]) == (1, 5)
    assert told["host"] and told["pid"] and told["device"] == "cpu" and told["time"]
    if kind == "throw":
        assert told["message"] == "fault on purpose in iteration 5"
    if kind == "segv":
        assert any("inject" in frame for frame in told["backtrace"])
    assert "rank 1" in done.stderr_text and "rank_1.log" in done.stderr_text
    assert checkpoints(folder)[-1] == "00000004", "the newest checkpoint stays"


def test_L2_bad_usage_is_refused_before_any_worker_starts(tmp_path):
    for arguments, words in [(["--num_workers", "0"], "--num_workers 0"), (["--num_gpus", "4"], "GPU"), (["--num_nodes", "2"], "--node_index"),
                             (["--num_workers", "2", "--set", "policy.tagger.lr=x"], "policy.tagger.lr"),
                             (["--num_gpus", "2", "--device", "cpu"], "use --num_workers 2 --device cpu"), (["--rendezvous", "tcp://a:1"], "--num_nodes")]:
        done = run("--env", "tag_gridworld", "--run_dir", tmp_path / "run", *arguments, workers=0, env={"CUDA_VISIBLE_DEVICES": ""})
        assert done.returncode == 2 and words in done.stderr_text, (arguments, done.stderr_text)
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("whom", ["launcher", "group", "worker"])
def test_L7_T9_a_signal_stops_all_at_the_same_iteration(number, code, whom, tmp_path):
    folder = tmp_path / "run"
    process = start(*LONG, "--run_dir", folder, start_new_session=True)
    wait_for(lambda: iterations(folder) >= 5)
    if whom == "group":
        os.killpg(process.pid, number)
    else:
        os.kill(process.pid if whom == "launcher" else children(process.pid)[1], number)
    finish(process)
    assert process.returncode == code, process.stderr_text
    stopped = summary(folder)
    assert (stopped["status"], stopped["stop_reason"]) == ("stopped", "signal")
    assert checkpoints(folder)[-1] == f"{iterations(folder):08d}", "one checkpoint, of the last iteration"
    assert len(checkpoints(folder)) == 2  # the first and the last checkpoint
    again = run("--resume", folder, "--total_steps", 56 * (iterations(folder) + 2))
    assert again.returncode == 0, again.stderr_text


def test_L7_one_worker_under_a_launcher_hears_one_interrupt_twice(tmp_path):
    folder = tmp_path / "run"
    process = start(*LONG, "--run_dir", folder, "--max_restarts", 1, workers=1, start_new_session=True)
    wait_for(lambda: iterations(folder) >= 5)
    # Like Ctrl-C, the signal reaches both the worker and the launcher, which passes it on.
    os.killpg(process.pid, signal.SIGINT)
    finish(process)
    assert process.returncode == 130, process.stderr_text
    assert summary(folder)["stop_reason"] == "signal"


def test_L7_the_second_interrupt_stops_at_once(tmp_path):
    folder = tmp_path / "run"
    process = start(*LONG, "--run_dir", folder, "--fault", "rank=1,iter=4,kind=hang", start_new_session=True)
    wait_for(lambda: iterations(folder) >= 3)
    time.sleep(0.3)
    ranks = children(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None, "the first one waits for the iteration"
    begun = time.monotonic()
    os.kill(process.pid, signal.SIGINT)
    finish(process)
    assert process.returncode == 130 and time.monotonic() - begun < 2
    assert not any(alive(pid) for pid in ranks)


@pytest.mark.parametrize("arguments, reason", [([*ENDLESS, "--max_seconds", "1.5"], "max_seconds"),
                                               ([*ENDLESS, "--stop_return", "-1000", "--set", "env.episode_length=5"], "stop_return"),
                                               (GRIDWORLD, "total_steps")])
def test_T9_every_end_is_an_end_for_all(arguments, reason, tmp_path):
    folder = tmp_path / "run"
    done = run(*arguments, "--run_dir", folder)
    assert done.returncode == 0, done.stderr_text
    assert summary(folder)["stop_reason"] == reason
    assert checkpoints(folder)[-1] == f"{iterations(folder):08d}"


def test_L9_workers_with_other_settings_are_refused(tmp_path):
    done = shell_loop(tmp_path / "run", 2, *GRIDWORLD, per_rank=lambda rank: ["--seed", str(rank + 1)])
    assert done[1].returncode == 2
    assert "rank 1 was started with other settings than rank 0" in done[1].stderr_text
    assert "rank 0:   seed: 1" in done[1].stderr_text and "here:     seed: 2" in done[1].stderr_text
    assert done[0].returncode == 1 and "rank 1 was started with other settings" in done[0].stderr_text
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("how", ["hang", "stop"])
def test_L11_a_hang_is_found_and_named(how, tmp_path):
    folder = tmp_path / "run"
    fault = ["--fault", "rank=1,iter=6,kind=hang"] if how == "hang" else []
    process = start(*LONG, *fault, "--run_dir", folder, "--step_seconds", 2, "--grace_seconds", 1)
    wait_for(lambda: iterations(folder) >= 5)
    ranks = children(process.pid)
    if how == "stop":
        os.kill(ranks[1], signal.SIGSTOP)
    finish(process, 30)
    assert process.returncode == 124, process.stderr_text
    assert error(folder)["rank"] == 1 and "rank 1" in process.stderr_text
    assert not any(alive(pid) for pid in ranks)


def test_L12_one_worker_is_the_same_with_and_without_a_launcher(tmp_path):
    alone = trained(tmp_path / "alone", *GRIDWORLD, workers=0)
    assert trained(tmp_path / "one", *GRIDWORLD, workers=1) == alone
    assert trained(tmp_path / "launched", *GRIDWORLD, "--max_restarts", 1, workers=1) == alone
    (done,) = shell_loop(tmp_path / "joined", 1, *GRIDWORLD)
    assert done.returncode == 0, done.stderr_text
    assert left(tmp_path / "joined") == alone


def test_L6_the_store_listens_on_the_loopback_alone(tmp_path):
    folder = tmp_path / "run"
    process = start(*LONG, "--run_dir", folder)
    wait_for(lambda: iterations(folder) >= 2)
    inodes = set()
    for pid in [process.pid, *children(process.pid)]:
        for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            found = re.match(r"socket:\[(\d+)\]", os.readlink(descriptor))
            if found:
                inodes.add(found[1])
    listening = []
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                listening.append(fields[1].split(":")[0])
    process.send_signal(signal.SIGTERM)
    finish(process)
    assert listening and set(listening) == {"0100007F"}, listening  # 127.0.0.1


def test_L10_the_launcher_has_one_thread_and_no_gpu(tmp_path):
    folder = tmp_path / "run"
    process = start(*LONG, "--run_dir", folder)
    wait_for(lambda: iterations(folder) >= 1)
    threads = list(pathlib.Path(f"/proc/{process.pid}/task").iterdir())
    files = [os.readlink(path) for path in pathlib.Path(f"/proc/{process.pid}/fd").iterdir()]
    ranks = children(process.pid)
    os.kill(process.pid, signal.SIGKILL)  # L5: no process may remain
    finish(process)
    wait_for(lambda: not any(alive(pid) for pid in ranks), 5)
    assert len(threads) == 1
    assert not any("nvidia" in name for name in files)
