"""device_code_slow_test.py: every deliberate mistake in device code is detected by the test that names it."""

import os
import pathlib

import mutations


def test_every_mistake_is_detected():
    results = list(mutations.run_list("device_code", pathlib.Path(os.environ["WD_BUILD_DIR"])))
    assert [mutation["name"] for mutation, detected, _, _ in results if not detected] == []
