"""Where programs and libraries look for their libraries (DT_RUNPATH, DT_RPATH)."""

import pathlib
import re
import subprocess


def elf_files(folder):
    """All ELF programs and shared libraries below a folder, each once."""
    for path in sorted(pathlib.Path(folder).rglob("*")):
        if path.is_symlink() or not path.is_file() or path.suffix == ".o":
            continue
        with path.open("rb") as file:
            head = file.read(18)
        if head[:4] == b"\x7fELF" and head[16] in (2, 3):  # ET_EXEC, ET_DYN
            yield path


def elements(path):
    text = subprocess.run(["readelf", "-d", path], check=True, capture_output=True, text=True).stdout
    return [element for found in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", text) for element in found.split(":")]


def unsafe(folder):
    """Maps each file to the elements that mean the working folder or a folder in it. An empty element does."""
    found = {str(path): [e for e in elements(path) if not e.startswith(("/", "$ORIGIN"))] for path in elf_files(folder)}
    return {path: elements for path, elements in found.items() if elements}
