#!/usr/bin/env python3
"""lines.py: counts the lines of the product by room, beside those of the table in docs/architecture.md.

usage: lines.py           prints both: `./wd lint` does
       lines.py --write   renews the table: when a version is tagged
"""
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"
ROW = re.compile(r"^\| `?([\w/]+)`? \| (\d+) \|$", re.M)


def rooms():
    """Lines of what is tracked by git in src, include, kernels and python; src is counted by folder."""
    counts = collections.Counter()
    folders = ["src", "include", "kernels", "python"]
    for name in subprocess.run(["git", "ls-files", *folders], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split():
        path = pathlib.PurePath(name)
        counts["src/" + path.parts[1] if path.parts[0] == "src" else path.parts[0]] += (ROOT / name).read_bytes().count(b"\n")
    return dict(sorted(counts.items())) | {"all": sum(counts.values())}


def main():
    head, rest = PAGE.read_text().split("## Lines\n", 1)
    section, _, tail = rest.partition("\n## ")
    then, now = {room: int(lines) for room, lines in ROW.findall(section)}, rooms()
    if sys.argv[1:] == ["--write"]:
        table = "".join(f"| {f'`{room}`' if room != 'all' else room} | {lines} |\n" for room, lines in now.items())
        section = section[:section.index("|---|---|\n") + len("|---|---|\n")] + table
        PAGE.write_text(head + "## Lines\n" + section + ("\n## " + tail if tail else ""))
        return
    changed = [f"{room} {lines} ({lines - then.get(room, 0):+d})" for room, lines in now.items() if lines != then.get(room)]
    print(f"product lines: {now['all']} ({now['all'] - then.get('all', 0):+d} since the table of docs/architecture.md)")
    for first in range(0, len(changed), 6):
        print("  " + ", ".join(changed[first:first + 6]))


main()
