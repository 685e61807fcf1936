"""mutations.py: makes one mistake at a time in the sources and checks whether the named test detects it.

    python3 tests/mutations/mutations.py learning|device_code [--build build] [--only WORD] [--table FILE.md]

Each entry of a list, learning.toml for example, replaces one piece of text in one file. Everything that depends on
the file is compiled from a copy of it, and the list's target, a library or a test program, is linked in a separate
folder, so that the build is unchanged. The test then runs with that target. It is an error if the test does not
detect a mutation, or if the text of a mutation is no longer in the sources. The build must be up to date,
including the test programs.
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
HERE = pathlib.Path(__file__).resolve().parent
LISTS = ["learning", "device_code"]


def output(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


class Build:
    """`target`: a library or program, as ninja names it."""

    def __init__(self, folder, target):
        self.folder, self.target = folder.resolve(), target
        self.is_library = ".so" in target
        commands = json.loads((self.folder / "compile_commands.json").read_text())
        self.compile = {os.path.relpath(c["output"], self.folder): c["command"] for c in commands}
        lines = output("ninja", "-C", str(self.folder), "-t", "commands", target).splitlines()
        self.link = next(line for line in reversed(lines) if f"-o {target}" in line)
        self.depends = {}  # objects of C++ sources in the target: the files that they were compiled from
        for block in output("ninja", "-C", str(self.folder), "-t", "deps").strip().split("\n\n"):
            compiled, *files = block.strip().splitlines()
            compiled = compiled.split(":")[0]
            is_cpp = compiled.endswith(".cpp.o") or not self.is_library
            if f" {compiled} " in self.link and is_cpp and not (self.is_library and "environments_" in compiled):
                self.depends[compiled] = {os.path.normpath(self.folder / file.strip()) for file in files}

    def objects_of(self, file):
        path = str(ROOT / file)
        return [compiled for compiled, files in self.depends.items() if path in files]

    def mutate(self, file, text, folder):
        """A target in `folder` in which the file has this text. Returns its path."""
        copy = folder / file
        copy.parent.mkdir(parents=True)
        copy.write_text(text)
        built = folder / "lib" / pathlib.PurePath(self.target).name
        built.parent.mkdir()
        link = self.link.replace(f"-o {self.target}", f"-o {built}")
        objects = self.objects_of(file)
        if not objects:
            raise RuntimeError(f"nothing in {self.target} depends on {file}")
        for number, compiled in enumerate(objects):
            command = []
            for part in shlex.split(self.compile[compiled]):
                if part in (f"-I{ROOT}", f"-I{ROOT}/include"):
                    command.append(part.replace(f"-I{ROOT}", f"-I{folder}"))
                if part != "-Werror":
                    command.append(str(copy) if part == str(ROOT / file) else part)
            command[command.index("-o") + 1] = str(folder / f"{number}.o")
            subprocess.run([*command, "-w"], check=True, cwd=self.folder)
            link = link.replace(f" {compiled} ", f" {folder / f'{number}.o'} ")
        subprocess.run(link, check=True, cwd=self.folder, shell=True)
        if self.is_library:
            (built.parent / "libwd.so.0").symlink_to(self.target)
            if not (folder / "include").exists():  # for tests that compile a game
                (folder / "include").symlink_to(ROOT / "include")
        return built

    def run(self, test, built=None):
        """Returns whether the test passes, whether it ran, and its output. A test is a program and a filter, or a
        Python file and a word."""
        place, _, name = test.partition("::")
        environment = dict(os.environ, MKL_CBWR="AVX2,STRICT", WD_BUILD_DIR=str(self.folder), WD_SOURCE_DIR=str(ROOT),
                           WDTRAIN=str(self.folder / "wdtrain"), PYTHONPATH=str(ROOT / "tests"), PYTHONDONTWRITEBYTECODE="1")
        if built and self.is_library:
            environment["LD_LIBRARY_PATH"] = str(built.parent)
        if place.endswith(".py"):
            command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(ROOT / "tests" / place), "-k", name]
        else:
            program = self.folder / "tests" / f"test.{pathlib.PurePath(place).parent}"
            if built and not self.is_library:
                program = built
            command = [str(program), f"--file={place}.cpp", f"--gtest_filter={name}"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", timeout=600)
        ran = re.search(r"Running 0 tests|no tests ran", done.stdout) is None
        return done.returncode == 0 and ran, ran, done.stdout + done.stderr


def read_list(name):
    return tomllib.loads((HERE / f"{name}.toml").read_text())


COMMENT = r"//[^\n]*(?=\n|$)"


def pattern_of(code):
    """A regular expression for this code with any spaces, line ends and comments between its words: another layout
    or another wording of a comment does not hide it."""
    words = re.findall(r"\w+|[^\w\s]", re.sub(COMMENT, "", code))
    return re.compile(rf"(?:\s|{COMMENT})*".join(map(re.escape, words)) + rf"(?:[ \t]*{COMMENT}(?=\n))?")


def mutated(mutation):
    """The file's text with the mutation."""
    text = (ROOT / mutation["file"]).read_text()
    found = pattern_of(mutation["from"]).findall(text)
    if len(found) != 1:
        raise ValueError(f"{mutation['name']}: {mutation['file']} contains the code {len(found)} times")
    return pattern_of(mutation["from"]).sub(lambda _: mutation["to"], text)


def first_failure(said):
    """The name of the first test that failed, or the last line of the output."""
    failed = re.search(r"\[  FAILED  \] ([\w/.]+)", said) or re.search(r"FAILED ([^\s]+)", said)
    return failed.group(1).split("::")[-1] if failed else said.strip().splitlines()[-1]


def run_list(name, build_folder, only=""):
    """Yields (mutation, detected, first failure, seconds). Raises RuntimeError if a test fails without a mutation."""
    chosen = read_list(name)
    build = Build(build_folder, chosen["target"])
    mutations = [m for m in chosen["mutation"] if only in m["name"]]
    for test in dict.fromkeys(m["test"] for m in mutations):
        passes, ran, said = build.run(test)
        if not passes:
            raise RuntimeError(f"{test} {'fails' if ran else 'does not exist'} without any mutation:\n{said}")
    for mutation in mutations:
        start = time.time()
        with tempfile.TemporaryDirectory(prefix="mutation_") as folder:
            built = build.mutate(mutation["file"], mutated(mutation), pathlib.Path(folder))
            passes, ran, said = build.run(mutation["test"], built)
        yield mutation, ran and not passes, first_failure(said), time.time() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("list", choices=LISTS)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--only", default="")
    parser.add_argument("--table", type=pathlib.Path)
    options = parser.parse_args()
    rows, undetected = [], []
    for mutation, detected, failure, seconds in run_list(options.list, options.build, options.only):
        if not detected:
            undetected.append(mutation["name"])
        shown = f"`{failure}`" if detected else "**not detected**"
        place = mutation["test"].partition("::")[0]
        test = f"tests/{place}" if place.endswith(".py") else f"tests/{place}.cpp"
        rows.append(f"| {mutation['name']} | `{mutation['file']}` | `{test}` | {shown} |")
        print(f"{mutation['name']}: {shown} ({seconds:.0f} s)", flush=True)
    if options.table:
        head = options.table.read_text().split("| mutation |")[0]
        table = ["| mutation | file | test | what failed first |", "| --- | --- | --- | --- |", *rows]
        options.table.write_text(head + "\n".join(table) + "\n")
    print(f"{len(rows) - len(undetected)} of {len(rows)} mutations were detected")
    sys.exit(1 if undetected else 0)


if __name__ == "__main__":
    main()
