"""damaged_test.py: damaged, foreign and hostile files are answered with one line, and nothing outside of a run is
read or written."""

import json
import os
import pathlib
import pickle
import signal
import sys
import types
import zipfile

import numpy
import pytest
import safetensors.numpy
import torch

ROOT = pathlib.Path(os.environ["WD_SOURCE_DIR"])
sys.path.insert(0, str(ROOT / "python"))

import wdtrain as package  # noqa: E402
from wdtrain import convert, export, files, track  # noqa: E402


@pytest.fixture(autouse=True)
def limits(tmp_path, monkeypatch):
    """Relative paths lie in tmp_path, and a test that waits for a FIFO fails."""
    monkeypatch.chdir(tmp_path)
    signal.alarm(60)
    yield
    signal.alarm(0)


def error_of(tool, *arguments):
    with pytest.raises(SystemExit) as ended:
        tool.main([str(argument) for argument in arguments])
    message = ended.value.code
    assert message.startswith("error: ") and "\n" not in message
    return message


METADATA = {"model": "fully_connected", "activation": "tanh", "observation_size": "3", "distribution": "categorical",
            "action_heads": "4", "state_size": "0", "action_mask": "false"}
WEIGHTS = {"policy_head.weight": numpy.zeros((4, 3), numpy.float32), "policy_head.bias": numpy.zeros(4, numpy.float32),
           "value_head.weight": numpy.zeros((1, 3), numpy.float32), "value_head.bias": numpy.zeros(1, numpy.float32)}


@pytest.fixture
def run():
    folder = pathlib.Path("run")
    (folder / "weights").mkdir(parents=True)
    (folder / "summary.json").write_text('{"status": "finished", "env": "x", "stop_reason": "total_steps"}')
    (folder / "metrics.jsonl").write_text('{"iteration": 1, "a": 0.5}\n{"iteration": 2, "a": null}\n')
    (folder / "config.yaml").write_text("trainer: {seed: 1}\n")
    safetensors.numpy.save_file(WEIGHTS, folder / "weights" / "p.safetensors", METADATA)
    return folder


# --- wdtrain-convert ------------------------------------------------------------------------------------------

GOOD = {"actor.0.weight": torch.randn(4, 3), "actor.0.bias": torch.randn(4), "critic.0.weight": torch.randn(1, 3),
        "critic.0.bias": torch.randn(1)}
CONTINUOUS = {name.replace("actor.", "actor_mean."): tensor for name, tensor in GOOD.items()}
CONTINUOUS["actor_logstd"] = torch.zeros(1, 4)


class Evil:
    def __reduce__(self):
        return os.mkdir, ("pwned",)


def saved(value, **options):
    torch.save(value, "file", **options)


def zipped(content, cut=0, data=None):
    with zipfile.ZipFile("file", "w") as archive:
        archive.writestr("policy.pth", content)
        if data is not None:
            archive.writestr("data", data)
    data = pathlib.Path("file").read_bytes()
    pathlib.Path("file").write_bytes(data[: len(data) - cut])


def bomb(name):
    with zipfile.ZipFile("file", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, bytes(50 << 20))


NO_TENSORS = "is not a torch file that holds tensors only"


