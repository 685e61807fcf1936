#!/usr/bin/env python3
"""build.py: builds the documentation site, a folder that any static host serves and a browser opens from disk.

    python3 docs/site/build.py build/site --program build/wdtrain

The pages are docs/**/*.md, README.md, CHANGELOG.md and CONTRIBUTING.md, what the program says of itself, the public headers
(Doxygen, Breathe), the Python package (autodoc), and every file of the repository that a page links to. Needs Doxygen and
docs/site/requirements.txt. A warning is an error.
"""

import argparse
import itertools
import json
import os
import pathlib
import posixpath
import re
import shutil
import subprocess
import sys
import textwrap
from xml.etree import ElementTree

import gallery
from comments import filtered

SITE = pathlib.Path(__file__).resolve().parent
ROOT = SITE.parent.parent
OWN = {"README.md": "readme.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
LANGUAGES = {".cpp": "cpp", ".cu": "cpp", ".h": "cpp", ".json": "json", ".py": "python", ".sh": "bash", ".yaml": "yaml", ".js": "js"}
FOLDERS = {"docs/design": "design/index.md", "include/wd": "reference/cpp.md"}  # whose pages are no list of files

# The public names of the Python package, by page.
PYTHON = {
    "wdtrain": ["train", "evaluate", "make", "runs", "flatten", "Run", "RunError", "UsageError"],
    "wdtrain.envs": ["MultiAgentEnv"],
    "wdtrain.vector": ["VectorEnv"],
    "wdtrain.policy": ["Policy"],
    "wdtrain.sb3": ["VecEnv"],
}


class Stage:
    """The folder of pages that Sphinx reads."""

    def __init__(self, folder):
        self.folder, self.files = folder, {}  # files: of the repository, with their pages

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def page_of(self, path):
        """The page that shows a file or folder of the repository. Writes it if there is none yet."""
        if path in OWN:
            return OWN[path]
        if path in FOLDERS:
            return FOLDERS[path]
        if path.startswith(("docs/gallery/", "docs/reference/")) or (path.startswith("docs/") and (ROOT / path).is_file()):
            return path.removeprefix("docs/")
        page = f"files/{path.rstrip('/')}{'/index' if (ROOT / path).is_dir() else ''}.md"
        if path not in self.files:
            self.files[path] = page
            # Not in the menu, which Furo makes anew for every page, and not in the search, where they would hide the guides.
            self.write(page, "---\norphan: true\nnosearch: true\n---\n" + (self.listing(path, page) if (ROOT / path).is_dir() else self.source(path)))
        return page

    def listing(self, path, page):
        names = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", path], capture_output=True, text=True).stdout.split("\0")
        names = [name for name in names if name] or [each.relative_to(ROOT).as_posix() for each in sorted((ROOT / path).rglob("*")) if each.is_file()]
        lines = [f"- [{posixpath.relpath(name, path)}]({relative(self.page_of(name), page)})\n" for name in names]
        return f"# {path}\n\n{''.join(lines)}"

    def source(self, path):
        text = (ROOT / path).read_text()
        fence = "`" * max([3] + [len(ticks) + 1 for ticks in re.findall("`+", text)])
        return f"# {path}\n\n{fence}{LANGUAGES.get(pathlib.Path(path).suffix, 'none')}\n{text.rstrip()}\n{fence}\n"

    def copy(self, path, text=None):
        """A Markdown file of the repository, or this text in its place. Links that leave docs/ lead to pages of the site."""
        page = self.page_of(path)

        def linked(match):
            target, _, anchor = match[2].partition("#")
            to = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
            if not target or "://" in target or target.startswith("mailto:") or not (ROOT / to).exists():
                return match[0]
            return f"{match[1]}({relative(self.page_of(to), page)}{'#' + anchor if anchor else ''})"

        blocks = re.split(r"(^ *```.*?^ *```$)", text or (ROOT / path).read_text(), flags=re.M | re.S)
        blocks[1::2] = [block if re.search(r"^\$ ", block, re.M) else block.replace("```console", "```none", 1) for block in blocks[1::2]]
        blocks[::2] = [re.sub(r"(\])\(([^)\s]+)\)", linked, text) for text in blocks[::2]]
        self.write(page, "".join(blocks))


def relative(page, other):
    return posixpath.relpath(page, posixpath.dirname(other) or ".")


def toctree(pages, options=":maxdepth: 1\n"):
    return f"```{{toctree}}\n{options}\n" + "".join(f"{page.removesuffix('.md')}\n" for page in pages) + "```\n"


# --- what the program says ------------------------------------------------------------------------------------


def said(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stdout.rstrip()


def commands(program):
    """Every command with its options. Some are tools of the Python package, which print their own help."""
    overview = said(program, "--help")
    text = f"# Commands\n\nSettings are in [configuration](../configuration.md), and [exit codes](#exit-codes) below.\n\n```text\n{overview}\n```\n"
    for name in re.findall(r"^  ([a-z]+) {2,}\S", overview.split("Examples:")[0], re.M):
        if page := {"export": "[Python](../python.md#export)", "convert": "[Python](../python.md#weights-of-other-frameworks)", "sweep": "[sweeps](../sweeps.md)"}.get(name):
            text += f"\n## wdtrain {name}\n\nSee {page}.\n"
        else:
            text += f"\n## wdtrain {name}\n\n```text\n{said(program, name, '--help')}\n```\n"
    codes = re.findall(r"^\.TP\n(.+)\n(.+)$", said(program, "man").split(".SH EXIT STATUS")[1].split(".SH")[0], re.M)
    plain_text = lambda cell: re.sub(r"\\f.", "", cell)  # noqa: E731
    return text + "\n## Exit codes\n\n| code | meaning |\n|---|---|\n" + "".join(f"| {plain_text(code)} | {plain_text(means)} |\n" for code, means in codes)


def environments(program):
    text = "# Parameters of the shipped games\n\nWhat `wdtrain envs NAME` says. The rules are in [the shipped games](../games.md).\n"
    for name in re.findall(r"^(\w+)", said(program, "envs"), re.M)[1:]:
        text += f"\n## {name}\n\n```text\n{said(program, 'envs', name)}\n```\n"
    return text


# --- C++ and Python -------------------------------------------------------------------------------------------


def doxygen(name, xml):
    """Reads one header, which is quicker for Breathe than all at once. Returns its namespaces and its macros."""
    source = xml / "include" / name
    source.parent.mkdir(parents=True)
    source.write_text("\n".join(filtered((ROOT / "include" / name).read_text().splitlines())) + "\n")
    settings = {
        "INPUT": source, "STRIP_FROM_INC_PATH": xml / "include", "XML_OUTPUT": xml, "GENERATE_XML": "YES", "GENERATE_HTML": "NO",
        "GENERATE_LATEX": "NO", "XML_PROGRAMLISTING": "NO", "QUIET": "YES", "WARN_IF_UNDOCUMENTED": "NO", "EXTRACT_ALL": "YES", "EXTRACT_STATIC": "YES",
        "HIDE_IN_BODY_DOCS": "YES", "MARKDOWN_SUPPORT": "NO", "AUTOLINK_SUPPORT": "NO", "MACRO_EXPANSION": "YES", "EXPAND_ONLY_PREDEF": "YES",
        "PREDEFINED": "WD_FN= WD_INLINE= WD_FLATTEN=", "EXCLUDE_SYMBOLS": "wd::detail* c10d*",
    }
    text = "".join(f"{key} = {value}\n" for key, value in settings.items())
    done = subprocess.run(["doxygen", "-"], input=text, capture_output=True, text=True)
    if done.returncode or done.stderr.strip():
        raise SystemExit(f"doxygen: {done.stderr}")
    compounds = ElementTree.parse(xml / "index.xml").findall("compound")
    spaces = [each.findtext("name") for each in compounds if each.get("kind") == "namespace"]
    macros = [each.findtext("name") for each in ElementTree.parse(xml / "index.xml").iterfind("compound[@kind='file']/member[@kind='define']")]
    return [space for space in spaces if space.startswith("wd") and "detail" not in space], list(dict.fromkeys(macros))


def plain(text):
    """Text that Markdown shows as it is, but for `code`."""
    parts = re.split("(`[^`]+`)", text)
    parts[::2] = [re.sub(r"([\\*_<>\[\]])", r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


def header(name, work):
    """The page of a header: the comment at its head, and its declarations."""
    lines = (ROOT / "include" / name).read_text().splitlines()
    head = [line[2:] for line in lines[: next(i for i, line in enumerate(lines) if not line.startswith("//"))]]
    first = head[0].split(": ", 1)[-1]
    head[0] = first[0].upper() + first[1:]
    text = ""
    for code, lines in itertools.groupby(head, lambda line: line.startswith("   ")):
        part = textwrap.dedent("\n".join(lines))
        language = "cpp" if re.search("{$", part, re.M) else "none"
        text += f"\n```{language}\n{part}\n```\n\n" if code else f"{plain(part)}\n"
    project = name.removesuffix(".h").replace("/", "_")
    spaces, macros = doxygen(name, work / project)
    directives = [f".. doxygennamespace:: {space}\n   :project: {project}\n   :members:\n   :content-only:\n" for space in spaces]
    directives += [f".. doxygendefine:: {macro}\n   :project: {project}\n" for macro in macros]
    return f"# {name}\n\n{text}\n```{{eval-rst}}\n" + "\n".join(directives) + "```\n"


def cpp(stage, work):
    listed = (ROOT / "docs" / "headers.md").read_text()
    text = "# C++\n\nThe public headers, in the order of [their guide](../headers.md).\n"
    for section in ("For environments", "For learning"):
        names = re.findall(r"`(wd/[\w/]+\.h)`", listed.split(f"## {section}\n")[1].split("\n## ")[0])
        for name in names:
            stage.write(f"reference/cpp/{name}.md", header(name, work))
        text += f"\n## {section}\n\n" + toctree(f"cpp/{name}" for name in names)
    stage.write("reference/cpp.md", text)


def python():
    text = "# Python\n\nThe public names of the package `wdtrain`. [The guide](../python.md) shows how they are used.\n"
    for module, names in PYTHON.items():
        for name in names:
            kind = "autoexception" if name.endswith("Error") else "autoclass" if name[0].isupper() else "autofunction"
            members = "   :members:\n" if kind == "autoclass" else ""
            text += f"\n## {module}.{name}\n\n```{{eval-rst}}\n.. {kind}:: {module}.{name}\n{members}```\n"
    return text


# --- the site -------------------------------------------------------------------------------------------------


def llms(stage):
    """The guides in one file, in the order of the site: what index.md lists up to the reference."""
    index = (ROOT / "docs" / "index.md").read_text()
    pages = []
    for name in re.findall(r"^(?:[^:<\n]*<)?([\w/*-]+)>?$", "".join(re.findall(r"```\{toctree\}(.*?)```", index.split(":caption: Decisions")[0], re.S)), re.M):
        pages += sorted(stage.folder.glob(f"{name}.md"))
    pages = [page for page in pages if not page.relative_to(stage.folder).parts[0] in ("reference", "files", "gallery")]
    return "\n\n".join(f"<!-- {page.relative_to(stage.folder)} -->\n\n{page.read_text()}" for page in pages)


def build(out, program):
    if out.exists() and any(out.iterdir()) and not (out / ".buildinfo").exists():
        raise SystemExit(f"{out}: is not empty, and not a site that this program built")
    work = out.parent / f"{out.name}-work"
    for folder in (out, work):
        shutil.rmtree(folder, ignore_errors=True)
    stage = Stage(work / "pages")
    shutil.copytree(ROOT / "docs", stage.folder, ignore=lambda folder, names: ["site"] if folder == str(ROOT / "docs") else [])
    design = sorted(path.name for path in (ROOT / "docs" / "design").glob("*.md"))
    stage.write("design/index.md", "# Design decisions\n\nEach page says what was decided, why, and what would change it.\n\n" + toctree(design))
    stage.write("reference/commands.md", commands(program))
    stage.write("reference/games.md", environments(program))
    stage.write("reference/python.md", python())
    cpp(stage, work / "xml")
    for path in [*OWN, *(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("**/*.md") if SITE not in path.parents)]:
        stage.copy(path)
    gallery.write(stage, program)
    listed = "".join(f"- [{path}]({relative(page, 'files/index.md')})\n" for path, page in sorted(stage.files.items()))
    stage.write("files/index.md", f"# Files\n\nFiles of the repository that pages of this site link to.\n\n{listed}")
    version = said(program, "--version").split()[-1]
    environment = {**os.environ, "WD_SITE": json.dumps({"version": version, "xml": str(work / "xml")}),
                   "PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-j", "auto", "-b", "html", "-c", SITE, "-d", work / "doctrees",
               stage.folder, out]
    failed = subprocess.run(command, env=environment).returncode
    if failed:
        raise SystemExit(failed)
    shutil.copytree(stage.folder / gallery.PLAYS, out / gallery.PLAYS)
    (out / "llms.txt").write_text(llms(stage))
    shutil.rmtree(work)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("out", type=pathlib.Path, help="folder of the site, which is replaced")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build" / "wdtrain", help="wdtrain, whose commands and games are described")
    options = parser.parse_args()
    build(options.out.resolve(), options.program.resolve())
