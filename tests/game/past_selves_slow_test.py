"""A pool of past selves, killed at 20 random moments by one worker and by two: the same bits."""

import os
import random
import shutil
import signal
import subprocess
import time

import pytest

from checkpoint.runs import WDTRAIN, left, run
from game.past_selves_test import training


@pytest.mark.parametrize("case", ["ppo", "two workers, one policy, played starts"])
def test_killed_at_random_moments(case, tmp_path):
    arguments = [str(word) for word in training(case)]
    assert run(*arguments, "--run_dir", tmp_path / "whole").returncode == 0
    expected, source, workers = left(tmp_path / "whole"), random.Random(case), ["--num_workers", "2"] if "two" in case else []
    for k in range(20):
        folder = tmp_path / "run"
        process = subprocess.Popen([WDTRAIN, *arguments, "--run_dir", str(folder), "--quiet", "--fault", "iter=1,kind=slow:10"], start_new_session=True)
        while not (folder / "checkpoints/latest").exists():
            time.sleep(0.002)
        time.sleep(source.uniform(0, 0.5))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        done = run("--resume", folder, *workers)
        assert done.returncode == 0, done.stderr
        assert left(folder) == expected, k
        shutil.rmtree(folder)