@pytest.mark.parametrize("make, message", [
    (lambda: pathlib.Path("file").write_bytes(pickle.dumps(Evil())), NO_TENSORS),
    (lambda: saved({"actor.0.weight": Evil()}), NO_TENSORS),
    (lambda: saved({"actor.0.weight": Evil()}, _use_new_zipfile_serialization=False), NO_TENSORS),
    (lambda: zipped(pickle.dumps(Evil())), NO_TENSORS),
    (lambda: zipped(b"", cut=30), "file: "),
    (lambda: zipped(b"", data=b"\xff"), "file: damaged"),
    (lambda: zipped(b"", data="[]"), "file: damaged"),
    (lambda: zipped(b"", data="[" * 100_000), "file: damaged"),
    (lambda: zipped(b"", data='{"policy_class": 3}'), "file: damaged"),
    (lambda: zipped(b"", data='{"action_space": {"n": "two"}}'), "file: damaged"),
    (lambda: zipped(b"", data='{"action_space": {"low": "[a]"}}'), "file: damaged"),
    (lambda: pathlib.Path("file").write_bytes(b""), NO_TENSORS),
    (lambda: pathlib.Path("file").write_bytes(bytes(range(256)) * 20), NO_TENSORS),
    (lambda: None, "error: file: there is no such file"),
    (lambda: os.mkdir("file"), "file: is not a regular file"),
    (lambda: os.mkfifo("file"), "file: is not a regular file"),
    (lambda: os.symlink("/dev/zero", "file"), "file: is not a regular file"),
    (lambda: saved([1, 2]), "is not a state dict, but a list"),
    (lambda: saved({1: torch.zeros(2)}), "its tensors are 1"),
    (lambda: saved({f"actor.{'9' * 5000}.weight": torch.zeros(4, 3)}), "no tensor policy_head.weight"),
    (lambda: saved(dict(GOOD, **{"actor.0.bias": torch.zeros(4, 1)})), "actor.0.bias has 2 dimensions instead of 1"),
    (lambda: saved(dict(GOOD, **{"critic.0.bias": torch.tensor([torch.nan])})), "value_head.bias has numbers that are NaN"),
    (lambda: saved(dict(CONTINUOUS, actor_logstd=torch.zeros(2))), "4 outputs for 2 components"),
    *((lambda kind=kind: saved(dict(GOOD, **{"actor.0.weight": torch.ones(4, 3, dtype=kind)})), f"tensor actor.0.weight has numbers of the type {name}")
      for kind, name in ((torch.complex64, "complex64"), (torch.bool, "bool"), (torch.int64, "int64"))),
    (lambda: saved(dict(GOOD, **{"actor.0.weight": torch.ones(0, 3), "actor.0.bias": torch.ones(0)})), "actor.0.weight has no numbers: its shape is [0, 3]"),
    (lambda: saved(dict(GOOD, **{"actor.0.bias": torch.ones(5)})), "actor.0.weight has 4 rows, and actor.0.bias 5 numbers"),
    (lambda: saved(dict(GOOD, **{"actor.2.weight": torch.ones(2, 63), "actor.2.bias": torch.ones(2), "critic.2.weight": torch.ones(1, 4),
                                 "critic.2.bias": torch.ones(1), "critic.0.weight": torch.ones(4, 3), "critic.0.bias": torch.ones(4)})),
     "policy_head.weight is [2, 63]: it should read 4 numbers"),
    (lambda: saved(dict(GOOD, **{"\x1b[2J\n": torch.ones(2)})), r"no place for \x1b[2J\n:"),
    (lambda: saved(dict(GOOD, **{"": torch.ones(2)})), "no place for '':"),
    (lambda: saved(dict(GOOD, **{"actor.0.weight": torch.ones(1).expand(1 << 33).reshape(1 << 32, 2)})), "have more numbers than the file has bytes"),
    (lambda: bomb("policy.pth"), "weights do not shrink so much, and it stays unread"),
    (lambda: bomb("archive/data.pkl"), "weights do not shrink so much, and it stays unread"),
])
def test_convert(make, message):
    make()
    assert message in error_of(convert, "file", "--out", "out", "--low", -1, "--high", 1)
    assert not os.path.exists("out") and not os.path.exists("pwned")


@pytest.mark.parametrize("bounds, message", [
    ([1, 2, 3, "--high", 4], "--low has 3 values for 4 components of the action: give 4, or 1"),
    (["nan", "--high", 1], "must be below --high"),
    ([0, "--high", "inf"], "both finite"),
])
def test_convert_bounds(bounds, message):
    saved(CONTINUOUS)
    assert message in error_of(convert, "file", "--out", "out", "--low", *bounds)


@pytest.mark.parametrize("change", [torch.nn.Parameter, torch.Tensor.to_sparse, torch.Tensor.double,
                                    lambda tensor: tensor.to(torch.bfloat16)])
def test_tensors_of_any_kind_are_converted(change):
    changed = {name: change(tensor) for name, tensor in GOOD.items()}
    saved(changed)
    convert.main(["file", "--out", "out"])
    expected = changed["actor.0.weight"].detach().to_dense().float()
    assert torch.equal(torch.tensor(safetensors.numpy.load_file("out")["policy_head.weight"]), expected)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"mean": "a", "var": 1, "count": 1}', b"PK\x03\x04", pickle.dumps(Evil())])
