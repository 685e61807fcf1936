"""`wdtrain new` writes an environment that compiles without warnings, with its settings."""

import os
import pathlib
import shutil
import subprocess

import pytest

from cli.program import output, wdtrain

INCLUDE = pathlib.Path(__file__).parents[2] / "include"

ROLES = ("--roles", "ant,spider")
MANY = ("--roles", ",".join(c * 5 for c in "abcdefgh"))
WAYS = [(), ROLES, ("--continuous",), ("--team",), (*ROLES, "--continuous", "--team"), (*ROLES, "--team"), (*MANY, "--team")]


@pytest.mark.parametrize("options", WAYS, ids=" ".join)
def test_what_is_written_is_short_and_compiles_without_warnings(options, tmp_path):
    told = output("new", "ants", *options, cwd=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".clangd", "ants.cu", "ants.yaml"]
    assert "train ./ants.cu\n" in told and "check --env ./ants.cu\n" in told
    code = (tmp_path / "ants.cu").read_text()
    assert len(code.splitlines()) <= 70 and "@" not in code and "?r" not in code
    assert f'"-I{INCLUDE}"' in (tmp_path / ".clangd").read_text()
    (tmp_path / "unit.cpp").write_text('#include "ants.cu"\n#include <wd/detail/cpu_executor.h>\nWD_DEFINE_CPU_ENVIRONMENT(ants, Ants)\n')
    command = ["g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-isystem", INCLUDE, "unit.cpp"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=120)
    if shutil.which("clang-format"):
        style = f"--style=file:{INCLUDE.parent / '.clang-format'}"
        subprocess.run(["clang-format", style, "--dry-run", "-Werror", "ants.cu"], cwd=tmp_path, check=True)


@pytest.mark.parametrize("words,reason", [
    ((), "new needs a name"),
    (("Ants",), "environment name 'Ants': must be a letter a-z and up to 19 of the characters"),
    (("state",), "this name is taken; choose another"),
    (("ants", "--roles", "ant,ant"), "role 'ant': this name is taken; choose another"),
    (("ants", "--roles", "ant,a b"), "role 'a b': must be"),
    (("ants", "--roles", "a,b,c,d,e,f,g,h,i"), "name at most 8 roles"),
], ids=str)
def test_what_cannot_be_is_refused(words, reason, tmp_path):
    done = wdtrain("new", *words, cwd=tmp_path)
    assert done.returncode == 2 and reason in done.stderr, done.stderr
    assert not os.listdir(tmp_path)


def test_files_are_kept(tmp_path):
    (tmp_path / "ants.yaml").write_text("mine")
    done = wdtrain("new", "ants", cwd=tmp_path)
    assert done.returncode == 2 and "ants.yaml exists: remove it, or choose another name" in done.stderr
    assert os.listdir(tmp_path) == ["ants.yaml"]
    (tmp_path / ".clangd").write_text("mine")
    output("new", "bees", cwd=tmp_path)
    assert (tmp_path / ".clangd").read_text() == (tmp_path / "ants.yaml").read_text() == "mine"
