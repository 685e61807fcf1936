"""L13: several nodes, all on this machine's loopback interface, that meet at an address or in a shared
folder."""

import contextlib
import json
import signal
import socket
import stat
import time

import pytest

from launcher import gangs
from launcher.gangs import ended, error, is_alive, iteration, run, started, variables_of, wait_for, workers

LONG = [*gangs.LONG, "--ms", "2"]
LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo"}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def place(kind, tmp_path):
    return {"file": f"file://{tmp_path}/meet", "tcp": f"tcp://127.0.0.1:{free_port()}", "tcp6": f"tcp://[::1]:{free_port()}",
            "name": f"tcp://localhost:{free_port()}"}[kind]


@contextlib.contextmanager
def nodes(where, *arguments, count=2, order=None, variables=None, pause=0.0):
    """The launchers of all nodes, in the order in which they are started."""
    with contextlib.ExitStack() as stack:
        found = {}
        for node in order or range(count):
            found[node] = stack.enter_context(started("--nodes", count, "--node", node, "--rendezvous", where, "--workers", 2, *arguments,
                                                      variables={**LOOPBACK, **(variables or {})}))
            time.sleep(pause)
        yield [found[node] for node in range(count)]


@pytest.mark.parametrize("kind", ["tcp", "tcp6", "name", "file"])
@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_L13_two_nodes_work_as_one(kind, order, tmp_path):
    with nodes(place(kind, tmp_path), "--iterations", 5, "--run_dir", tmp_path / "run", order=order, pause=0.2) as launchers:
        for node, launcher in enumerate(launchers):
            code, text = ended(launcher)
            assert code == 0, text
            assert f"[rank {2 * node + 1}] rank {2 * node + 1} begins" in text
    assert iteration(tmp_path / "run") == 5
    assert sorted(path.name for path in (tmp_path / "run").glob("rank_*.log")) == [f"rank_{rank}.log" for rank in range(4)]
    assert kind != "file" or not list((tmp_path / "meet").iterdir()), "everything is removed at the end"


def test_L13_variables_of_the_second_node(tmp_path):
    where = place("file", tmp_path)
    with nodes(where, *LONG, "--run_id", "job-7", "--run_dir", tmp_path / "run") as launchers:
        wait_for(lambda: iteration(tmp_path / "run") > 1)
        first, second = ([variables_of(pid) for pid in workers(launcher.pid)] for launcher in launchers)
        expected = {"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "1", "NODE_RANK": "1",
                    "MASTER_ADDR": "127.0.0.1", "TORCHELASTIC_RUN_ID": "job-7"}
        assert {k: second[1][k] for k in expected} == expected
        for name in ("WD_TOKEN", "MASTER_PORT", "TORCHELASTIC_RUN_ID"):
            assert len({worker[name] for worker in first + second}) == 1
        assert ["WD_STORE_FD" in worker for worker in first + second] == [True, False, False, False]
        files = sorted((tmp_path / "meet").iterdir())
        assert [path.name for path in files] == ["job-7.json", "job-7.node_1.json"]
        assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in files)


def test_L13_over_tcp_the_token_is_the_users(tmp_path):
    for token in ("abc", None):
        with nodes(place("tcp", tmp_path), *LONG, variables={"WD_TOKEN": token}) as launchers:
            for launcher in launchers:
                (worker, _) = wait_for(lambda: len(found := workers(launcher.pid)) == 2 and found)
                assert variables_of(worker)["WD_TOKEN"] == (token or "")


def test_L13_files_of_dead_runs_do_not_mislead(tmp_path):
    """Node 1's old file makes node 0 begin without node 1; node 0's old file names an address on which no
    process listens."""
    meet = tmp_path / "meet"
    meet.mkdir()
    old = {"address": "127.0.0.1", "port": free_port(), "token": "0" * 32, "restart": 0, "nonces": {"1": "f" * 32}}
    (meet / "default.json").write_text(json.dumps(old))
    (meet / "default.node_1.json").write_text(json.dumps({"nonce": "f" * 32, "host": "gone", "restart": 0}))
    (meet / ".default.json.tmp").write_text("half")
    for k, order in enumerate(([0, 1], [1, 0])):
        with nodes(f"file://{meet}", "--iterations", 3, "--run_dir", tmp_path / str(k), order=order, pause=0.5) as launchers:
            for launcher in launchers:
                code, text = ended(launcher)
                assert code == 0, text
        (meet / "default.json").write_text(json.dumps(old))
        (meet / "default.node_1.json").write_text(json.dumps({"nonce": "e" * 32, "host": "gone", "restart": 0}))


@pytest.mark.parametrize("junk", ["", "[]", "{}", '{"nonces": 3}', '{"nonces": {"1": 4}}', '{"nonce": 3}', '{"nonce": "a", "restart": "x"}', "\0\xff"])
def test_L13_junk_in_the_folder_is_passed_over(junk, tmp_path):
    meet = tmp_path / "meet"
    meet.mkdir()
    for name in ("default.json", "default.node_1.json"):
        (meet / name).write_text(junk)
    with nodes(f"file://{meet}", "--iterations", 3, order=[1, 0], pause=0.1) as launchers:
        assert [ended(launcher)[0] for launcher in launchers] == [0, 0]


@pytest.mark.parametrize("node, missing", [(0, "node 1, 2 did not come within 0.3 s"), (2, "node 0 did not come within 0.3 s")])
def test_L13_a_node_that_does_not_come_is_named(node, missing, tmp_path):
    done = run("--nodes", 3, "--node", node, "--rendezvous", place("file", tmp_path), "--start", 0.3, variables=LOOPBACK)
    assert (done.returncode, missing in done.stderr) == (1, True), done.stderr
    assert not list((tmp_path / "meet").iterdir())


