"""Nodes that do not join, disagree, or are impostors; failures that leave misleading files."""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time

import pytest

from checkpoint.runs import options
from distributed.jobs import GRIDWORLD, children, finish, free_port, iterations, run, start, wait_for

LONG = [*options("tag_gridworld", "PPO", iterations=100_000), "--set", "saving.checkpoint_freq=1000"]


def summary(folder):
    return json.loads((folder / "summary.json").read_text())


def two_nodes(tmp_path, *, second=(), workers=(1, 1), indices=(0, 1), tokens=(None, None), seconds=20):
    place = f"tcp://127.0.0.1:{free_port()}"
    common = [*options("tag_gridworld", "PPO", 2), "--rendezvous", place, "--start_seconds", seconds, "--run_dir", tmp_path / "run"]
    nodes = []
    for k in range(2):
        env = {"WD_TOKEN": tokens[k]} if tokens[k] else {}
        more = second if k == 1 and second else ["--num_nodes", 2]
        nodes.append(start(*common, *more, "--node_index", indices[k], workers=workers[k], env=env))
    begun = time.monotonic()
    for node in nodes:
        finish(node, 60)
        assert "Exception raised from" not in node.stderr_text, node.stderr_text
        assert "made no progress" not in node.stderr_text, node.stderr_text
    nodes[0].seconds = time.monotonic() - begun
    return nodes


def test_a_node_that_does_not_come_is_named(tmp_path):
    done = run(*GRIDWORLD, "--num_nodes", 4, "--node_index", 0, "--rendezvous", f"tcp://127.0.0.1:{free_port()}", "--start_seconds", 6,
               "--run_dir", tmp_path / "run", workers=2)
    assert done.returncode == 1
    assert "node 1, 2, 3 (rank 2, 3, 4, 5, 6, 7) did not come within 6 s; all machines need the same --rendezvous" in done.stderr_text, done.stderr_text


def test_node_0_that_does_not_come_is_named(tmp_path):
    port = free_port()
    done = run(*GRIDWORLD, "--num_nodes", 2, "--node_index", 1, "--rendezvous", f"tcp://127.0.0.1:{port}", "--start_seconds", 6,
               "--run_dir", tmp_path / "run", workers=1)
    assert done.returncode == 1
    assert f"rank 0 did not come to 127.0.0.1:{port} within 6 s (nobody listens there)" in done.stderr_text, done.stderr_text
    assert "Exception raised from" not in done.stderr_text


def test_counts_that_differ_are_named(tmp_path):
    first, second = two_nodes(tmp_path, workers=(1, 2))
    assert first.returncode == 2, first.stderr_text
    assert "was started as one of 4 workers, 2 on its machine, and rank 0 as one of 2, 1 on its own" in first.stderr_text
    assert second.returncode != 0 and "rank 0 does not begin: rank" in second.stderr_text, second.stderr_text


def test_a_number_that_two_nodes_have_is_named(tmp_path):
    place = f"tcp://127.0.0.1:{free_port()}"
    common = [*options("tag_gridworld", "PPO", 2), "--num_nodes", 4, "--rendezvous", place, "--start_seconds", 10, "--run_dir", tmp_path / "run"]
    nodes = [finish(node) for node in [start(*common, "--node_index", k, workers=1) for k in (0, 1, 1)]]
    assert nodes[0].returncode == 2 and "two workers call themselves rank 1: process " in nodes[0].stderr_text, nodes[0].stderr_text


@pytest.mark.parametrize("tokens", [("a" * 32, "b" * 32), ("a" * 32, None), (None, "b" * 32)])
def test_another_token_is_named(tokens, tmp_path):
    """At once, by a warning, and when the time to start is over."""
    first, second = two_nodes(tmp_path, tokens=tokens, seconds=3)
    assert first.returncode == 2 and "does not know the WD_TOKEN of rank 0: ignored" in first.stderr_text, first.stderr_text
    assert "node 1 (rank 1) did not come within 3 s, and somebody who calls itself rank 1" in first.stderr_text, first.stderr_text
    assert second.returncode != 0 and "WD_TOKEN" in second.stderr_text
    assert not (tmp_path / "run").exists()


