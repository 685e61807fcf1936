# tutorials_test.py: a reader who follows a tutorial from top to bottom gets what it says.
#
# The blocks of one page run in order in one folder of its own:
#   <!-- file: NAME --> before a block   the block is written to that file
#   ```sh                                every line runs, by the rules of readme_test.py, but training has a limit of 0.3 seconds.
#                                        A line marked `# fails` must fail, and has no limit; nor has one marked `# seconds`.
#   ```python                            runs in one interpreter for the page
#   any other block                      is output to read, or an excerpt of a file of this repository (<!-- from PATH -->)
# The notebook runs from top to bottom, without its cell tagged `install`.
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from docs.readme_test import SOURCE, shortened

TUTORIALS = SOURCE / "docs" / "tutorials"
PAGES = [SOURCE / "README.md", *sorted(TUTORIALS.glob("*.md")), SOURCE / "docs" / "coming_from.md"]
OUTPUT = {"console", "text"}
BLOCK = re.compile(r"(?:^<!-- (file|from):? (\S+) -->\n)?^```(\w*)\n(.*?)^```$", re.M | re.S)


def steps(page):
    """What the reader does: (kind, name of the file or language, text, line of the page)."""
    text, found = page.read_text(), []
    for match in BLOCK.finditer(text):
        marker, name, language, body = match.groups()
        line = text.count("\n", 0, match.start()) + 1
        if marker == "file":
            found.append(("file", name, body, line))
        elif marker is None and language in ("sh", "python"):
            found.append((language, language, body, line))
        else:
            found.append(("read", "from" if marker else language, body, line))
    return found


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """The environment of a reader who has installed the wheel, in a folder of their own."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "wdtrain").symlink_to(os.environ["WDTRAIN"])
    convert = tmp_path / "bin" / "wdtrain-convert"
    convert.write_text(f"#!{sys.executable}\nfrom wdtrain.convert import main\nmain()\n")
    convert.chmod(0o755)
    (tmp_path / "work").mkdir()
    here = os.path.dirname(sys.executable)
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{here}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(SOURCE / "python"))
    monkeypatch.setenv("WDTRAIN_PYTHON", sys.executable)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "MPLCONFIGDIR"):
        monkeypatch.setenv(name, str(tmp_path / "jupyter"))
    return tmp_path / "work"


class Interpreter:
    """One Python of a page, as a reader's session: it runs a block after another."""

    PROGRAM = """
import sys, traceback
known = {"__name__": "__main__"}
sys.path.insert(0, "")
for name in sys.stdin:
    try:
        exec(compile(open(name.strip()).read(), name.strip(), "exec"), known)
        answer = "ok"
    except BaseException:
        traceback.print_exc()
        answer = "failed"
    print("\\nblock " + answer, flush=True)
"""

    def __init__(self):
        self._process, self._number = None, 0

    def run(self, block):
        if self._process is None:
            self._process = subprocess.Popen([sys.executable, "-c", self.PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                             stderr=subprocess.STDOUT, text=True)
        self._number += 1
        path = pathlib.Path(f".block_{self._number}.py")
        path.write_text(block)
        print(path, file=self._process.stdin, flush=True)
        said = []
        for line in self._process.stdout:
            said.append(line)
            if line.startswith("block "):
                return line.strip() == "block ok", "".join(said)
        return False, "".join(said)

    def close(self):
        if self._process is not None:
            self._process.stdin.close()
            self._process.wait(timeout=60)
            self._process.stdout.close()


def commands(block):
    return [line for line in block.replace("\\\n", " ").splitlines() if line.strip() and "# minutes" not in line]


def as_tested(command):
    return command if "# fails" in command or "# seconds" in command else shortened(command).replace("--max_seconds 1", "--max_seconds 0.3")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_reader_can_follow(page, reader):
    interpreter = Interpreter()
    try:
        for kind, name, text, line in steps(page):
            place = f"{page.name}:{line}"
            if kind == "file":
                pathlib.Path(name).write_text(text)
            elif kind == "python":
                fine, said = interpreter.run(text)
                assert fine, f"{place}\n{said}"
            elif kind == "sh":
                for command in commands(text):
                    done = subprocess.run(["bash", "-c", as_tested(command)], capture_output=True, text=True, timeout=120)
                    assert (done.returncode != 0) == ("# fails" in command), f"{place}: {command}\n{done.stdout}{done.stderr}"
    finally:
        interpreter.close()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_that_do_not_run_are_output(page):
    for kind, name, text, line in steps(page):
        assert kind != "read" or name in OUTPUT | {"from"}, f"{page.name}:{line}: a block of {name or 'no language'} does not run"


@pytest.mark.parametrize("page", sorted(TUTORIALS.glob("*.md")), ids=lambda page: page.name)
def test_a_page_can_be_followed_from_top_to_bottom(page):
    lines = page.read_text().splitlines()
    saved = sum(text.count("\n") for kind, _, text, _ in steps(page) if kind == "file")
    assert 60 <= len(lines) and len(lines) - saved <= 160
    assert re.search(r"\b\d+ minutes\b", "\n".join(lines[:8])), "say how long it takes"
    assert any(line.startswith("## Next") for line in lines[-14:])


def test_the_notebook_runs_from_top_to_bottom(reader):
    import nbclient
    import nbformat
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import KernelManager

    notebook = nbformat.read(TUTORIALS / "first_steps.ipynb", as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code), "commit it without outputs"
    assert "install" in code[0].metadata.tags and "pip install" in code[0].source
    notebook.cells = [cell for cell in notebook.cells if "install" not in cell.metadata.get("tags", [])]
    notebook.metadata.kernelspec.name = "this_python"
    kernel = reader / "kernels" / "this_python"
    kernel.mkdir(parents=True)
    (kernel / "kernel.json").write_text(json.dumps({"argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
                                                    "display_name": "Python", "language": "python"}))
    manager = KernelManager(kernel_name="this_python", kernel_spec_manager=KernelSpecManager(kernel_dirs=[str(reader / "kernels")]))
    nbclient.NotebookClient(notebook, km=manager, timeout=60).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    kinds = [kind for output in shown for kind in output.get("data", {})]
    assert kinds.count("image/png") == 2 and any("iframe" in output.get("data", {}).get("text/html", "") for output in shown)
    assert any("{'found': True}" in output.get("text", "") for output in shown)
