"""names_test.py: no two types of a program have the same full name, which C++ forbids and no linker reports."""

import collections
import os
import pathlib
import re

ROOT = pathlib.Path(os.environ["WD_SOURCE_DIR"])

# The emulated GPU has headers of its own for these, in place of the library's.
REPLACED = {"include/wd/emulator/cuda/wd/detail/launch.cuh", "include/wd/emulator/cuda/wd/random.h"}


def types_of(text):
    """Full names of the types that a source defines outside of functions, classes and unnamed namespaces."""
    spaces = []
    for line in text.splitlines():
        if opened := re.match(r"(?:inline )?namespace ?([\w:]*) \{", line):
            spaces.append(opened[1])
        elif line.startswith("}  // namespace"):
            spaces.pop()
        elif "" not in spaces:
            defined = re.match(r"(?:struct|class|union|enum class|enum) (?:alignas\(\S+\) )?(\w+)(?: final)?(?: :[^:;]*)? \{", line)
            if defined:
                yield "::".join([*spaces, defined[1]])


def collisions(sources):
    """Types that two sources of one program define. A program holds one folder of tests, or none."""
    owners = collections.defaultdict(set)
    for path, text in sources.items():
        for name in types_of(text):
            owners[name].add(path)

    def program(path):
        return path.split("/")[1] if path.startswith("tests/") else ""

    def together(a, b):
        return a != b and (program(a) == program(b) or "" in (program(a), program(b)))

    return sorted(f"{name}: {a}, {b}" for name, paths in owners.items() for a in paths for b in paths
                  if a < b and together(a, b))


def read():
    for folder in ("include", "src", "kernels", "tests"):
        for path in (ROOT / folder).rglob("*.*"):
            name = str(path.relative_to(ROOT))
            if path.suffix in {".h", ".cpp", ".cu", ".cuh"} and name not in REPLACED:
                yield name, path.read_text()


def test_no_two_types_of_a_program_have_the_same_name():
    assert collisions(dict(read())) == []


def test_the_same_name_is_found():
    source = "namespace wd {\nstruct Rollout {\n}\nnamespace {\nclass Own final : public A {\n};\n}  // namespace\n}  // namespace wd\n"
    assert collisions({"src/play/rollout.h": source, "tests/kernels/data.h": source}) == [
        "wd::Rollout: src/play/rollout.h, tests/kernels/data.h"]
    assert collisions({"tests/kernels/data.h": source, "tests/learn/data.h": source}) == []
    assert list(types_of("namespace wd::a {\nenum class E : int {\n};\n")) == ["wd::a::E"]