def test_the_token_is_not_in_the_store(tmp_path):
    """The store must not contain the token, because everyone who reaches the port can read all keys and
    values."""
    torch = pytest.importorskip("torch.distributed")
    token, port = "c0ffee" * 6, free_port()
    common = [*LONG, "--num_nodes", 2, "--rendezvous", f"tcp://127.0.0.1:{port}", "--run_dir", tmp_path / "run"]
    nodes = [start(*common, "--node_index", k, workers=1, env={"WD_TOKEN": token}) for k in (0, 1)]
    wait_for(lambda: iterations(tmp_path / "run") >= 2)
    store = torch.TCPStore("127.0.0.1", port, is_master=False, wait_for_workers=False)
    keys = store.list_keys()
    assert any("gloo" in key for key in keys), keys
    assert not any(token in key for key in keys)
    texts = [store.get(key) for key in keys if "counter" not in key]
    assert not any(token.encode() in text for text in texts)
    addresses = [store.get(key) for key in keys if "/gloo/" in key]
    assert addresses and all(re.match(rb"[0-9a-f]{64}", text) for text in addresses), "each has a seal: sealed_store_test.cpp"
    nodes[0].send_signal(signal.SIGTERM)
    for node in nodes:
        finish(node)


def test_nodes_without_a_token_are_warned(tmp_path):
    for tokens, warned in (((None, None), True), (("c0ffee", "c0ffee"), False)):
        first, second = two_nodes(tmp_path / str(warned), tokens=tokens)
        assert (first.returncode, second.returncode) == (0, 0), first.stderr_text + second.stderr_text
        assert ("warning: this job has no WD_TOKEN: whoever reaches 127.0.0.1:" in first.stderr_text) == warned, first.stderr_text
        assert "WD_TOKEN" not in second.stderr_text


class Attacked:
    """Two nodes that share a token, and the job's store, which anybody who reaches the port can read and write."""

    def __init__(self, tmp_path):
        self.torch = pytest.importorskip("torch.distributed")
        self.port, self.env = free_port(), {"WD_TOKEN": "c0ffee" * 6}
        self.common = [*options("tag_gridworld", "PPO", 2), "--num_nodes", 2, "--rendezvous", f"tcp://127.0.0.1:{self.port}",
                       "--start_seconds", 20, "--run_dir", tmp_path / "run"]
        self.nodes = [self.node(0)]
        wait_for(lambda: listens(self.port))
        self.store = self.torch.TCPStore("127.0.0.1", self.port, is_master=False, wait_for_workers=False)
        self.nonce = self.store.get("wd/meet/0/hello").decode().split()[0]

    def node(self, index):
        return start(*self.common, "--node_index", index, workers=1, env=self.env)

    def claim(self, text):
        self.store.set(f"wd/meet/0/caller/{self.store.add('wd/meet/0/callers', 1)}", text)

    def end(self):
        for node in self.nodes:
            finish(node, 60)
        return [node.returncode for node in self.nodes], self.nodes[0].stderr_text


def test_who_does_not_know_the_token_is_ignored(tmp_path):
    """False claims, a copy of a true one and a false verdict: the job starts nevertheless."""
    job = Attacked(tmp_path)
    for seal in ("0" * 64, job.nonce, ""):
        job.claim(f"{seal} 1 2 1 77 elsewhere {job.nonce}")
    job.claim("")
    job.store.set("wd/meet/0/verdict", "0" * 64 + " no we do not want you")
    job.nodes.append(job.node(1))
    job.store.wait(["wd/meet/0/caller/5"])
    job.claim(job.store.get("wd/meet/0/caller/5"))
    codes, text = job.end()
    assert codes == [0, 0], text + job.nodes[1].stderr_text
    assert "somebody who calls itself rank 1 (process 77 on elsewhere) does not know the WD_TOKEN of rank 0: ignored" in text, text


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_started_by_hand_a_rank_that_is_missing_is_named(tmp_path):
    env = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    done = run(*GRIDWORLD, "--run_dir", tmp_path / "run", "--start_seconds", 6, workers=0, env=env, timeout=30)
    assert (done.returncode, "error: rank 1 did not come within 6 s" in done.stderr_text) == (1, True), done.stderr_text


def test_started_by_hand_a_rank_that_hangs_ends_the_others(tmp_path):
    port = free_port()
    ranks = [start(*LONG, "--run_dir", tmp_path / "run", "--step_seconds", 2, "--checkpoint_seconds", 1, "--fault", "rank=1,iter=4,kind=hang", workers=0,
                   env={"RANK": str(k), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}) for k in (0, 1)]
    finish(ranks[0], 40)
    ranks[1].kill()
    ranks[1].communicate()
    assert (ranks[0].returncode, "another rank does not answer" in ranks[0].stderr_text) == (1, True), ranks[0].stderr_text


