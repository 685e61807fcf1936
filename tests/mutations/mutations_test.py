"""mutations_test.py: the texts that the lists of mutations change are in the sources, and the tests that they name
exist."""

import os
import pathlib
import subprocess
import sys

import conftest
import mutations
import pytest

ALL = [mutation for name in mutations.LISTS for mutation in mutations.read_list(name)["mutation"]]


@pytest.mark.parametrize("mutation", ALL, ids=lambda mutation: mutation["name"])
def test_a_mutation_has_its_text_and_its_test(mutation):
    assert mutations.mutated(mutation) != (mutations.ROOT / mutation["file"]).read_text()
    place = mutation["test"].partition("::")[0]
    tests = mutations.ROOT / "tests"
    assert (tests / place).is_file() or (tests / f"{place}.cpp").is_file()


def test_another_layout_and_wording_is_the_same_code():
    pattern = mutations.pattern_of("if (a) return b;  // why\n  go(1.5f);\n")
    for text in ("if (a) return b;\ngo(1.5f);", "if (a)\n    return b;  // another reason\n  // in two lines\n  go(1.5f);", "if(a) return b; go( 1.5f );"):
        assert pattern.fullmatch(text), text
    for text in ("if (a) return b;\ngo(1.6f);", "if (a) return c;\ngo(1.5f);", "if (a) // return b;\ngo(1.5f);"):
        assert not pattern.search(text), text


def test_names_do_not_repeat():
    names = [mutation["name"] for mutation in ALL]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", mutations.LISTS)
def test_a_list_is_long(name):
    assert len(mutations.read_list(name)["mutation"]) >= 25


def cases_of(test):
    """The cases that "FILE::PATTERN" of a list runs, by name."""
    file, _, pattern = test.partition("::")
    if not file.endswith(".py"):
        program = pathlib.Path(os.environ["WD_BUILD_DIR"]) / "tests/test.{}".format(file.replace("/", ".").rpartition(".")[0])
        listed = subprocess.run([program, f"--gtest_filter={pattern or '*'}", "--gtest_list_tests"], capture_output=True, text=True, check=True, env={**os.environ, "WD_GATE": "0"})
        suite, names = "", []
        for line in listed.stdout.splitlines():
            if line.startswith(" "):
                names.append(suite + line.split("#")[0].strip())
            else:
                suite = line.split("#")[0].strip()
        return names
    listed = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only", "-k", pattern, mutations.ROOT / "tests" / file], capture_output=True, text=True)
    return [line.partition("::")[2] for line in listed.stdout.splitlines() if "::" in line]


def test_the_gate_keeps_a_case_of_every_mutation():
    named = {mutation["test"] for mutation in ALL}
    assert len(named) > 100
    files = {test.partition("::")[0] for test in named}
    kept = {file: set(conftest.kept(file, cases_of(file))) for file in files}
    for test in sorted(named):
        cases = cases_of(test)
        assert cases, test
        assert set(cases) & kept[test.partition("::")[0]], f"tests/gate.txt leaves out all of {test}"