def test_statistics(content):
    saved(GOOD)
    pathlib.Path("norm").write_bytes(content)
    assert "norm: " in error_of(convert, "file", "--out", "out", "--normalize", "norm")
    assert not os.path.exists("out") and not os.path.exists("pwned")


@pytest.mark.parametrize("content", [
    "", "[1]", "{", "a: !!python/object/apply:os.mkdir [pwned]", "a: 3", "a: {n_timesteps: many}", "a: {n_timesteps: .inf}",
    "a: {n_timesteps: 10, n_envs: 0}", "a: {n_timesteps: 10, learning_rate: lin_x}", "a: {n_timesteps: 10, policy_kwargs: 'os.mkdir(1)'}",
    "a: {n_timesteps: 10, policy_kwargs: '" + "(" * 1000 + "'}",
    "x: &a {a: [1, 1]}\ny: &b [*a, *a]\na: {n_timesteps: 10, policy: *b}", "a: &a {n_timesteps: 10, policy: *a}",
    "x: &a {b: 1}\na: {<<: *a, <<: *a, n_timesteps: 10}", "x: &a {b: 1}\na: {<<: [*a, *a], n_timesteps: 10}",
])
def test_files_of_the_zoo(content):
    pathlib.Path("ppo.yml").write_text(content)
    assert "ppo.yml: " in error_of(convert, "--zoo", "ppo.yml", "a")
    assert not os.path.exists("pwned")


@pytest.mark.parametrize("content", [
    pickle.dumps(Evil()),
    pickle.dumps({"obs_rms": Evil()}),
    b"\x80\x04" + pickle.BYTEARRAY8 + (1 << 40).to_bytes(8, "little") + b".",
    b"\x80\x04" + pickle.NONE + pickle.LONG_BINPUT + (0xffffffff).to_bytes(4, "little") + b".",
    b"\x80\x04cos\nmkdir\n(S'pwned'\ntR.",
    b"\x80\x02cwdtrain.files\nwrite\n(U\x01aU\x05pwnedtR.",
])
def test_a_pickle_calls_nothing(content):
    saved(GOOD)
    pathlib.Path("norm.pkl").write_bytes(content)
    message = error_of(convert, "file", "--out", "out", "--normalize", "norm.pkl")
    assert "norm.pkl: is no VecNormalize of SB3 that can be read safely" in message and "numpy.savez('norm.npz', mean=vec.obs_rms.mean" in message
    assert not os.path.exists("out") and not os.path.exists("pwned")


def test_statistics_that_are_not_there():
    saved(GOOD)
    assert error_of(convert, "file", "--out", "out", "--normalize", "norm.pkl") == "error: norm.pkl: there is no such file"


def test_an_old_torch_is_not_trusted(monkeypatch):
    saved(GOOD)
    monkeypatch.setattr(torch, "__version__", "2.5.1+cpu")
    assert "pip install 'torch>=2.6'" in error_of(convert, "file", "--out", "out")


def test_convert_does_not_write_through_links():
    saved(GOOD)
    os.symlink("victim", "out")
    assert "out: is there, and is not a regular file" in error_of(convert, "file", "--out", "out")
    assert not os.path.exists("victim")


# --- wdtrain-export -------------------------------------------------------------------------------------------


def replace(path, content=None, link=None):
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    if link is None:
        path.write_bytes(content)
    else:
        path.symlink_to(link)


def weights(tensors, metadata=METADATA):
    return safetensors.numpy.save(tensors, metadata)


@pytest.mark.parametrize("format", export.FORMATS)
@pytest.mark.parametrize("change, message", [
    (lambda w: replace(w, b"x"), "p.safetensors: damaged, or not such a file"),
    (lambda w: replace(w, w.read_bytes()[:-4]), "p.safetensors: damaged, or not such a file"),
    (lambda w: replace(w, weights(dict(WEIGHTS, **{"value_head.bias": numpy.array([numpy.inf])}))), "value_head.bias has numbers"),
    (lambda w: replace(w, link="/etc/hostname"), "is a link, which is not followed"),
    (lambda w: (w.unlink(), os.mkfifo(w)), "p.safetensors: is not a regular file"),
    (lambda w: replace(w.parent.parent / "export" / f"p{w.suffix}", link="/tmp/victim"), "exists: name another file"),
    (lambda w: os.symlink("/tmp", w.parent.parent / "export"), "export: is a link, which is not followed"),
])
def test_export(run, format, change, message, monkeypatch):
    monkeypatch.setitem(export.FORMATS, format, ".safetensors")  # so that all formats meet the planted link
    change(run / "weights" / "p.safetensors")
    assert message in error_of(export, "--run", run, "--format", format)
    assert not os.path.exists("/tmp/victim") and not os.path.exists("/tmp/p.safetensors")


