"""track_test.py: metrics go to trackers once each, also if the tracking program is stopped in between.

The trackers are stand-ins with the calls of wandb and mlflow that are used; docs/python.md says with which versions
of the real ones this was tried.
"""

import json
import math
import os
import pathlib
import sys
import types

import pytest

from cli.program import output

ROOT = pathlib.Path(os.environ["WD_SOURCE_DIR"])
sys.path.insert(0, str(ROOT / "python"))

import wdtrain as package  # noqa: E402
from wdtrain.track import main, track  # noqa: E402


@pytest.fixture
def run(tmp_path):
    output("--env", "cartpole", "--total_steps", 10240, "--device", "cpu", "--quiet", "--run_dir", tmp_path / "run")
    return package.Run(tmp_path / "run")


class Stopped(Exception):
    pass


class FakeWandB(types.ModuleType):
    """Refuses a step that is not larger than the last one, as wandb does."""

    def __init__(self):
        super().__init__("wandb")
        self.runs, self.stop_after = {}, math.inf

    def init(self, project, id, resume, name, config, dir):
        assert resume == "allow"
        id = id or f"id{len(self.runs)}"
        record = self.runs.setdefault(id, {"project": project, "config": config, "rows": {}, "summary": {}, "ended": None})

        def log(row, step):
            if len(record["rows"]) >= self.stop_after:
                raise Stopped
            assert step > max(record["rows"], default=0)
            record["rows"][step] = row

        return types.SimpleNamespace(id=id, log=log, summary=record["summary"],
                                     finish=lambda exit_code: record.update(ended=exit_code))


class FakeMLflow(types.ModuleType):
    def __init__(self):
        super().__init__("mlflow")
        self.params, self.rows, self.ended, self.stop_after = {}, {}, None, math.inf
        self.entities = types.SimpleNamespace(Metric=lambda name, value, time, step: (name, value, step))
        self.MlflowClient = lambda: self
        self.created = 0

    def get_experiment_by_name(self, name):
        return None

    def create_experiment(self, name):
        return "1"

    def create_run(self, experiment, run_name):
        self.created += 1
        return types.SimpleNamespace(info=types.SimpleNamespace(run_id="abc"))

    def log_param(self, run, name, value):
        assert name not in self.params
        self.params[name] = value

    def log_batch(self, run, metrics):
        if len(self.rows) >= self.stop_after:
            raise Stopped
        assert metrics[0][2] not in self.rows and not any(math.isnan(value) for _, value, _ in metrics)
        self.rows[metrics[0][2]] = {name: value for name, value, _ in metrics}

    def set_terminated(self, run, status):
        self.ended = status


@pytest.mark.parametrize("name, fake", [("wandb", FakeWandB), ("mlflow", FakeMLflow)])
def test_every_row_once(run, name, fake, monkeypatch):
    tracker = fake()
    monkeypatch.setitem(sys.modules, name, tracker)
    tracker.stop_after = 4
    with pytest.raises(Stopped):
        track(run, name)
    tracker.stop_after = math.inf
    assert track(run, name) == 6 and track(run, name) == 0
    rows = tracker.rows if name == "mlflow" else tracker.runs["id0"]["rows"]
    assert sorted(rows) == list(range(1, 11)) and (name == "mlflow" or len(tracker.runs) == 1)
    for row in run.rows():
        expected = {k: v for k, v in row.items() if k != "iteration" and not math.isnan(v)}
        assert rows[row["iteration"]] == expected
    if name == "mlflow":
        assert tracker.params["trainer.num_envs"] == "32" and tracker.ended == "FINISHED" and tracker.created == 1
    else:
        record = tracker.runs["id0"]
        assert record["config"]["trainer"]["num_envs"] == 32 and record["ended"] == 0
        assert record["summary"] == {"status": "finished", "stop_reason": "total_steps"}
    assert json.loads((run.folder / f".tracked_{name}.json").read_text())["iteration"] == 10


def test_a_tracker_that_is_not_installed(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(SystemExit, match="wandb is not installed: pip install wandb"):
        main([str(run.folder), "--to", "wandb"])
