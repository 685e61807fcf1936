"""Options that contradict each other or do not fit this machine."""

import pytest

from launcher.gangs import run

WRONG = {
    "--workers 0": "--num_workers 0: must be from 1 to ",
    "--workers -3": "--num_workers -3: must be from 1 to ",
    "--workers 1000000": "--num_workers 1000000: must be from 1 to ",
    "--nodes 0": "--num_nodes 0: must be from 1 to ",
    "--nodes 2": "nodes must be told where they meet: --rendezvous tcp://HOST:PORT of node 0, or file:///FOLDER",
    "--nodes 2 --node 2 --rendezvous tcp://a:1": "--node_index 2: must be from 0 to 1, another on each of the 2 nodes",
    "--node -1": "--node_index -1: must be from 0 to 0",
    "--nodes 2 --rendezvous udp://a:1": "--rendezvous udp://a:1: expected tcp://HOST:PORT",
    "--nodes 2 --rendezvous tcp://a": "expected tcp://HOST:PORT",
    "--nodes 2 --rendezvous tcp://a:0": "expected tcp://HOST:PORT",
    "--nodes 2 --rendezvous tcp://a:65536": "expected tcp://HOST:PORT",
    "--nodes 2 --rendezvous tcp://::1:5": "expected tcp://HOST:PORT",
    "--nodes 2 --rendezvous tcp://0.0.0.0:5000": "0.0.0.0 is not an address that other nodes can reach",
    "--nodes 2 --rendezvous tcp://[::]:5000": ":: is not an address that other nodes can reach",
    "--nodes 2 --rendezvous file://relative": "expected tcp://HOST:PORT of node 0, or file:///FOLDER",
    "--nodes 2 --rendezvous file:///proc/none": "the folder cannot be made",
    "--nodes 2 --rendezvous tcp://192.0.2.1:5000": "node 0 listens there: 192.0.2.1:5000 cannot be listened on",
    "--nodes 2 --rendezvous tcp://no.such.host.invalid:5000": "host no.such.host.invalid",
    "--nodes 2 --run_id a/b --rendezvous file:///tmp": "--run_id: run name 'a/b'",
    "--restarts -1": "--max_restarts -1: must be from 0",
    "--grace -1": "--grace_seconds -1: must be seconds, from 0 to ",
    "--grace nan": "--grace_seconds nan",
    "--step 0": "--step_seconds 0: must be seconds, above 0 to ",
}


@pytest.mark.parametrize("arguments", WRONG)
def test_wrong_options_end_with_2_and_say_what_is_right(arguments):
    done = run(*arguments.split())
    assert done.returncode == 2, done.stderr
    assert WRONG[arguments] in done.stderr, done.stderr
    assert done.stderr.startswith("error: ")
