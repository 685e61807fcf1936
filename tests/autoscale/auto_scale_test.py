"""--auto_scale from the command line: probes in separate processes whose failures are told apart, then
training with the chosen settings."""

import fcntl
import json
import os
import pathlib
import re
import resource
import signal
import statistics
import subprocess
import time

import pytest

from checkpoint.runs import WDTRAIN
from distributed.jobs import alive, children, wait_for
from run_report.folders import content

# A short search: it starts at 32 replicas, allows at most 64, and times for a tenth of a second.
QUICK = ["--env", "cartpole", "--stop_return", "none", "--total_steps", "20000", "--set", "autoscale.max_envs=64",
         "--set", "autoscale.min_iterations=0", "--set", "autoscale.max_batch=4096", "--set", "autoscale.probe_seconds=0.1", "--set", "autoscale.memory_gb=2"]
# The start alone: for what surrounds a search. Two tests search in earnest.
TINY = ["--set", "autoscale.max_envs=32", "--set", "autoscale.max_batch=1024", "--set", "autoscale.max_seconds=4"]


@pytest.fixture
def wdtrain(tmp_path):
    def start(*arguments, env=None, **settings):
        variables = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), **(env or {})}
        return subprocess.Popen([WDTRAIN, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=variables, cwd=tmp_path, **settings)

    return start


def finish(process, timeout=240):
    process.out, process.err = process.communicate(timeout=timeout)
    return process


def left(folder):
    """The report, and a function that returns the number of a key in config.yaml."""
    config = (folder / "config.yaml").read_text()
    return json.loads((folder / "autoscale.json").read_text()), lambda key: float(re.search(rf"^ +{key}: (\S+)$", config, re.M).group(1))


def fits(report):
    return [t for t in report["tries"] if t["outcome"] == "fits"]


def test_searches_shows_and_trains_with_what_it_chose(wdtrain, tmp_path):
    done = finish(wdtrain(*QUICK, "--auto_scale", "--run_dir", tmp_path / "run"))
    assert done.returncode == 0, done.err
    report, config = left(tmp_path / "run")
    chosen = report["chosen"]
    assert config("num_envs") == chosen["num_envs"]
    assert config("train_batch_size") == chosen["train_batch_size"]
    assert f"--set trainer.num_envs={chosen['num_envs']} --set trainer.train_batch_size={chosen['train_batch_size']}\n" in done.out
    lines = done.out[: done.out.index("chosen: ")].splitlines()
    assert lines[0].split() == ["stage", "replicas", "T", "batch", "iterations", "memory", "predicted", "env/s", "outcome"]
    assert lines[1].split()[:5] == ["replicas", "32", "32", "1024", "20"] and lines[1].split()[7] == "-", "nothing was measured that could predict"
    assert len(lines) == 1 + len(report["tries"])
    assert content(tmp_path / "run" / "report.html")["runs"][0]["search"] == report
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["status"] == "finished"
    # The choice is never slower than the start by these measurements, and every stage is present.
    start = [t["env_steps_per_s"] for t in fits(report) if t["num_envs"] == 32 and t["rollout_steps"] == 32]
    assert chosen["env_steps_per_s"] >= sorted(start)[(len(start) - 1) // 2]
    assert {t["stage"] for t in report["tries"]} >= {"replicas", "rollout"}
    assert all(t["bytes"] > 50e6 for t in fits(report))

    again = finish(wdtrain(*QUICK, "-a", "--run_dir", tmp_path / "again"))
    assert again.returncode == 0 and "found before" in again.out and "stage" not in again.out
    assert left(tmp_path / "again")[0] == report
    other = finish(wdtrain(*QUICK, *TINY, "-a", "--run_dir", tmp_path / "other"))
    assert other.returncode == 0 and "found before" not in other.out
    anew = finish(wdtrain(*QUICK, *TINY, "--auto_scale=refresh", "--quiet", "--run_dir", tmp_path / "anew"))
    assert anew.returncode == 0 and anew.out == ""
    assert left(tmp_path / "anew")[0] != left(tmp_path / "other")[0]


def test_memory_for_as_much_as_fits(wdtrain, tmp_path):
    """WarpDrive's objective: as many replicas as fit at one step each, then more steps. The peak memory of
    the training stays within the budget."""
    arguments = [*QUICK, "--set", "autoscale.objective=memory", "--set", "autoscale.max_envs=200000", "--set", "autoscale.max_batch=1e8",
                 "--set", "autoscale.memory_gb=0.42", "--set", "autoscale.min_rollout=1", "--set", "policy.shared.num_minibatches=1", "--set", "policy.shared.num_epochs=1"]
    done = finish(wdtrain(*arguments, "-a", "--run_dir", tmp_path / "run"))
    assert done.returncode == 0, done.err
    report, _ = left(tmp_path / "run")
    over = [t for t in report["tries"] if t["outcome"] in ("out_of_memory", "skipped")]
    assert over, "the limit was never reached"
    assert 0.8 * 0.42 * 2**30 < report["chosen"]["bytes"] <= 0.42 * 2**30
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["peak_memory_bytes"] <= 1.05 * 0.42 * 2**30


def test_the_batch_leaves_the_training_its_iterations(wdtrain, tmp_path):
    few = ["--set", "autoscale.max_envs=32", "--set", "autoscale.max_seconds=4", "--set", "autoscale.min_iterations=10"]
    done = finish(wdtrain(*QUICK, *few, "-a", "--run_dir", tmp_path / "run"))
    assert done.returncode == 0, done.err
    report, config = left(tmp_path / "run")
    assert report["limits"]["max_batch"] == 2048 and config("train_batch_size") <= 2048
    assert max(t["train_batch_size"] for t in report["tries"]) <= 2048
    assert f" a batch, {-(-20480 // report['chosen']['train_batch_size'])} iterations, " in done.out
    # The bound is part of the cache key of a search.
    shorter = ["10240" if word == "20000" else word for word in QUICK]
    less = finish(wdtrain(*shorter, *few, "-a", "--run_dir", tmp_path / "less"))
    assert less.returncode == 0 and "found before" not in less.out
    report, config = left(tmp_path / "less")
    assert report["limits"]["max_batch"] == 1024 and config("train_batch_size") <= 1024


def test_what_a_killed_search_left_is_cleared_away_by_the_next(wdtrain, tmp_path):
    place = tmp_path / "tmp"
    place.mkdir()
    process = wdtrain(*QUICK, "-a", "--run_dir", tmp_path / "run", env={"TMPDIR": str(place)})
    child = probe_under_way(process)
    process.kill()
    finish(process)
    (killed,) = place.glob("wd-autoscale-*")
    held, foreign, young = (place / f"wd-autoscale-{name}" for name in ("held", "foreign", "young"))
    for folder in (held, foreign, young):
        folder.mkdir()
    (young / ".lock").touch()
    with open(held / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for folder in (killed, held, foreign):
            os.utime(folder, (0, 0))
        done = finish(wdtrain(*QUICK, *TINY, "-a", "--run_dir", tmp_path / "next", env={"TMPDIR": str(place)}))
    assert done.returncode == 0, done.err
    assert sorted(place.glob("wd-autoscale-*")) == [foreign, held, young], "a folder in use, one that is not ours, and one that may be about to be locked stay"
    wait_for(lambda: not alive(child))


def test_two_workers_train_with_the_same_values(wdtrain, tmp_path):
    done = finish(wdtrain(*QUICK, *TINY, "-a", "--num_workers", 2, "--device", "cpu", "--run_dir", tmp_path / "run"))
    assert done.returncode == 0, done.err
    report, config = left(tmp_path / "run")
    assert report["num_workers"] == 2
    assert config("num_envs") == report["chosen"]["num_envs"] and config("num_envs") % 2 == 0


def test_learning_rates_are_scaled_on_request(wdtrain, tmp_path):
    done = finish(wdtrain(*QUICK, "--set", "autoscale.max_seconds=4", "-a", "--run_dir", tmp_path / "run", "--set", "autoscale.scale_lr=sqrt", "--set", "policy.shared.lr=0.01"))
    assert done.returncode == 0, done.err
    report, config = left(tmp_path / "run")
    growth = report["chosen"]["train_batch_size"] / 1024
    assert config("lr") == pytest.approx(0.01 * growth**0.5)


def probe_under_way(process):
    deadline = time.time() + 60
    while time.time() < deadline:
        found = children(process.pid)
        if found:
            return found[0]
        time.sleep(0.01)
    raise AssertionError("no probe was started")


@pytest.mark.parametrize("number, name", [(signal.SIGKILL, "SIGKILL"), (signal.SIGSEGV, "SIGSEGV")])
def test_a_probe_that_is_killed_is_neither_a_success_nor_too_big(wdtrain, tmp_path, number, name):
    # Long enough that the probe is still there when it is killed.
    process = wdtrain(*QUICK, "--set", "autoscale.probe_seconds=5", "-a", "--run_dir", tmp_path / "run")
    child = probe_under_way(process)
    time.sleep(0.3)
    os.kill(child, number)
    done = finish(process)
    assert done.returncode == 1
    assert "autoscale: a probe failed" in done.err and name in done.err
    assert " failed: " in done.out and "out of memory" not in done.out
    assert not (tmp_path / "run").exists()


def test_a_signal_ends_the_search_and_its_probe(wdtrain, tmp_path):
    process = wdtrain(*QUICK, "-a", "--run_dir", tmp_path / "run")
    child = probe_under_way(process)
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    done = finish(process, timeout=30)
    assert done.returncode == 128 + signal.SIGTERM
    assert not pathlib.Path(f"/proc/{child}").exists()
    assert not (tmp_path / "run").exists()


def setting(num_envs, rollout_steps):
    return {"num_envs": num_envs, "rollout_steps": rollout_steps, "train_batch_size": num_envs * rollout_steps}


def test_two_settings_in_one_process_are_timed_in_turns(wdtrain, tmp_path):
    answer = tmp_path / "answer.json"
    order = {"probe": setting(64, 32), "beside": setting(2, 32), "max_seconds": 0, "max_iteration_seconds": 0, "measured_seconds": 0.4, "memory_bytes": 1_000_000_000, "answer": str(answer)}
    finish(wdtrain(*QUICK, "-a", env={"WD_PROBE": json.dumps(order)}))
    ratios = json.loads(answer.read_text())["ratios"]
    assert len(ratios) >= 3 and statistics.median(ratios) > 1.5, "64 replicas at once are faster than 2"
    order |= {"probe": order["beside"], "beside": order["probe"]}
    finish(wdtrain(*QUICK, "-a", env={"WD_PROBE": json.dumps(order)}))
    assert statistics.median(json.loads(answer.read_text())["ratios"]) < 0.67


def test_a_probe_without_memory_says_so(wdtrain, tmp_path):
    """A probe process on its own, which asks for more memory than it may have."""
    answer = tmp_path / "answer.json"
    order = {"probe": setting(2048, 128), "max_seconds": 0, "max_iteration_seconds": 0, "measured_seconds": 0.1, "memory_bytes": 20_000_000, "answer": str(answer)}
    done = finish(wdtrain(*QUICK, "-a", "--set", "policy.shared.num_epochs=1", env={"WD_PROBE": json.dumps(order)}))
    assert done.returncode == 12, done.err
    assert not answer.exists()
    order["memory_bytes"] = 1_000_000_000
    done = finish(wdtrain(*QUICK, "-a", "--set", "policy.shared.num_epochs=1", env={"WD_PROBE": json.dumps(order)}))
    assert done.returncode == 0, done.err
    assert json.loads(answer.read_text())["outcome"] == "fits"
    order |= {"max_seconds": 0.05, "probe": setting(2048, 1024)}
    done = finish(wdtrain(*QUICK, "-a", "--set", "policy.shared.num_epochs=1", env={"WD_PROBE": json.dumps(order)}))
    assert done.returncode == 0 and json.loads(answer.read_text())["outcome"] == "too_slow"
    order |= {"max_seconds": 0, "max_iteration_seconds": 0.05}
    done = finish(wdtrain(*QUICK, "-a", "--set", "policy.shared.num_epochs=1", env={"WD_PROBE": json.dumps(order)}))
    outcome = json.loads(answer.read_text())
    assert outcome["outcome"] == "too_slow" and "max_iteration_seconds = 0.05" in outcome["detail"]


def test_stays_within_the_limit_of_its_shell(wdtrain, tmp_path):
    """With ulimit -d, the budget is 80 % of what the limit leaves, and the search ends normally."""
    limit = 1500 * 2**20
    arguments = [a for a in QUICK if "memory_gb" not in a]
    del arguments[-1]  # the --set that precedes memory_gb
    process = wdtrain(*arguments, *TINY, "-a", "--run_dir", tmp_path / "run",
                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)))
    done = finish(process)
    assert done.returncode == 0, done.err
    report, _ = left(tmp_path / "run")
    assert 0 < report["limits"]["memory_bytes"] < 0.8 * limit


@pytest.mark.parametrize("arguments, message", [
    (["--auto_scale=maybe"], "--auto_scale=maybe: must be alone, or =refresh"),
    (["-a", "--set", "autoscale.memory_gb=0.05"], "not even the smallest setting fits into 51 MiB"),
    (["-a", "--set", "autoscale.memory_gb=100000"], "autoscale.memory_gb = 100000: this process may have"),
    (["-a", "--set", "autoscale.max_envs=1", "--num_workers", "2", "--device", "cpu"], "raise the limits"),
    (["-a", "--print_config"], "exclude each other"),
    (["-a", "--resume"], "exclude each other"),
    (["-a", "--num_nodes", "2", "--node_index", "0", "--rendezvous", "tcp://127.0.0.1:29400"], "searches on one machine"),
])
def test_what_cannot_be_is_refused(wdtrain, arguments, message):
    done = finish(wdtrain(*QUICK, *arguments))
    assert done.returncode == 2, done.err
    assert message in re.sub(r"\s+", " ", done.err)


def test_workers_of_others_do_not_search(wdtrain):
    done = finish(wdtrain(*QUICK, "-a", env={"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29555"}))
    assert done.returncode == 2
    assert "one that others have started" in done.err
