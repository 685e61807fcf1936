"""mutations_test.py: the texts that mutations.toml changes are in the sources, and the tests that it names
exist."""

import pathlib

import mutations
import pytest


@pytest.mark.parametrize("mutation", mutations.mutations(), ids=lambda mutation: mutation["name"])
def test_a_mutation_has_its_text_and_its_test(mutation):
    assert mutations.mutated(mutation) != (mutations.ROOT / mutation["file"]).read_text()
    place = mutation["test"].partition("::")[0]
    tests = pathlib.Path(mutations.ROOT / "tests")
    assert (tests / place).is_file() or (tests / f"{place}.cpp").is_file()


def test_no_name_stands_twice():
    names = [mutation["name"] for mutation in mutations.mutations()]
    assert len(names) == len(set(names)) >= 20
