"""headers_test.py: docs/headers.md lists every public header once, and examples include what users may."""

import os
import pathlib
import re

ROOT = pathlib.Path(os.environ["WD_SOURCE_DIR"])
PAGE = (ROOT / "docs" / "headers.md").read_text()


def listed(section):
    return re.findall(r"`(wd/[\w/]+\.h)`", PAGE.split(f"## {section}\n")[1].split("\n## ")[0])


def installed():
    found = (path.relative_to(ROOT / "include").as_posix() for path in (ROOT / "include").rglob("*.h"))
    return sorted(name for name in found if not name.startswith(("wd/detail/", "wd/emulator/")))


def test_each_header_is_in_one_list():
    assert sorted(listed("For environments") + listed("For learning")) == installed()


def test_what_is_recommended_exists():
    wanted = listed("I want to ...")
    assert len(wanted) > 15 and set(wanted) <= set(installed())


def test_examples_include_no_detail():
    for path in sorted((ROOT / "examples").rglob("*.*")):
        if path.suffix in {".cpp", ".h", ".cu"}:
            used = set(re.findall(r"#include <(wd/[\w/.]+)>", path.read_text()))
            assert used - {"wd/kernels/action_layout.h"} <= set(installed()), path