def test_L13_a_node_that_is_an_attempt_ahead_is_waited_for(tmp_path):
    """Node 1 has seen a failure that node 0 has not noticed yet, so it must not join the attempt that is
    failing."""
    (tmp_path / "meet").mkdir()
    (tmp_path / "meet" / "default.node_1.json").write_text(json.dumps({"nonce": "a" * 32, "host": "here", "restart": 1}))
    done = run("--nodes", 2, "--rendezvous", place("file", tmp_path), "--start", 0.3, variables=LOOPBACK)
    assert (done.returncode, "node 1 did not come" in done.stderr) == (1, True), done.stderr


@pytest.mark.parametrize("node", [0, 1])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_L7_a_signal_while_nodes_are_awaited(node, number, tmp_path):
    (tmp_path / "meet").mkdir()
    old, own = tmp_path / "meet" / "default.json", tmp_path / "meet" / "default.node_1.json"
    old.write_text("{}")
    with started("--nodes", 2, "--node", node, "--rendezvous", place("file", tmp_path), variables=LOOPBACK) as process:
        wait_for(lambda: not old.exists() if node == 0 else own.exists())  # the node is ready and waits
        process.send_signal(number)
        assert ended(process, 10)[0] == 128 + number
    assert not own.exists() and old.exists() == (node == 1)


def test_L13_an_interface_that_is_not_here_is_refused(tmp_path):
    done = run("--nodes", 2, "--rendezvous", place("file", tmp_path), variables={"GLOO_SOCKET_IFNAME": "eth77"})
    assert (done.returncode, "the interface 'eth77' is not here" in done.stderr) == (2, True), done.stderr


def test_L13_a_port_that_is_taken_is_refused():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = run("--nodes", 2, "--rendezvous", f"tcp://127.0.0.1:{port}")
    assert (done.returncode, f"127.0.0.1:{port} cannot be listened on: Address already in use" in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("victim", [1, 2])
def test_L3_the_cause_is_named_on_all_nodes(victim, tmp_path):
    """Each launcher knows only its own workers; the files in the run folder make both name the same cause."""
    with nodes(place("tcp", tmp_path), *LONG, "--fault", f"rank={victim},iter=5,kind=exit:9", "--run_dir", tmp_path / "run") as launchers:
        for launcher in launchers:
            code, text = ended(launcher)
            assert code == 9, text
            assert f"error: rank {victim} " in text and "failed in iteration 5, phase rollout: ended with exit code 9" in text, text
    assert error(tmp_path / "run")["rank"] == victim
    assert len(list((tmp_path / "run").glob("error_rank_*.json"))) == 4


def test_L3_where_folders_are_not_shared_the_other_node_is_pointed_to(tmp_path):
    where = place("tcp", tmp_path)
    with contextlib.ExitStack() as stack:
        launchers = [stack.enter_context(started("--nodes", 2, "--node", node, "--rendezvous", where, "--workers", 2, *LONG, "--fault",
                                                 "rank=0,iter=5,kind=kill", "--run_dir", tmp_path / str(node))) for node in (0, 1)]
        texts = [ended(launcher) for launcher in launchers]
    assert [code for code, _ in texts] == [137, 1]
    assert "the cause is on another node" in texts[1][1] and "the cause is on another node" not in texts[0][1]
    assert (tmp_path / "0" / "error.json").exists() and not (tmp_path / "1" / "error.json").exists()


def test_L3_a_report_that_somebody_forged_never_makes_a_failure_a_success(tmp_path):
    where, forged = place("tcp", tmp_path), {"rank": 9, "pid": 1, "host": "x", "iteration": 1, "phase": "rollout", "message": "forged", "secondary": False,
                                             "time": "2999-01-01T00:00:00.000Z", "restart": 0, "launcher_exit_code": 0, "signal": None}
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "error_rank_9.json").write_text(json.dumps(forged))
    (tmp_path / "1" / "error_rank_8.json").write_text("[" * 500_000 + "]" * 500_000)
    with contextlib.ExitStack() as stack:
        launchers = [stack.enter_context(started("--nodes", 2, "--node", node, "--rendezvous", where, "--workers", 2, *LONG, "--fault",
                                                 "rank=0,iter=5,kind=kill", "--run_dir", tmp_path / str(node))) for node in (0, 1)]
        texts = [ended(launcher) for launcher in launchers]
    assert [code for code, _ in texts] == [137, 1], texts


def test_L11_a_hang_on_another_node_is_its_launchers_to_name(tmp_path):
    arguments = [*LONG, "--fault", "rank=3,iter=5,kind=hang", "--deaf", "yes", "--step", 0.5, "--run_dir", tmp_path / "run"]
    with nodes(place("tcp", tmp_path), *arguments) as launchers:
        pids = wait_for(lambda: len(found := workers(launchers[0].pid)) == 2 and found)
        for launcher in launchers:
            code, text = ended(launcher)
            assert (code, "error: rank 3 " in text) == (124, True), text
        assert not any(map(is_alive, pids))


@pytest.mark.parametrize("kind", ["tcp", "file"])
@pytest.mark.parametrize("victim", [0, 3])
def test_L14_all_nodes_restart_together(kind, victim, tmp_path):
    arguments = ["--iterations", 12, "--restarts", 1, "--fault", f"rank={victim},iter=4,kind=kill", "--run_dir", tmp_path / "run"]
    with nodes(place(kind, tmp_path), *arguments) as launchers:
        for launcher in launchers:
            code, text = ended(launcher)
            assert (code, text.count("restart 1 of 1")) == (0, 1), text
    assert iteration(tmp_path / "run") == 12
    assert kind != "file" or not list((tmp_path / "meet").iterdir())
