"""format_test.py: every source file is formatted, and no line is longer than 110 columns."""

import os
import pathlib
import subprocess

SOURCE = pathlib.Path(os.environ["WD_SOURCE_DIR"])


def test_sources_are_formatted():
    lint = subprocess.run([SOURCE / "wd", "lint", "--format"], capture_output=True, text=True)
    assert lint.returncode == 0, lint.stdout + lint.stderr
