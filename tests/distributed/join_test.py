"""Training with several workers: how they join, and how a run continues after a failure or with another
number of workers."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from checkpoint.runs import WDTRAIN, left, options
from distributed.jobs import GRIDWORLD, finish, free_port, run, shell_loop, start, trained


def summary(folder):
    return json.loads((folder / "summary.json").read_text())


@pytest.fixture(scope="module")
def unharmed(tmp_path_factory):
    """The results of two workers in an undisturbed run."""
    return trained(tmp_path_factory.mktemp("unharmed") / "run", *GRIDWORLD)


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


@pytest.fixture
def two_machines():
    """Command prefixes that run on two machines connected by a cable; the machines are network namespaces."""
    if shutil.which("ip") is None:
        pytest.skip("there is no program ip (Debian's package iproute2)")
    names = [f"wd-{os.getpid()}-{k}" for k in range(2)]
    cable = [f"wd{os.getpid()}{k}"[-15:] for k in "ab"]
    steps = [f"ip netns add {names[0]}", f"ip netns add {names[1]}", f"ip link add {cable[0]} type veth peer name {cable[1]}"]
    for k in range(2):
        steps += [f"ip link set {cable[k]} netns {names[k]}", f"ip -n {names[k]} addr add 10.77.0.{k + 1}/24 dev {cable[k]}",
                  f"ip -n {names[k]} link set {cable[k]} up", f"ip -n {names[k]} link set lo up"]
    try:
        for step in steps:
            subprocess.run(step.split(), check=True, capture_output=True)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network namespaces here: {error}")
    else:
        yield [["ip", "netns", "exec", name] for name in names]
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


@pytest.mark.parametrize("scheme", ["tcp", "file"])
def test_L13_two_machines_with_a_network_between_them(scheme, two_machines, unharmed, tmp_path):
    (tmp_path / "meet").mkdir()
    place = "tcp://10.77.0.1:29400" if scheme == "tcp" else f"file://{tmp_path / 'meet'}"
    both = [start(*GRIDWORLD, "--run_dir", tmp_path / "run", "--num_nodes", 2, "--node_index", node, "--rendezvous", place, workers=1,
                  on=two_machines[node]) for node in range(2)]
    for process in both:
        finish(process)
        assert process.returncode == 0, process.stderr_text
    assert left(tmp_path / "run") == unharmed


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
    assert log.count("restart") == 1, log  # one restart, not five


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


@pytest.mark.parametrize("setting", ["trainer.precision=bf16", "trainer.observations=table"])
def test_C5_observations_of_any_kind_are_shared_out_to_the_same_bits(setting, tmp_path):
    arguments = options("tag_continuous", "PPO", 6, setting)
    whole = trained(tmp_path / "whole", *arguments, "--set", "trainer.canary_freq=1")
    folder = tmp_path / "run"
    assert run(*arguments, "--set", "trainer.canary_freq=1", "--run_dir", folder, "--fault", "rank=0,iter=4,kind=kill").returncode == 137
    done = run("--resume", folder)
    assert done.returncode == 0, done.stderr_text
    assert left(folder) == whole


def test_C5_a_checkpoint_of_two_workers_is_played_by_one_process(tmp_path):
    trained(tmp_path / "run", *GRIDWORLD)
    for path in (tmp_path / "run").rglob("optimizer"):
        shutil.rmtree(path)
    played = subprocess.run([WDTRAIN, "eval", "--run", str(tmp_path / "run"), "--episodes", "8", "--device", "cpu"], capture_output=True, text=True)
    assert played.returncode == 0, played.stderr


def test_a_batch_script_of_slurm_without_srun_is_told_whom_it_waits_for(tmp_path):
    waits = {**os.environ, **STARTERS["slurm"](0), "SLURM_NTASKS": "4", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    done = subprocess.run([WDTRAIN, *map(str, GRIDWORLD), "--run_dir", tmp_path / "run", "--start_seconds", "1"], capture_output=True, text=True, env=waits)
    assert done.returncode == 1 and not (tmp_path / "run").exists()
    assert "worker 0 of 4 by SLURM_NTASKS: waits up to 1 s for those that srun starts; without srun, unset it" in done.stderr


def test_L6_jobs_at_once_do_not_meet(tmp_path):
    arguments = options("tag_gridworld", "A2C", iterations=2)
    jobs = [start(*arguments, "--run_dir", tmp_path / str(k), "--seed", k) for k in range(6)]
    for process in jobs:
        finish(process, 300)
        assert process.returncode == 0, process.stderr_text
    assert all(summary(tmp_path / str(k))["seed"] == k for k in range(6))


def test_L6_a_worker_of_another_run_is_refused(tmp_path):
    done = shell_loop(tmp_path / "run", 2, *GRIDWORLD,
                      variables=lambda rank: {"RANK": str(rank), "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": f"run-{rank}"},
                      per_rank=lambda rank: ["--start_seconds", "5", "--step_seconds", "5", "--checkpoint_seconds", "5"])
    assert done[1].returncode == 2, done[1].stderr_text
    assert "belongs to run 'run-0', this worker (rank 1) to run 'run-1'" in done[1].stderr_text
    assert done[0].returncode == 1  # no other worker came


def test_stragglers_are_cut_short_and_told(tmp_path):
    arguments = ["--env", "tag_gridworld", "--num_envs", "8", "--train_batch_size", "320", "--total_steps", "3200", "--device", "cpu",
                 "--set", "saving.metrics_log_freq=1", "--fault", "rank=1,iter=1,kind=slow:400"]
    whole = run(*arguments, "--run_dir", tmp_path / "whole")
    assert whole.returncode == 0 and "rollouts of rank 1 take" in whole.stderr_text
    cut = run(*arguments, "--run_dir", tmp_path / "cut", "--set", "trainer.straggler_preempt=0.5")
    assert cut.returncode == 0, cut.stderr_text
    rows = [json.loads(line) for line in (tmp_path / "cut" / "metrics.jsonl").read_text().splitlines()]
    steps = [rows[0]["env_steps"]] + [b["env_steps"] - a["env_steps"] for a, b in zip(rows, rows[1:])]
    # All steps of rank 0 and at least a quarter of rank 1's.
    assert all(160 + 40 <= n < 320 for n in steps), steps


def test_one_folder_has_everything_and_rank_logs(tmp_path):
    trained(tmp_path / "run", *GRIDWORLD)
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"rank_0.log", "rank_1.log", "metrics.jsonl", "summary.json", "config.yaml", "weights", "checkpoints"} <= names