@pytest.mark.parametrize("metadata, message", [
    ({}, "damaged, or not such a file: KeyError: 'observation_size'"),
    (dict(METADATA, streams="{"), "damaged, or not such a file: JSONDecodeError"),
    (dict(METADATA, streams='[{"name": "map"}]'), "damaged, or not such a file: KeyError: 'shape'"),
    (dict(METADATA, agent_ids="99999999999"), "99999999999 ids, and streams []: no policy has these"),
    (dict(METADATA, agent_ids="9" * 4000), "9" * 60 + "... ids, and streams []: no policy has these"),
    (dict(METADATA, streams=json.dumps([{"name": "map", "shape": [0] * 50_000, "of": "agent"}])), "0, 0, ...: no policy has these"),
    (dict(METADATA, reads="observation,map"), "its networks read map, whose size the file does not say"),
    (dict(METADATA, observation_size="x"), "damaged, or not such a file: ValueError"),
    (dict(METADATA, activation="sine"), "activation 'sine' is not known"),
    (dict(METADATA, model="gru"), "damaged, or not such a file: KeyError"),
    (dict(METADATA, entities="{"), "damaged, or not such a file: JSONDecodeError"),
    (dict(METADATA, entities="{}"), "damaged, or not such a file: KeyError"),
    (dict(METADATA, entities=json.dumps({"own": [[2, 10**12]]})), "has 3 entries, and not 1000000000000 from 2 on, 1 apart"),
    (dict(METADATA, entities=json.dumps({"own": [[-1, 1]]})), "has 3 entries, and not 1 from -1 on, 1 apart"),
])
def test_export_metadata(run, metadata, message):
    replace(run / "weights" / "p.safetensors", weights(WEIGHTS, metadata))
    assert message in error_of(export, "--run", run, "--format", "torchscript")


def test_onnx_is_not_installed(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert error_of(export, "--run", run, "--format", "onnx") == "error: onnx is not installed: pip install onnx"


# --- wdtrain-track --------------------------------------------------------------------------------------------


@pytest.fixture
def rows(monkeypatch):
    sent = []
    client = types.SimpleNamespace(get_experiment_by_name=lambda name: None, create_experiment=lambda name: "1",
                                   create_run=lambda *_, **__: types.SimpleNamespace(info=types.SimpleNamespace(run_id="a")),
                                   log_param=lambda *_: None, set_terminated=lambda *_: None,
                                   log_batch=lambda run, metrics: sent.append(metrics))
    mlflow = types.ModuleType("mlflow")
    mlflow.MlflowClient = lambda: client
    mlflow.entities = types.SimpleNamespace(Metric=lambda name, value, time, step: (name, value, step))
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    return sent


@pytest.mark.parametrize("name, content, message", [
    *((".tracked_mlflow.json", text, ".tracked_mlflow.json: ")
      for text in (b"[]", b"5", b"{", b"\xff", b'{"iteration": "x"}', b'{"id": {}, "iteration": 1}',
                   b'{"id": "a", "iteration": 1e400}', b'{"id": "a", "iteration": true}')),
    ("summary.json", b"[]", "summary.json: is not a JSON object"),
    ("summary.json", b"{}", "summary.json: has no text 'env'"),
    ("summary.json", b'{"env": "x", "status": 5}', "summary.json: has no text 'status'"),
    ("summary.json", b"[" * 100_000, "summary.json: damaged, or not such a file: RecursionError"),
    ("config.yaml", b"- 1", "config.yaml: has no settings"),
    ("config.yaml", b"!!python/object/apply:os.mkdir [pwned]", "config.yaml: damaged, or not such a file"),
])
def test_track(run, rows, name, content, message):
    replace(run / name, content)
    assert message in error_of(track, run, "--to", "mlflow", "--once")
    assert not os.path.exists("pwned")


@pytest.mark.parametrize("name", ["metrics.jsonl", "summary.json", "config.yaml", ".tracked_mlflow.json"])
def test_track_follows_no_links_and_waits_for_no_fifo(run, rows, name):
    replace(run / name, link="/etc/hostname")
    assert f"{name}: is a link, which is not followed" in error_of(track, run, "--to", "mlflow", "--once")
    (run / name).unlink()
    os.mkfifo(run / name)
    assert error_of(track, run, "--to", "mlflow", "--once") in (f"error: run/{name}: is not a regular file",
                                                                "error: run: not a run's folder (it has no summary.json)")


def test_track_writes_its_memory_beside_a_planted_link(run, rows):
    pathlib.Path("victim").write_text("precious")
    (run / ".tracked_mlflow.tmp").symlink_to("../victim")
    track.main([str(run), "--to", "mlflow"])
    assert pathlib.Path("victim").read_text() == "precious" and len(rows) == 2
    assert json.loads((run / ".tracked_mlflow.json").read_text()) == {"id": "a", "iteration": 2}
    assert not list(run.glob(".tracked_mlflow.json.*"))


# --- wdtrain.Run ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line, why", [
    (b'{"iter', "Invalid control character"), (b"\xff\x00", "codec"), (b"[1]", "not an object with an iteration"),
    (b'{"a": 1}', "not an object with an iteration"), (b'{"iteration": "x"}', "not an object with an iteration"),
    (b'{"iteration": 3, "a": "text"}', "a is not a number"), (b'{"iteration": 2}', "its iteration is 2 after 2"),
    (b'{"a":' + b"[" * 100_000, "recursion"),
])
def test_lines_that_cannot_be_used(run, line, why):
    with open(run / "metrics.jsonl", "ab") as file:
        file.write(line + b'\n{"iteration": 4}\n')
    with pytest.warns(UserWarning, match=f"metrics.jsonl: line 3 is left out: .*{why}"):
        rows = package.Run(run).rows()
    assert [row["iteration"] for row in rows] == [1, 2, 4]


