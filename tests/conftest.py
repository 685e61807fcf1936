"""conftest.py: leaves out the cases of tests/gate.txt where WD_GATE=1, as `./wd test` sets it."""

import fnmatch
import os
import pathlib

import pytest

HERE = pathlib.Path(__file__).resolve().parent


def left_out(file, case):
    """Whether the gate leaves out this case of a file, as cli/eval_test.py."""
    rules = [line.split() for line in (HERE / "gate.txt").read_text().splitlines() if line and not line.startswith("#")]
    found = {verb: any(fnmatch.fnmatchcase(case, pattern) for pattern in patterns)
             for verb, name, *patterns in rules if name == file}
    return "keep" in found and not found["keep"] or found.get("drop", False)


def pytest_collection_modifyitems(items):
    if os.environ.get("WD_GATE") != "1":
        return
    for item in items:
        if left_out(item.path.relative_to(HERE).as_posix(), item.name):
            item.add_marker(pytest.mark.skip(reason="only in ./wd test --all (tests/gate.txt)"))
