"""Training by several workers: how it starts, stops, fails and goes on again."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from checkpoint.runs import WDTRAIN, left, options
from distributed.jobs import (GRIDWORLD, alive, children, finish, free_port, iterations, run, shell_loop, start, trained, wait_for)

ENDLESS = options("tag_gridworld", "PPO", iterations=100_000)
LONG = [*ENDLESS, "--set", "saving.checkpoint_freq=1000"]


def error(folder):
    return json.loads((folder / "error.json").read_text())


def summary(folder):
    return json.loads((folder / "summary.json").read_text())


def checkpoints(folder):
    return sorted(path.name for path in (folder / "checkpoints").iterdir() if path.name.isdigit())


@pytest.fixture(scope="module")
def unharmed(tmp_path_factory):
    """What two workers leave of an undisturbed training."""
    return trained(tmp_path_factory.mktemp("unharmed") / "run", *GRIDWORLD)


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
        assert any("strike" in frame for frame in told["backtrace"])
    assert "rank 1" in done.stderr_text and "rank_1.log" in done.stderr_text
    assert checkpoints(folder)[-1] == "00000004", "the newest checkpoint stays"


def test_L2_bad_usage_is_refused_before_any_worker_starts(tmp_path):
    for arguments, words in [(["--num_workers", "0"], "--num_workers 0"), (["--num_gpus", "4"], "GPU"), (["--num_nodes", "2"], "--node_index"),
                             (["--num_workers", "2", "--set", "policy.tagger.lr=x"], "policy.tagger.lr"),
                             (["--num_gpus", "2", "--device", "cpu"], "use --num_workers 2 --device cpu"), (["--rendezvous", "tcp://a:1"], "--num_nodes")]:
        begun = time.monotonic()
        done = run("--env", "tag_gridworld", "--run_dir", tmp_path / "run", *arguments, workers=0, env={"CUDA_VISIBLE_DEVICES": ""})
        assert done.returncode == 2 and words in done.stderr_text, (arguments, done.stderr_text)
        assert time.monotonic() - begun < 5 and not (tmp_path / "run").exists()


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
    assert len(checkpoints(folder)) == 2  # the first and the last
    again = run("--resume", folder, "--total_steps", 56 * (iterations(folder) + 2))
    assert again.returncode == 0, again.stderr_text


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


STARTERS = {
    "shell": lambda rank: {"RANK": str(rank), "WORLD_SIZE": "2"},
    "slurm": lambda rank: {"SLURM_PROCID": str(rank), "SLURM_NTASKS": "2", "SLURM_LOCALID": str(rank), "SLURM_JOB_ID": "77"},
    "openmpi": lambda rank: {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": str(rank)},
}


@pytest.mark.parametrize("starter", STARTERS)
def test_L13_workers_that_others_start_join(starter, unharmed, tmp_path):
    done = shell_loop(tmp_path / "run", 2, *GRIDWORLD, variables=STARTERS[starter])
    assert [process.returncode for process in done] == [0, 0], done[0].stderr_text + done[1].stderr_text
    assert left(tmp_path / "run") == unharmed


def test_L13_torchrun(unharmed, tmp_path):
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", str(free_port()), "--no-python"]
    done = subprocess.run([*torchrun, WDTRAIN, *map(str, GRIDWORLD), "--run_dir", str(tmp_path / "run"), "--quiet"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert left(tmp_path / "run") == unharmed


@pytest.mark.parametrize("scheme", ["tcp", "file"])
def test_L13_two_nodes(scheme, unharmed, tmp_path):
    (tmp_path / "meet").mkdir()
    place = f"tcp://127.0.0.1:{free_port()}" if scheme == "tcp" else f"file://{tmp_path / 'meet'}"
    both = [start(*GRIDWORLD, "--run_dir", tmp_path / "run", "--num_nodes", 2, "--node_index", node, "--rendezvous", place, workers=1)
            for node in (1, 0)]
    for process in both:
        finish(process)
        assert process.returncode == 0, process.stderr_text
    assert left(tmp_path / "run") == unharmed
    assert list((tmp_path / "meet").iterdir()) == []


def test_L3_a_failure_on_another_node_is_named_here(tmp_path):
    place = f"tcp://127.0.0.1:{free_port()}"
    both = [start(*GRIDWORLD, "--run_dir", tmp_path / "run", "--num_nodes", 2, "--node_index", node, "--rendezvous", place,
                  "--fault", "rank=1,iter=5,kind=exit:9", workers=1) for node in (0, 1)]
    for process in both:
        finish(process, 30)
    assert both[1].returncode == 9 and both[0].returncode == 9, both[0].stderr_text
    assert "rank 1" in both[0].stderr_text


def test_L14_after_a_failure_all_start_again_from_the_newest_checkpoint(unharmed, tmp_path):
    folder = tmp_path / "run"
    done = run(*GRIDWORLD, "--run_dir", folder, "--fault", "rank=1,iter=7,kind=kill", "--max_restarts", 1)
    assert done.returncode == 0, done.stderr_text
    assert left(folder) == unharmed
    assert "rank 1" in done.stderr_text


def test_L14_restarts_end_where_no_progress_is_made(tmp_path):
    folder = tmp_path / "run"
    done = run(*GRIDWORLD, "--run_dir", folder, "--fault", "rank=1,iter=7,times=9,kind=exit:5", "--max_restarts", 5)
    assert done.returncode == 5
    assert "came no further" in done.stderr_text
    log = (folder / "rank_1.log").read_text()
    assert log.count("restart") == 1, log  # tried once more, not five times


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_C5_a_checkpoint_of_two_workers_goes_on_with_any_number(workers, unharmed, tmp_path):
    folder = tmp_path / "run"
    assert run(*GRIDWORLD, "--run_dir", folder, "--fault", "rank=0,iter=7,kind=kill").returncode == 137
    done = run("--resume", folder, workers=workers)
    assert done.returncode == 0, done.stderr_text
    if workers == 2:
        assert left(folder) == unharmed
        return
    assert f"was written by 2 workers, {workers} go on" in done.stderr_text
    for row, expected in zip(left(folder)[0], unharmed[0], strict=True):
        assert row["tagger/reward_mean"] == pytest.approx(expected["tagger/reward_mean"], rel=1e-4)
        assert row["tagger/value_loss"] == pytest.approx(expected["tagger/value_loss"], rel=1e-2)


def test_C5_a_checkpoint_of_two_workers_is_played_by_one_process(tmp_path):
    trained(tmp_path / "run", *GRIDWORLD)
    for path in (tmp_path / "run").rglob("optimizer"):
        shutil.rmtree(path)
    played = subprocess.run([WDTRAIN, "eval", "--run", str(tmp_path / "run"), "--episodes", "8", "--device", "cpu"], capture_output=True, text=True)
    assert played.returncode == 0, played.stderr


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


def test_L6_twenty_jobs_at_once_do_not_meet(tmp_path):
    arguments = options("tag_gridworld", "A2C", iterations=2)
    jobs = [start(*arguments, "--run_dir", tmp_path / str(k), "--seed", k) for k in range(20)]
    for process in jobs:
        finish(process, 300)
        assert process.returncode == 0, process.stderr_text
    assert all(summary(tmp_path / str(k))["seed"] == k for k in range(20))


def test_L6_a_worker_of_another_run_is_refused(tmp_path):
    done = shell_loop(tmp_path / "run", 2, *GRIDWORLD,
                      variables=lambda rank: {"RANK": str(rank), "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": f"run-{rank}"},
                      per_rank=lambda rank: ["--start_seconds", "5", "--step_seconds", "5", "--checkpoint_seconds", "5"])
    assert done[1].returncode == 2, done[1].stderr_text
    assert "belongs to run 'run-0', this worker (rank 1) to run 'run-1'" in done[1].stderr_text
    assert done[0].returncode == 1  # nobody came


def test_L10_the_launcher_has_one_thread_and_no_gpu(tmp_path):
    folder = tmp_path / "run"
    process = start(*LONG, "--run_dir", folder)
    wait_for(lambda: iterations(folder) >= 1)
    threads = list(pathlib.Path(f"/proc/{process.pid}/task").iterdir())
    files = [os.readlink(path) for path in pathlib.Path(f"/proc/{process.pid}/fd").iterdir()]
    ranks = children(process.pid)
    os.kill(process.pid, signal.SIGKILL)  # L5: nobody is left behind
    finish(process)
    wait_for(lambda: not any(alive(pid) for pid in ranks), 5)
    assert len(threads) == 1
    assert not any("nvidia" in name for name in files)


def test_stragglers_are_cut_short_and_told(tmp_path):
    arguments = ["--env", "tag_gridworld", "--num_envs", "8", "--train_batch_size", "320", "--total_steps", "3200", "--device", "cpu",
                 "--set", "saving.metrics_log_freq=1", "--fault", "rank=1,iter=1,kind=slow:400"]
    whole = run(*arguments, "--run_dir", tmp_path / "whole")
    assert whole.returncode == 0 and "rollouts of rank 1 take" in whole.stderr_text
    cut = run(*arguments, "--run_dir", tmp_path / "cut", "--set", "trainer.straggler_preempt=0.5")
    assert cut.returncode == 0, cut.stderr_text
    rows = [json.loads(line) for line in (tmp_path / "cut" / "metrics.jsonl").read_text().splitlines()]
    steps = [rows[0]["env_steps"]] + [b["env_steps"] - a["env_steps"] for a, b in zip(rows, rows[1:])]
    assert all(160 + 40 <= n < 320 for n in steps), steps  # all of rank 0's, a quarter of rank 1's at least
    assert max(row["time/rollout_max_s"] for row in rows) < 0.35


def test_one_folder_has_everything_and_rank_logs(tmp_path):
    trained(tmp_path / "run", *GRIDWORLD)
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"rank_0.log", "rank_1.log", "metrics.jsonl", "summary.json", "config.yaml", "weights", "checkpoints"} <= names
