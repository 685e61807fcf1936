"""layers_test.py: no room of the source includes a room below it in the table of docs/architecture.md."""

import os
import pathlib
import re

ROOT = pathlib.Path(os.environ["WD_SOURCE_DIR"])


def layers():
    text = (ROOT / "docs" / "architecture.md").read_text()
    section = text.split("## Layers\n")[1].split("\n## ")[0]
    return {name: place for place, name in enumerate(re.findall(r"^\| `(\w+)` \|", section, re.M))}


def sources():
    for folder in ("src", "kernels"):
        yield from (path.relative_to(ROOT) for path in sorted((ROOT / folder).rglob("*.*")) if path.suffix in {".h", ".cpp", ".cu", ".cuh"})


def room_of(path):
    return path.parts[1] if path.parts[0] == "src" else path.parts[0]


def includes(path):
    return re.findall(r'#include "([^"]+)"', (ROOT / path).read_text())


def crossings(place, files, read):
    """Forbidden includes: those of a room that is below the including room in the table."""
    owner = {}
    for path in files:
        first = read(path)[:1] if path.suffix != ".h" else []
        if first and first[0] == f"wd/{path.stem}.h":
            owner[first[0]] = room_of(path)
    found = []
    for path in files:
        for include in read(path):
            target = room_of(pathlib.PurePath(include)) if include.startswith(("src/", "kernels/")) else owner.get(include)
            if target is not None and place[target] > place[room_of(path)]:
                found.append(f"{path} includes {include}: {room_of(path)} is above {target}")
    return found


def test_every_room_is_in_the_table_and_has_no_loose_file():
    assert {room_of(path) for path in sources()} == set(layers())
    assert not [path for path in sources() if path.parts[0] == "src" and len(path.parts) == 2]


def test_no_layer_is_crossed():
    assert crossings(layers(), list(sources()), includes) == []


def test_a_crossing_is_found():
    files = {pathlib.PurePath("src/base/a.cpp"): ["src/base/a.h", "src/cli/b.h"],
             pathlib.PurePath("src/trainer/train.cpp"): ["wd/train.h"], pathlib.PurePath("src/nets/n.cpp"): ["wd/train.h"]}
    assert crossings(layers(), list(files), files.get) == ["src/base/a.cpp includes src/cli/b.h: base is above cli",
                                                           "src/nets/n.cpp includes wd/train.h: nets is above trainer"]
