"""kills_slow_test.py: processes of Python that are killed at 50 random moments."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(os.environ["WD_SOURCE_DIR"]) / "tests" / "outside"))

from failures_test import killed_training, place  # noqa: E402, F401


@pytest.mark.parametrize("seed", range(100, 150))
def test_a_process_is_killed_at_a_random_moment(seed):
    killed_training(seed, "stop" if seed % 2 == 0 else "restart")
