"""sweep_slow_test.py: sweeps that take longer: trials that end early, and processes of which each is killed at any moment."""

import os
import pathlib
import random
import re
import sys
import time

import pytest

ROOT = pathlib.Path(os.environ["WD_SOURCE_DIR"])
sys.path.insert(0, str(ROOT / "python"))

import wdtrain  # noqa: E402
from python.sweep_test import SWEEP, ended, rows, started, written  # noqa: E402


def test_halving_prunes_nobody_before_half(tmp_path):
    table = wdtrain.sweep( SWEEP | {"prune": "halving", "seeds": 1, "trials": 4, "total_steps": "30k", "settings": {"lr": ["1e-2", "1e-6"]}}, out=tmp_path / "out")
    pruned = [row for row in table if row["state"] == "pruned"]
    assert pruned and all(row["steps"] >= 15000 for row in pruned) and table[0]["state"] == "complete"


@pytest.mark.parametrize("storage", ["study.db", "journal.log"])
def test_three_processes_that_are_killed_at_any_moment(tmp_path, storage):
    whole = wdtrain.sweep(SWEEP | {"total_steps": "20k"}, out=tmp_path / "whole")
    more = {} if storage == "study.db" else {"storage": str(tmp_path / storage)}
    file, draw = written(tmp_path, total_steps="20k", **more), random.Random(1)
    processes, said = [started(file, tmp_path / "out") for _ in range(3)], ""
    for _ in range(12):
        time.sleep(draw.uniform(0.3, 1.5))
        processes[0].kill()
        said += ended(processes.pop(0))[1]
        processes.append(started(file, tmp_path / "out"))
    ends = [ended(process) for process in processes]
    assert [code for code, *_ in ends] == [0] * 3, ends
    ends.append(ended(started(file, tmp_path / "out")))  # with what those left that were killed after the others had ended
    assert ends[-1][0] == 0 and rows(tmp_path / "out") == rows(tmp_path / "whole") and len(whole) == 4
    finished = re.findall(r"^trial (\d): ", said + "".join(one[1] for one in ends), re.MULTILINE)
    assert len(finished) == len(set(finished)), finished


def test_a_training_that_fails_is_named_and_ends_no_other(tmp_path, capfd):
    pair = {"trainer.num_envs": [8, 256], "trainer.train_batch_size": [64, 4096]}  # each alone is fine
    failing = SWEEP | {"sampler": "grid", "settings": pair, "seeds": 1, "total_steps": 1024, "set": {"trainer.device": "cpu"}}
    for attempt in range(2):  # it is not made again, and is not forgotten
        with pytest.raises(wdtrain.RunError, match="trainings of trial 2 failed"):
            wdtrain.sweep(failing | {"trials": 4}, out=tmp_path / "out")
        assert ("trial 2 failed: seed 1: " in capfd.readouterr().err) == (attempt == 0)
        assert [row["state"] for row in rows(tmp_path / "out")] == ["complete", "complete", "fail", "complete"]
