"""C1, C2, C4 at length: every failpoint until it is no longer reached, every call that can fail, and 200
random moments."""

import random
import shutil
import signal
import subprocess
import time

import pytest

from checkpoint.runs import WDTRAIN, left, options, resume, run

GAMES = [(env, algorithm) for env in ("tag_gridworld", "tag_continuous", "cartpole") for algorithm in ("A2C", "PPO")]
POINTS = ["begun", "file", "manifest", "staged", "renamed", "complete", "linked", "removing"]


@pytest.fixture(scope="module")
def unharmed(tmp_path_factory):
    results = {}

    def of(game):
        if game not in results:
            folder = tmp_path_factory.mktemp("unharmed") / "run"
            assert run(*options(*game), "--run_dir", folder).returncode == 0
            results[game] = left(folder)
        return results[game]

    return of


def begun(folder):
    return (folder / "checkpoints" / "latest").exists()


def go_on(folder, arguments):
    """Continues as a user would: from a checkpoint if there is one; before the first checkpoint nothing is
    lost."""
    if begun(folder) or any(p.name.isdigit() for p in (folder / "checkpoints").glob("*")):
        return resume(folder)
    shutil.rmtree(folder)
    assert run(*arguments, "--run_dir", folder).returncode == 0
    return left(folder)


@pytest.mark.parametrize("point", [f"checkpoint.{p}" for p in POINTS] + ["write", "fsync", "rename"])
def test_C1_killed_at_every_passage_of_a_point(point, unharmed, tmp_path):
    game = ("tag_gridworld", "PPO")
    step = 1 if point.startswith("checkpoint.") else 7
    passages = 0
    for n in range(1, 10_000, step):
        folder = tmp_path / "run"
        done = run(*options(*game), "--run_dir", folder, failpoint=f"{point}:{n}")
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert go_on(folder, options(*game)) == unharmed(game), n
        shutil.rmtree(folder)
        passages += 1
    assert passages >= 3, "the point is never passed"
    print(f"{point}: {passages} passages")


@pytest.mark.parametrize("call", ["write", "fsync", "rename"])
@pytest.mark.parametrize("cause", ["ENOSPC", "EIO", "short"])
def test_C2_every_call_that_fails(call, cause, unharmed, tmp_path):
    if cause == "short" and call != "write":
        pytest.skip("only writes can be short")
    game = ("cartpole", "PPO")
    for n in range(1, 10_000, 9):
        folder = tmp_path / "run"
        done = run(*options(*game), "--run_dir", folder, failpoint=f"{call}:{n}:{cause}")
        assert done.returncode in (0, 1, 2), (n, done.stderr)
        if done.returncode == 0 and done.stderr == "":
            break
        assert f"cannot {'write' if call == 'write' else 'bring to disk' if call == 'fsync' else 'replace it'}" in done.stderr, (n, done.stderr)
        if begun(folder):
            assert run("--resume", folder).returncode == 0, n
            assert left(folder)[1] == unharmed(game)[1], n
        shutil.rmtree(folder, ignore_errors=True)
    assert n > 60, "no call is ever reached"


@pytest.mark.parametrize("game", GAMES, ids="-".join)
def test_C4_killed_at_random_moments(game, unharmed, tmp_path):
    expected = unharmed(game)
    source = random.Random(str(game))
    for k in range(34):  # six games: 204 moments
        folder = tmp_path / "run"
        process = subprocess.Popen([WDTRAIN, *options(*game), "--run_dir", str(folder), "--quiet", "--fault", "iter=1,kind=slow:10"])
        while not begun(folder):
            time.sleep(0.002)
        time.sleep(source.uniform(0, 0.3))
        process.kill()
        process.wait()
        assert resume(folder) == expected, k
        shutil.rmtree(folder)
