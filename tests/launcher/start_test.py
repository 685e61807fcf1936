"""L5, L6, L10: processes, ports, descriptors and variables."""

import contextlib
import os
import pathlib
import re
import subprocess
import time

import pytest

from launcher.gangs import (GANG, LONG, children, command, ended, environment, is_alive, started,
                            variables_of, wait_for, wait_for_workers)


def test_L5_launcher_killed_while_workers_run():
    with started("--workers", 4, *LONG) as process:
        pids = wait_for_workers(process, 4)
        process.kill()
        process.wait()
        wait_for(lambda: not any(map(is_alive, pids)), 5)


def test_L5_launcher_killed_soon_after_the_fork():
    """All processes that ever carry the mark must be gone, including those created in the meantime."""
    for k in range(20):
        mark = f"mark-{os.getpid()}-{k}"
        process = subprocess.Popen(command("--workers", 3, *LONG, "--mark", mark), env=environment(), stderr=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL)
        wait_for(lambda: children(process.pid))
        time.sleep(k * 0.0025)
        process.kill()
        process.wait()
        wait_for(lambda: not marked(mark), 5)


DELAY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/prctl.h>
#include <unistd.h>
int prctl(int option, unsigned long value) {
  if (option == PR_SET_PDEATHSIG) usleep(500000);
  return ((int (*)(int, unsigned long))dlsym(RTLD_NEXT, "prctl"))(option, value);
}
"""


def test_L5_launcher_killed_before_its_worker_has_tied_itself_to_it(tmp_path):
    (tmp_path / "delay.c").write_text(DELAY)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / "delay.so", tmp_path / "delay.c"], check=True)
    mark = f"mark-{os.getpid()}-delayed"
    delayed = {"LD_PRELOAD": str(tmp_path / "delay.so"), "ASAN_OPTIONS": "verify_asan_link_order=0"}
    with started("--workers", 1, *LONG, "--mark", mark, variables=delayed, stdout=subprocess.DEVNULL,
                 stderr=subprocess.DEVNULL) as process:
        wait_for(lambda: children(process.pid))
        process.kill()
        process.wait()
        assert marked(mark), "the worker waits before it ties itself"
        wait_for(lambda: not marked(mark), 5)


def marked(mark):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "cmdline").read_text():
                found.append(entry.name)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def links_of(pid):
    """The targets of the process's descriptors, except those that it closes in the meantime."""
    links = []
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            links.append(os.readlink(entry))
    return links


def listening(pid):
    """Local addresses of the process's listening sockets, in the format of /proc/net/tcp and tcp6."""
    inodes = {link[len("socket:["):-1] for link in links_of(pid) if link.startswith("socket:")}
    rows = [line.split() for name in ("tcp", "tcp6") for line in pathlib.Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return [row[1] for row in rows if row[3] == "0A" and row[9] in inodes]


def test_L6_20_launches_at_once_do_not_meet_and_listen_on_loopback_alone():
    processes = [subprocess.Popen(command("--workers", 2, *LONG, "--ms", 50), env=environment(), stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True) for _ in range(20)]
    try:
        pids = [wait_for_workers(process, 2) for process in processes]
        ports, tokens = set(), set()
        for process, pair in zip(processes, pids):
            assert listening(process.pid) == [], "the launcher keeps no socket"
            assert listening(pair[1]) == []
            (address,) = listening(pair[0])
            assert address.startswith("0100007F:"), address
            ports.add(address)
            tokens.add(variables_of(pair[0])["WD_TOKEN"])
            assert int(address.split(":")[1], 16) == int(variables_of(pair[1])["MASTER_PORT"])
        assert len(ports) == len(tokens) == 20
        assert all(re.fullmatch("[0-9a-f]{32}", token) for token in tokens)
    finally:
        for process in processes:
            process.terminate()
        codes = [ended(process)[0] for process in processes]
    assert codes == [143] * 20


def test_L10_workers_get_their_variables_and_no_other_descriptors():
    read_end, write_end = os.pipe()
    os.set_inheritable(write_end, True)
    variables = {"TORCHELASTIC_USE_AGENT_STORE": "True", "WD_RESTART_DIR": "/elsewhere", "WD_STORE_FD": "77", "USERS_OWN": "kept"}
    with started("--workers", 3, *LONG, "--restarts", 4, variables=variables, pass_fds=[write_end]) as process:
        pids = wait_for_workers(process, 3)
        for rank, pid in enumerate(pids):
            found = variables_of(pid)
            expected = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 3, "LOCAL_WORLD_SIZE": 3, "GROUP_RANK": 0, "NODE_RANK": 0,
                        "MASTER_ADDR": "127.0.0.1", "TORCHELASTIC_RESTART_COUNT": 0, "TORCHELASTIC_MAX_RESTARTS": 4, "USERS_OWN": "kept"}
            assert {k: found.get(k) for k in expected} == {k: str(v) for k, v in expected.items()}
            assert not {"TORCHELASTIC_USE_AGENT_STORE", "WD_RESTART_DIR"} & set(found)
            assert ("WD_STORE_FD" in found) == (rank == 0)
            links = links_of(pid)
            assert os.readlink(f"/proc/self/fd/{write_end}") not in links
            assert sum("memfd:wd_status" in link for link in links) == 1
            assert not any("signalfd" in link for link in links)
            status = pathlib.Path(f"/proc/{pid}/fdinfo/{found['WD_STATUS_FD']}")
            wait_for(lambda: int(re.search(r"flags:\s+(\d+)", status.read_text())[1], 8) & os.O_CLOEXEC)
        assert len({variables_of(pid)["TORCHELASTIC_RUN_ID"] for pid in pids}) == 1
        assert len(list(pathlib.Path(f"/proc/{process.pid}/task").iterdir())) == 1
    os.close(read_end)
    os.close(write_end)


@pytest.mark.parametrize("value", ["", "x", "-1", "0", "1", "999999", "99999999999999999999"])
def test_a_stale_status_variable_does_no_harm(value, tmp_path):
    """As in a program that a worker starts: descriptor 0 is a file as large as the status memory would be."""
    victim = tmp_path / "file"
    victim.write_bytes(bytes(100_000))
    variables = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "WD_STATUS_FD": value, "TORCHELASTIC_RESTART_COUNT": "0"}
    with victim.open("r+b") as file:
        done = subprocess.run([GANG, "--iterations", "3"], env=environment(**variables), stdin=file, capture_output=True, timeout=20)
    assert done.returncode == 0
    assert victim.read_bytes() == bytes(100_000)
