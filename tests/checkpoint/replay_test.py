"""Replay memories in checkpoints: which hold them (saving.replay), in pieces, for another number of workers, and what a
run says that goes on without one."""

import ctypes
import json
import os
import re
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


def flip(file):
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)


def link(file, target):
    file.unlink()
    file.symlink_to(target)


def other_kind(file, make):
    file.unlink()
    make(file)


def link_folder(file):
    file.parent.rename(file.parents[3] / "elsewhere")
    file.parent.symlink_to("../../elsewhere")


DAMAGE = {"a flipped bit": (flip, "is damaged: its checksum is wrong"), "cut": (lambda file: os.truncate(file, 1000), "has 1000 bytes where"),
          "a link": (lambda file: link(file, "/dev/zero"), "there is no such file"), "a dangling link": (lambda file: link(file, "/nowhere"), "there is no such file"),
          "a pipe": (lambda file: other_kind(file, os.mkfifo), "there is no such file"), "a folder": (lambda file: other_kind(file, os.mkdir), "there is no such file"),
          "a linked folder": (link_folder, "replay: is a link")}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_costs_the_memory_and_not_the_weights(tmp_path, kind):
    folder = tmp_path / "run"
    assert run(*train(), "--run_dir", folder).returncode == 0
    damage, reason = DAMAGE[kind]
    damage(folder / "checkpoints/00000008/replay/tagger.safetensors")
    done = run("--resume", folder, "--total_steps", str(56 * 12))
    assert done.returncode == 0, done.stderr
    assert reason in done.stderr and "training goes on without this replay memory" in done.stderr
    assert "they are filled anew" in done.stderr and "is left out" not in done.stderr
    updates = [json.loads(line)["tagger/updates"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert updates == [0, 0, 2, 2, 2, 2, 2, 2, 0, 0, 2, 2], "from the newest weights, with an empty memory"
    assert with_replay(folder)[0] == ["00000012"], "the damaged one is removed as any older one"


def seal(checkpoint):
    """Makes the manifest's checksums those of the files: what somebody can do who wants to harm."""
    xxhash = ctypes.CDLL("libxxhash.so.0")
    xxhash.XXH3_64bits.restype = ctypes.c_uint64

    def digest(data):
        return f"{xxhash.XXH3_64bits(data, ctypes.c_size_t(len(data))):016x}"
    manifest = checkpoint / "manifest.json"
    head, separator = '{"checkpoint":', ',"xxh3":"'
    text = manifest.read_text()
    body = json.loads(text[len(head):text.rindex(separator)])
    for name in body["files"]:
        data = (checkpoint / name).read_bytes()
        body["files"][name] = {"bytes": len(data), "xxh3": digest(data)}
    body = json.dumps(body, separators=(",", ":"))
    manifest.write_text(head + body + separator + digest(body.encode()) + '"}\n')


def first(name, value):
    def edit(tensors):
        tensors[name].reshape(-1)[0] = value
    return "replay", edit


def last(name, value):  # of the last replica, which another worker has
    def edit(tensors):
        flags = tensors["flags"][-1, :, 0]
        at = int((flags & 1).nonzero()[0][-1])
        tensors[name][-1, at] = value
    return "replay", edit


def state(name, value):
    def edit(tensors):
        tensors[name].reshape(-1)[0] = value
    return "optimizer", edit


IMPOSSIBLE = {"an action": (last("action", 77), r"tensor 'action', replica 7, entry \d+, agent \d+: is 77, and head 0 \(move\) has the choices 0 to 4"),
              "a negative action": (last("action", -1), r"tensor 'action', replica 7, .*is -1"),
              "a reward": (first("reward", float("inf")), r"tensor 'reward', replica 0, entry 0, agent 0: is inf"),
              "an observation": (first("observation", float("nan")), r"tensor 'observation', replica 0, entry 0, agent 0: is -?nan in column 0"),
              "flags": (first("flags", 255), r"tensor 'flags', replica 0: has numbers above 7"),
              "a priority": (first("priority", float("nan")), r"a priority is negative or not finite"),
              "the highest priority": (state("replay.highest", -1.0), r"a priority is negative or not finite"),
              "a begin in the future": (state("replay.begun", 1 << 40), r"replay.begun is \d+ after 8 iterations"),
              "a transposed tensor": (("replay", lambda t: t.update(reward=t["reward"].transpose(1, 0, 2).copy())), r"tensor 'reward': this training has F32 \[8, 42, 4\].*and F32 \[42, 8, 4\]"),
              "a foreign tensor": (("replay", lambda t: t.update(x=t["reward"])), r"tensor 'x': is not expected")}


@pytest.mark.parametrize("what, workers", [(what, 1) for what in IMPOSSIBLE] + [("an action", 2), ("a begin in the future", 2)])
def test_impossible_content_is_refused(tmp_path, what, workers):
    numpy = pytest.importorskip("safetensors.numpy")
    folder = tmp_path / "run"
    assert run(*train(), "--run_dir", folder).returncode == 0
    checkpoint = folder / "checkpoints/00000008"
    (part, edit), message = IMPOSSIBLE[what]
    file = checkpoint / part / "tagger.safetensors"
    tensors = {name: tensor.copy() for name, tensor in numpy.load_file(file).items()}
    edit(tensors)
    numpy.save_file(tensors, file)
    seal(checkpoint)
    done = run("--resume", folder, "--total_steps", str(56 * 12), "--num_workers", workers)
    assert done.returncode == 2, (done.returncode, done.stderr)
    assert re.search(message, done.stderr) and "to go on without replay memories" in done.stderr, done.stderr
    assert str(file.parents[1] / "replay/tagger.safetensors") in done.stderr
    shutil.rmtree(checkpoint / "replay")
    remedied = run("--resume", folder, "--total_steps", str(56 * 12), "--num_workers", workers)
    assert remedied.returncode == 0 or part == "optimizer", remedied.stderr


@pytest.mark.parametrize("word, number", [(0, -1), (0, 1 << 30), (2, 7), (3, -5)])
def test_impossible_headers_of_replicas_are_refused(tmp_path, word, number):
    numpy = pytest.importorskip("safetensors.numpy")
    folder = tmp_path / "run"
    assert run(*train(2), "--run_dir", folder).returncode == 0
    file = folder / "checkpoints/00000002/replicas.safetensors"
    tensors = {name: tensor.copy() for name, tensor in numpy.load_file(file).items()}
    tensors["blocks"][-1].view("int32")[word] = number
    numpy.save_file(tensors, file)
    seal(folder / "checkpoints/00000002")
    for workers in (1, 2):
        done = run("--resume", folder, "--total_steps", str(56 * 4), "--num_workers", workers)
        assert done.returncode == 2 and "tensor 'blocks', replica 7: step" in done.stderr, (done.returncode, done.stderr)


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
