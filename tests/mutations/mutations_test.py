"""mutations_test.py: the texts that the lists of mutations change are in the sources, and the tests that they name
exist."""

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
