# streams_test.py: a run is not disturbed by readers that leave, closed descriptors or real terminals.
import json
import os
import shlex
import shutil
import subprocess
import time

import pytest

DEMO = os.path.join(os.environ["WD_BUILD_DIR"], "run_demo")


def demo(folder, intervals, milliseconds):
    settings = f"WD_DEMO_DIR={folder} WD_DEMO_INTERVALS={intervals} WD_DEMO_MS={milliseconds}"
    return f"env {settings} {shlex.quote(DEMO)}"


def check_finished(folder, intervals):
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["status"] == "finished" and summary["iterations"] == intervals
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == intervals


AROUND = ["%s | head -1", "%s | true", "%s >&-", "%s 2>&1 | head -1", "%s <&- >&- 2>&-"]


@pytest.mark.parametrize("around", AROUND)
def test_I5_output_that_nobody_reads(tmp_path, around):
    folder = tmp_path / "run"
    subprocess.run(["bash", "-o", "pipefail", "-c", around % demo(folder, 50, 4)], check=True, timeout=60)
    check_finished(folder, 50)


class Terminal:
    """tmux with one window of a given size."""

    def __init__(self, socket, command, columns, rows):
        self.tmux = ["tmux", "-S", str(socket), "-f", "/dev/null"]
        size = ["-x", str(columns), "-y", str(rows)]
        shell = ["sh", "-c", f"{command}; echo; echo END; sleep 60"]
        subprocess.run([*self.tmux, "new-session", "-d", *size, *shell], check=True)

    def resize(self, columns, rows):
        subprocess.run([*self.tmux, "resize-window", "-x", str(columns), "-y", str(rows)], check=True)

    def screen(self, *options):
        capture = [*self.tmux, "capture-pane", "-p", *options]
        return subprocess.run(capture, check=True, capture_output=True, text=True).stdout

    def wait_for(self, text, seconds=30):
        end = time.monotonic() + seconds
        while text not in (screen := self.screen("-S", "-")):
            assert time.monotonic() < end, screen
            time.sleep(0.05)
        return screen

    def close(self):
        subprocess.run([*self.tmux, "kill-server"], check=False)


@pytest.fixture
def terminal(tmp_path):
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    opened = []

    def start(command, columns, rows=24):
        opened.append(Terminal(tmp_path / "tmux", command, columns, rows))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def progress_lines(screen):
    """Lines that start with the first field shown; which one depends on the terminal's width."""
    return [line for line in screen.splitlines() if line.startswith(("[=", "[-", "it", "return", "200k/200k", "600k/600k"))]


def test_a_table_is_redrawn(tmp_path, terminal):
    window = terminal(demo(tmp_path / "run", 20, 50), columns=120)
    screen = window.wait_for("END")
    (line,) = progress_lines(screen)
    assert line.startswith("[====================] 100 % | iteration 20 | 200k/200k steps | 200k steps/s | ")
    tables = [line.split()[0] for line in screen.splitlines() if line.startswith("  ")]
    assert tables == ["policy", "tagger", "runner", "time:"]


def test_I5_one_line_is_redrawn(tmp_path, terminal):
    window = terminal(demo(tmp_path / "run", 20, 50), columns=37)
    screen = window.wait_for("END")
    (line,) = progress_lines(screen)
    fields = line.split(" | ")
    assert "return tagger 30.00 runner -45.00" in fields and "eta" not in line, (line, "nothing is left")
    assert "\x1b" not in window.screen("-e"), "colours would be escape sequences"
    check_finished(tmp_path / "run", 20)


@pytest.mark.parametrize("columns", [10, 30, 60])
def test_I5_narrow_terminals(tmp_path, terminal, columns):
    window = terminal(demo(tmp_path / "run", 20, 50), columns)
    (line,) = progress_lines(window.wait_for("END"))
    assert len(line) < columns
    check_finished(tmp_path / "run", 20)


def test_I5_a_terminal_that_is_resized(tmp_path, terminal):
    window = terminal(demo(tmp_path / "run", 60, 50), columns=120)
    window.wait_for("iteration")
    for columns, rows in [(40, 10), (3, 1), (1, 1), (200, 50), (37, 24)]:
        time.sleep(0.3)
        window.resize(columns, rows)
    screen = window.wait_for("END")
    assert "return tagger" in progress_lines(screen)[-1], screen
    check_finished(tmp_path / "run", 60)


def test_I5_a_deleted_folder(tmp_path, terminal):
    folder = tmp_path / "run"
    window = terminal(demo(folder, 60, 50), columns=200)
    window.wait_for("iteration")
    folder.rename(tmp_path / "gone")  # at once, so that the program cannot write to a folder that is half removed
    shutil.rmtree(tmp_path / "gone")
    lines = window.wait_for("END").splitlines()
    # The message replaces the progress line and its table, which are redrawn below it.
    assert lines[0].startswith(f"warning: {folder} was deleted while training")
    assert len(progress_lines("\n".join(lines))) == 1
    assert sum(line.startswith("  policy") for line in lines) == 1
    assert json.loads((folder / "summary.json").read_text())["status"] == "finished"
    assert (folder / "weights" / "tagger.safetensors").exists() and (folder / "config.yaml").exists()