def test_only_what_was_added_is_read(run):
    path = run / "metrics.jsonl"
    lines = files.Lines(path)
    assert [number for number, _ in lines.new()] == [1, 2] and lines.new() == []
    with open(path, "r+b") as file:
        file.write(b"#")  # would be noticed if it was read again
        file.seek(0, 2)
        file.write(b"3\n4")
    assert lines.new() == [(3, b"3\n")]
    path.write_bytes(b"a\nb\nc\n" * 100)  # cut, and made again
    assert len(lines.new()) == 300 and lines.new() == []
    path.write_bytes(b"a\n")
    assert lines.new() == [(1, b"a\n")]
    path.unlink()
    assert lines.new() == []


def test_watching_a_long_run_reads_it_once(run, monkeypatch):
    with open(run / "metrics.jsonl", "w") as file:
        file.writelines(f'{{"iteration": {n}, "a": {n}.5}}\n' for n in range(1, 100_001))
    statuses = iter(["running"] * 20)
    monkeypatch.setattr(package.Run, "status", property(lambda self: next(statuses, "finished")))
    read, parse = [], json.loads
    monkeypatch.setattr(json, "loads", lambda text: (read.append(1), parse(text))[1])
    assert sum(1 for _ in package.Run(run).watch(interval=0)) == 100_000 == len(read)


@pytest.mark.parametrize("make, message", [
    (lambda lock: os.mkfifo(lock), ".lock: is not a regular file"),
    (lambda lock: lock.symlink_to("/etc/hostname"), ".lock: is a link"),
])
def test_the_lock(run, make, message):
    (run / "summary.json").write_text('{"status": "running"}')
    make(run / ".lock")
    with pytest.raises(package.RunError, match=message):
        package.Run(run).status


def test_folders_that_are_no_checkpoints(run):
    for name in ("1abc", "7", "00000012"):
        (run / "checkpoints" / name).mkdir(parents=True)
    (run / "checkpoints" / "00000012" / "manifest.json").write_text("{}")
    assert list(package.Run(run).checkpoints) == [12]


def test_a_failed_write_leaves_the_old_file(run, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(package.RunError, match="cannot be written: No space left"):
        files.write(b"new", run, "summary.json", replace=True)
    assert b"finished" in files.read(run, "summary.json") and not list(run.glob(".summary*"))
