"""Replay memories in checkpoints: which hold them (saving.replay), in pieces, for another number of workers, and what a
run says that goes on without one."""

import json
import resource
import shutil
import signal

import pytest

from checkpoint.runs import left, options, run

DQN = "DQN, batch_size: 16, replay_ratio: 0.6, buffer_size: 300, learning_starts: 150, target_every: 112, prioritized: true, n_step: 2"


def train(iterations=8):
    return options("tag_gridworld", DQN, iterations, "trainer.intervals=iterations")


def with_replay(folder):
    """Names of the checkpoints that hold replay memories, and of all."""
    every = sorted(path for path in (folder / "checkpoints").iterdir() if path.is_dir() and not path.is_symlink())
    return [path.name for path in every if (path / "replay").exists()], [path.name for path in every]


# The first checkpoint is written before anything is played.
@pytest.mark.parametrize("kept, expected", [("always", ["00000004", "00000006", "00000008"]), ("last", ["00000008"]), ("never", [])])
def test_which_checkpoints_hold_them(tmp_path, kept, expected):
    folder = tmp_path / "run"
    done = run(*train(), "--run_dir", folder, "--set", f"saving.replay={kept}")
    assert done.returncode == 0, done.stderr
    holding, every = with_replay(folder)
    assert holding == expected
    assert every[-3:] == ["00000004", "00000006", "00000008"]
    assert not [path for path in (folder / "checkpoints").iterdir() if path.name.startswith(".stage")]


def test_only_what_is_filled_is_written(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    folder = tmp_path / "run"
    assert run(*train(4), "--run_dir", folder, "--set", "saving.replay=always").returncode == 0
    early = numpy.load_file(folder / "checkpoints/00000002/replay/tagger.safetensors")
    late = numpy.load_file(folder / "checkpoints/00000004/replay/tagger.safetensors")
    assert early["reward"].shape[:2] == (8, 14) and late["reward"].shape[:2] == (8, 28), "300 / 8 steps are 42 of whole rollouts"
    assert (early["flags"] & 1).any() and (early["action"] == late["action"][:, :14]).all()


@pytest.mark.parametrize("before, after", [(1, 2), (2, 1), (2, 2)])
def test_another_number_of_workers_goes_on_with_them(tmp_path, before, after):
    """The same workers have the same bits; others sum in another order."""
    numpy = pytest.importorskip("safetensors.numpy")
    for name, total, workers in (("whole", 8, before), ("half", 4, before)):
        assert run(*train(total), "--num_workers", workers, "--run_dir", tmp_path / name).returncode == 0
    done = run("--resume", tmp_path / "half", "--total_steps", str(56 * 8), "--num_workers", after)
    assert done.returncode == 0 and "replay memories" not in done.stderr, done.stderr
    files = [numpy.load_file(tmp_path / name / "checkpoints/latest/replay/tagger.safetensors") for name in ("whole", "half")]
    assert files[0].keys() == files[1].keys()
    if before == after:
        assert left(tmp_path / "whole")[1] == left(tmp_path / "half")[1]
    else:  # what was played before the change of workers is there, at its place
        assert all((files[0][name][:, :28] == files[1][name][:, :28]).all() for name in ("observation", "action", "reward", "flags"))


def test_a_run_without_them_says_so_and_fills_them_anew(tmp_path):
    folder = tmp_path / "run"
    assert run(*train(), "--run_dir", folder).returncode == 0
    shutil.rmtree(folder / "checkpoints/latest/replay")
    done = run("--resume", folder, "--total_steps", str(56 * 12))
    assert done.returncode == 0
    assert "checkpoint 00000008 does not hold the replay memories (saving.replay): they are filled anew" in done.stderr
    updates = [json.loads(line)["tagger/updates"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert updates == [0, 0, 2, 2, 2, 2, 2, 2, 0, 0, 2, 2], "150 steps are there after three iterations of 56"


def test_damage_is_found(tmp_path):
    folder = tmp_path / "run"
    assert run(*train(), "--run_dir", folder, "--set", "saving.replay=always").returncode == 0
    file = folder / "checkpoints/00000008/replay/tagger.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    done = run("--resume", folder, "--total_steps", str(56 * 9))
    assert "replay/tagger.safetensors: is damaged" in done.stderr
    assert done.returncode == 0 and json.loads((folder / "summary.json").read_text())["iterations"] == 9, "it goes on from the one before"


def test_a_full_disk_ends_nothing(tmp_path):
    """The write that fails is one of a memory's, of a checkpoint that is not the last."""
    for n in range(40, 200, 5):
        folder = tmp_path / str(n)
        done = run(*train(), "--run_dir", folder, failpoint=f"write:{n}:ENOSPC")
        if "/.stage-room-" in done.stderr:
            break
    assert "No space left on device: older checkpoints are unchanged" in done.stderr
    assert done.returncode == 0, done.stderr
    assert with_replay(folder)[0] == ["00000008"]
    whole = tmp_path / "whole"
    assert run(*train(), "--run_dir", whole).returncode == 0
    assert left(whole) == left(folder)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_last_checkpoint_without_its_memory_is_a_failure(tmp_path, workers):
    """No file may grow beyond 1.09 MB, as only the memory of late checkpoints does."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_090_000, 1_090_000))
    folder = tmp_path / "run"
    long = ["--set", "policy.tagger.buffer_size=6000"]
    done = run(*train(56), *long, "--num_workers", workers, "--run_dir", folder, preexec_fn=limit)
    assert done.returncode == 1, done.stderr
    assert "/.stage-room-" in done.stderr and "the last checkpoint could not be written" in done.stderr
    assert (folder / "checkpoints/latest").resolve().name == "00000044"
    assert not [path for path in (folder / "checkpoints").iterdir() if path.name.startswith(".stage")]
    assert run("--resume", folder).returncode == 0
