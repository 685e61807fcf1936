"""layers_test.py: no room of the source, and no public header, includes what is below it in the table of docs/architecture.md."""

import os
import pathlib
import re

ROOT = pathlib.Path(os.environ["WD_SOURCE_DIR"])


def section():
    return (ROOT / "docs" / "architecture.md").read_text().split("## Layers\n")[1].split("\n## ")[0]


def layers():
    rooms = section().split("| public headers")[0]
    return {name: place for place, name in enumerate(re.findall(r"^\| `(\w+)` \|", rooms, re.M))}


def headers_without_source():
    """The second table: the room of each public header that no source of its name implements."""
    rows = re.findall(r"^\| (`wd/.*?) \| `(\w+)`", section(), re.M)
    return {header: room for headers, room in rows for header in re.findall(r"`(.*?)`", headers)}


def sources():
    for folder in ("src", "kernels"):
        yield from (path.relative_to(ROOT) for path in sorted((ROOT / folder).rglob("*.*")) if path.suffix in {".h", ".cpp", ".cu", ".cuh"})


def headers():
    return [path.relative_to(ROOT) for path in sorted((ROOT / "include").rglob("*.*")) if path.suffix in {".h", ".cuh"}]


def name_of(header):
    return header.relative_to("include").as_posix()


def room_of(path):
    return path.parts[1] if path.parts[0] == "src" else path.parts[0]


def includes(path):
    return re.findall(r'#include "([^"]+)"', (ROOT / path).read_text())


def owners(files, read):
    """The room of each public header whose source has its name and includes it first."""
    found = {}
    for path in files:
        first = read(path)[:1] if path.suffix != ".h" else []
        if first and first[0].startswith("wd/") and pathlib.PurePath(first[0]).stem == path.stem:
            found[first[0]] = room_of(path)
    return found


def crossings(place, files, read, owner):
    """Forbidden includes: those of a room that is below the including room in the table."""
    found = []
    for path in files:
        room = owner.get(name_of(path)) if path.parts[0] == "include" else room_of(path)
        for include in read(path):
            target = room_of(pathlib.PurePath(include)) if include.startswith(("src/", "kernels/")) else owner.get(include)
            if target is not None and place[target] > place[room]:
                found.append(f"{path} includes {include}: {room} is above {target}")
    return found


def test_every_room_is_in_the_table_and_has_no_loose_file():
    assert {room_of(path) for path in sources()} == set(layers())
    assert not [path for path in sources() if path.parts[0] == "src" and len(path.parts) == 2]


def test_what_one_wants_stands_in_the_reading_order():
    wanted = (ROOT / "docs" / "headers.md").read_text().split("## I want to ...")[1].split("\n## ")[0]
    order = (ROOT / "docs" / "architecture.md").read_text().split("## Reading order")[1].split("\n## ")[0]
    assert {f"include/{header}" for header in re.findall(r"`(wd/.*?)`", wanted)} - set(re.findall(r"`(.*?)`", order)) == set()


def test_every_public_header_has_one_owner():
    implemented, listed = owners(sources(), includes), headers_without_source()
    assert sorted([*implemented, *listed]) == sorted(map(name_of, headers()))


def test_public_headers_include_only_public_headers():
    assert [(path, include) for path in headers() for include in includes(path) if not include.startswith("wd/")] == []


def test_no_layer_is_crossed():
    owner = owners(sources(), includes) | headers_without_source()
    assert crossings(layers(), [*sources(), *headers()], includes, owner) == []


def test_a_crossing_is_found():
    files = {pathlib.PurePath("src/base/a.cpp"): ["src/base/a.h", "src/cli/b.h"],
             pathlib.PurePath("src/trainer/train.cpp"): ["wd/train.h"], pathlib.PurePath("src/nets/n.cpp"): ["wd/train.h"],
             pathlib.PurePath("include/wd/low.h"): ["wd/train.h"]}
    sources_only = [path for path in files if path.parts[0] == "src"]
    owner = owners(sources_only, files.get) | {"wd/low.h": "config"}
    assert crossings(layers(), list(files), files.get, owner) == [
        "src/base/a.cpp includes src/cli/b.h: base is above cli", "src/nets/n.cpp includes wd/train.h: nets is above trainer",
        "include/wd/low.h includes wd/train.h: config is above trainer"]
