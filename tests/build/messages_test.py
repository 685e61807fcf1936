"""messages_test.py: the compiler says in one line what an environment's Params lack."""

import os
import re
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(os.environ["WD_SOURCE_DIR"])
UNIT = '#include "chase.cu"\n#include <wd/detail/cpu_executor.h>\nWD_DEFINE_CPU_ENVIRONMENT(chase, Chase)\n'
RANGE = "a parameter needs a range: field("
KIND = "a parameter is a number, field("


def errors(folder, field):
    """The compiler's errors if the first number of the example's Params is described so."""
    source = (SOURCE / "examples" / "custom_env" / "chase.cu").read_text()
    changed, count = re.subn(r'field\("arena", arena, .*?"\)', field, source, flags=re.S)
    assert count == 1
    (folder / "chase.cu").write_text(changed)
    (folder / "unit.cpp").write_text(UNIT)
    done = subprocess.run(["c++", "-std=c++20", "-fsyntax-only", "-fno-diagnostics-show-caret", "-I", SOURCE / "include", folder / "unit.cpp"], text=True, capture_output=True)
    return [line for line in done.stderr.splitlines() if "error:" in line]


def test_a_complete_field_is_accepted(tmp_path):
    assert errors(tmp_path, 'field("arena", arena, {1, 100}, "side of the arena")') == []


@pytest.mark.parametrize("field, message", [
    ('field("arena", arena)', RANGE),
    ('field("arena", arena, "side of the arena")', RANGE),
    ('field("arena", arena, wd::above(0))', RANGE),
    ('field("arena", "side of the arena")', KIND),
])
def test_a_field_that_is_not_complete_is_named_in_one_line(field, message, tmp_path):
    (error,) = errors(tmp_path, field)
    assert message in error
