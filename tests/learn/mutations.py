"""mutations.py: breaks the sources of learning in one place at a time and checks whether the named test
detects it.

    python3 tests/learn/mutations.py [--build build] [--only WORD] [--table docs/learning/mutations.md]

Each entry of mutations.toml replaces one piece of text in one file. Everything that depends on the file is
compiled from a copy of it, and the library is linked in a separate folder, so that the build is unchanged.
The test then runs with that library. It is an error if the test does not detect a mutation, or if the text
of a mutation is no longer in the sources. The build must be up to date, including the test programs.
"""

import argparse
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = "libwd.so.0.1.0"


def output(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


class Build:
    def __init__(self, folder):
        self.folder = folder.resolve()
        commands = json.loads((self.folder / "compile_commands.json").read_text())
        self.compile = {os.path.relpath(c["output"], self.folder): c["command"] for c in commands}
        lines = output("ninja", "-C", str(self.folder), "-t", "commands", LIBRARY).splitlines()
        self.link = next(line for line in reversed(lines) if f"-o {LIBRARY}" in line)
        # Maps objects of the library's C++ sources to the files they were compiled from.
        self.depends = {}
        for block in output("ninja", "-C", str(self.folder), "-t", "deps").strip().split("\n\n"):
            target, *files = block.strip().splitlines()
            target = target.split(":")[0]
            if f" {target} " in self.link and target.endswith(".cpp.o") and "environments_" not in target:
                self.depends[target] = {os.path.normpath(self.folder / file.strip()) for file in files}

    def objects_of(self, file):
        path = str(ROOT / file)
        return [target for target, files in self.depends.items() if path in files]

    def mutate(self, file, text, folder):
        """A library, linked in `folder`, in which the file contains `text`."""
        copy = folder / file
        copy.parent.mkdir(parents=True)
        copy.write_text(text)
        link = self.link.replace(f"-o {LIBRARY}", f"-o {folder / LIBRARY}")
        objects = self.objects_of(file)
        if not objects:
            raise RuntimeError(f"nothing in the library depends on {file}")
        for number, target in enumerate(objects):
            command = [f"-I{folder}" if part == f"-I{ROOT}" else part for part in shlex.split(self.compile[target])]
            command.insert(command.index(f"-I{folder}") + 1, f"-I{ROOT}")
            command = [str(copy) if part == str(ROOT / file) else part for part in command if part != "-Werror"] + ["-w"]
            command[command.index("-o") + 1] = str(folder / f"{number}.o")
            subprocess.run(command, check=True, cwd=self.folder)
            link = link.replace(f" {target} ", f" {folder / f'{number}.o'} ")
        subprocess.run(link, check=True, cwd=self.folder, shell=True)
        (folder / "libwd.so.0").symlink_to(LIBRARY)
        return folder

    def run(self, test, library=None):
        """Returns whether the test passes, and its output. A test is a program and a filter, or a Python
        file and a word."""
        place, _, name = test.partition("::")
        environment = dict(os.environ, MKL_CBWR="AVX2,STRICT", WD_BUILD_DIR=str(self.folder), WD_SOURCE_DIR=str(ROOT),
                           WDTRAIN=str(self.folder / "wdtrain"), PYTHONPATH=str(ROOT / "tests"), PYTHONDONTWRITEBYTECODE="1")
        if library:
            environment["LD_LIBRARY_PATH"] = str(library)
        if place.endswith(".py"):
            command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(ROOT / "tests" / place), "-k", name]
        else:
            program = self.folder / "tests" / f"test.{pathlib.PurePath(place).parent}"
            command = [str(program), f"--file={place}.cpp", f"--gtest_filter={name}"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
        ran = re.search(r"Running 0 tests|no tests ran", done.stdout) is None
        return done.returncode == 0 and ran, ran, done.stdout + done.stderr


def mutations():
    return tomllib.loads((ROOT / "tests/learn/mutations.toml").read_text())["mutation"]


def mutated(mutation):
    """The file's text with the mutation."""
    text = (ROOT / mutation["file"]).read_text()
    if text.count(mutation["from"]) != 1:
        raise ValueError(f"{mutation['name']}: the text stands {text.count(mutation['from'])} times in {mutation['file']}")
    return text.replace(mutation["from"], mutation["to"])


def what_it_said(said):
    """The first failure, in a few words."""
    failed = re.search(r"\[  FAILED  \] ([\w/.]+)", said) or re.search(r"FAILED ([^\s]+)", said)
    return failed.group(1).split("::")[-1] if failed else said.strip().splitlines()[-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--only", default="")
    parser.add_argument("--table", type=pathlib.Path)
    options = parser.parse_args()
    build = Build(options.build)
    chosen = [m for m in mutations() if options.only in m["name"]]
    for test in dict.fromkeys(m["test"] for m in chosen):
        passes, ran, said = build.run(test)
        if not passes:
            sys.exit(f"{test} {'fails' if ran else 'does not exist'} without any mutation:\n{said}")
    rows, unnoticed = [], []
    for mutation in chosen:
        start = time.time()
        with tempfile.TemporaryDirectory(prefix="mutation_") as folder:
            library = build.mutate(mutation["file"], mutated(mutation), pathlib.Path(folder))
            passes, ran, said = build.run(mutation["test"], library)
        if passes or not ran:
            unnoticed.append(mutation["name"])
        noticed = "**not noticed**" if passes else f"`{what_it_said(said)}`"
        place = mutation["test"].partition("::")[0]
        test = f"tests/{place}" if place.endswith(".py") else f"tests/{place}.cpp"
        rows.append(f"| {mutation['name']} | `{mutation['file']}` | `{test}` | {noticed} |")
        print(f"{mutation['name']}: {noticed} ({time.time() - start:.0f} s)", flush=True)
    if options.table:
        head = options.table.read_text().split("| mutation |")[0]
        table = ["| mutation | file | test | what failed first |", "| --- | --- | --- | --- |", *rows]
        options.table.write_text(head + "\n".join(table) + "\n")
    print(f"{len(rows) - len(unnoticed)} of {len(rows)} mutations were noticed")
    sys.exit(1 if unnoticed else 0)


if __name__ == "__main__":
    main()