def test_a_pipe_in_the_place_of_a_nodes_file_is_refused(tmp_path):
    for node, name in ((0, "default.node_1.json"), (1, "default.json")):
        meet = tmp_path / f"meet-{node}"
        meet.mkdir()
        os.mkfifo(meet / name)
        done = run(*GRIDWORLD, "--num_nodes", 2, "--node_index", node, "--rendezvous", f"file://{meet}", "--start_seconds", 5,
                   "--run_dir", tmp_path / "run", workers=1, timeout=20)
        assert (done.returncode, f"{name} is not a regular file: remove it" in done.stderr_text) == (2, True), done.stderr_text


def test_an_invitation_that_is_nested_too_deeply_is_none(tmp_path):
    (tmp_path / "default.json").write_text('{"nonces": ' + "[" * 500_000 + "]" * 500_000 + "}")
    done = run(*GRIDWORLD, "--num_nodes", 2, "--node_index", 1, "--rendezvous", f"file://{tmp_path}", "--start_seconds", 1, "--run_dir", tmp_path / "run",
               workers=1, timeout=20)
    assert (done.returncode, "node 0 did not come" in done.stderr_text) == (1, True), done.stderr_text


# --- files left behind ---


def test_a_second_launcher_leaves_nothing_in_a_healthy_run(tmp_path):
    folder = tmp_path / "run"
    process = start(*LONG, "--run_dir", folder, workers=0)
    wait_for(lambda: iterations(folder) >= 2)
    before = sorted(path.name for path in folder.iterdir())
    done = run("--resume", folder)
    process.send_signal(signal.SIGTERM)
    finish(process)
    assert (done.returncode, "is in use by process" in done.stderr_text) == (2, True), done.stderr_text
    assert {path.name for path in folder.iterdir()} - set(before) <= {"weights", "report.html"}


def test_after_a_restart_the_error_is_put_by(tmp_path):
    folder = tmp_path / "run"
    done = run(*GRIDWORLD, "--run_dir", folder, "--fault", "rank=1,iter=7,kind=kill", "--max_restarts", 1)
    assert done.returncode == 0, done.stderr_text
    assert not (folder / "error.json").exists() and not list(folder.glob("error_rank_*"))
    assert json.loads((folder / "previous_error.json").read_text())["rank"] == 1
    assert summary(folder)["status"] == "finished"


@pytest.mark.parametrize("how", ["killed", "second interrupt"])
def test_a_run_whose_rank_0_cannot_say_so_has_failed(how, tmp_path):
    folder = tmp_path / "run"
    fault = ["--fault", "rank=0,iter=4,kind=hang"] if how == "second interrupt" else []
    process = start(*LONG, *fault, "--run_dir", folder)
    wait_for(lambda: iterations(folder) >= 3 and summary(folder)["status"] == "running")
    if how == "killed":
        os.kill(children(process.pid)[0], signal.SIGKILL)
    else:
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
    finish(process)
    told = summary(folder)
    assert told["status"] == "failed", told
    assert ("SIGKILL" if how == "killed" else "ended at once by a signal") in told["stop_reason"]
    assert told["env"] == "tag_gridworld" and list(told)[0] == "status"


def test_a_hang_between_a_checkpoint_and_a_rollout_is_found_as_a_step(tmp_path):
    folder = tmp_path / "run"
    done = run(*LONG, "--set", "saving.checkpoint_freq=2", "--run_dir", folder, "--step_seconds", 1, "--grace_seconds", 1, "--fault",
               "rank=1,iter=9,kind=hang", timeout=30)
    assert done.returncode == 124, done.stderr_text
    assert "in iteration 9, phase rollout: made no progress" in done.stderr_text, done.stderr_text


def test_a_thousand_connections_leave_room(tmp_path):
    """With the usual soft limit of 1024 descriptors."""
    folder = tmp_path / "run"
    limits = "ulimit -S -n 1024 && exec \"$@\""
    process = start(*LONG, "--run_dir", folder, on=("bash", "-c", limits, "limited"))
    wait_for(lambda: iterations(folder) >= 2)
    hard = int(subprocess.run(["bash", "-c", "ulimit -H -n"], capture_output=True, text=True).stdout.replace("unlimited", str(1 << 20)))
    for pid in children(process.pid):
        (line,) = [line for line in pathlib.Path(f"/proc/{pid}/limits").read_text().splitlines() if line.startswith("Max open files")]
        assert int(line.split()[3]) == min(hard, 1 << 20), line
    process.send_signal(signal.SIGTERM)
    finish(process)
    assert process.returncode == 143, process.stderr_text
