# files_test.py: Python's standard readers can read the files of a run.
import glob
import json
import math
import os
import subprocess

import numpy
import pytest
import safetensors
from tensorboard.backend.event_processing import event_file_loader

DEMO = os.path.join(os.environ["WD_BUILD_DIR"], "run_demo")
INTERVALS = 5


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "run"
    environment = dict(os.environ, WD_DEMO_DIR=str(folder), WD_DEMO_INTERVALS=str(INTERVALS))
    subprocess.run([DEMO], env=environment, check=True, capture_output=True)
    return folder


def test_safetensors(run_dir):
    with safetensors.safe_open(run_dir / "weights" / "tagger.safetensors", framework="np") as file:
        assert file.metadata() == {"env": "demo"}
        assert set(file.keys()) == {"counts", "layer.weight"}
        weight = file.get_tensor("layer.weight")
        counts = file.get_tensor("counts")
    expected = numpy.array([[0.5, -1.5, 3.25], [1e-30, 7.0, -0.0]], dtype=numpy.float32)
    assert weight.dtype == numpy.float32 and weight.tobytes() == expected.tobytes()
    assert counts.tolist() == [-1, 2**40]


def rows_of(run_dir):
    return [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]


def test_metrics(run_dir):
    rows = rows_of(run_dir)
    assert [row["iteration"] for row in rows] == [1, 2, 3, 4, 5]
    assert list(rows[0])[:3] == ["iteration", "env_steps", "agent_steps"]
    assert rows[0]["tagger/mean_return"] is None and rows[4]["tagger/mean_return"] == 5
    assert all(row["tagger/policy_loss"] == math.sin(row["iteration"]) / 3 for row in rows)


def test_tensorboard_reads_every_record(run_dir):
    (path,) = glob.glob(str(run_dir / "events.out.tfevents.*"))
    events = list(event_file_loader.EventFileLoader(path).Load())
    assert len(events) == 1 + INTERVALS
    for event, row in zip(events[1:], rows_of(run_dir)):
        assert event.step == row["env_steps"]
        # The loader turns simple_value into a tensor of one float.
        found = {value.tag: value.tensor.float_val[0] for value in event.summary.value}
        expected = {name: numpy.float32(value) for name, value in row.items() if value is not None}
        assert found == expected


def test_summary(run_dir):
    summary = json.loads((run_dir / "summary.json").read_text())
    assert summary["status"] == "finished" and summary["mean_return"] == {"tagger": 7.5, "runner": -11.25}
