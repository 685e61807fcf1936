"""Programs that commands start: --open shows a page in a browser; export and convert are tools in Python."""

import os
import stat
import subprocess
import time

import pytest

from cli.program import output, wdtrain


def script(path, text):
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs") / "run"
    output("train", "cartpole", "--run_dir", folder, "--total_steps", 1024, "--device", "cpu", "--quiet")
    return folder


@pytest.fixture
def tools(tmp_path):
    """A folder that is all of PATH but for sh."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/sh").symlink_to("/bin/sh")
    return tmp_path / "bin"


def environment(tools, **more):
    return {**{name: value for name, value in os.environ.items() if name != "BROWSER"}, "PATH": str(tools), **more}


@pytest.mark.parametrize("command", [["play", "{}", "--out", "a page; touch evil.html"], ["report", "{}", "--out", "a page; touch evil.html"]], ids=["play", "report"])
@pytest.mark.parametrize("name, browser", [("xdg-open", {}), ("open", {}), ("my browser", {"BROWSER": "/nowhere:{tools}/mine"}), ("with an argument", {"BROWSER": "{tools}/mine %s"})])
def test_open_shows_the_page(run, tools, tmp_path, command, name, browser):
    script(tools / ("mine" if browser else name), f'printf "%s\\n" "$@" >{tmp_path}/opened\n')
    settings = environment(tools, **{key: value.format(tools=tools) for key, value in browser.items()})
    done = wdtrain(*(word.format(run) for word in command), "--open", cwd=tmp_path, env=settings)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert (tmp_path / "opened").read_text() == f"{tmp_path}/a page; touch evil.html\n", "one argument, and no shell"
    assert "open it in a browser" not in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a page; touch evil.html", "bin", "opened"]


def test_a_browser_that_stays_is_not_waited_for(run, tools, tmp_path):
    script(tools / "open", "exec /bin/sleep 60 >/dev/null 2>&1\n")
    begin = time.monotonic()
    output("report", run, "--open", cwd=tmp_path, env=environment(tools))
    assert time.monotonic() - begin < 30


def test_no_browser(run, tools, tmp_path):
    for command in ("play", "report"):
        done = wdtrain(command, run, "--open", cwd=tmp_path, env=environment(tools))
        assert (done.returncode, done.stderr) == (2, "error: --open: there is neither xdg-open nor open in PATH: set BROWSER to a browser, or leave out --open "
                                                     "and open the page yourself\n")
        done = wdtrain(command, run, "--open", cwd=tmp_path, env=environment(tools, BROWSER="nosuch"))
        assert (done.returncode, "BROWSER=nosuch names no program that can be run" in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "report.html").exists() and not (run / "rollout.html").exists(), "nothing was done before"


def test_a_browser_that_fails(run, tools, tmp_path):
    script(tools / "xdg-open", "exit 3\n")
    done = wdtrain("report", run, "--open", cwd=tmp_path, env=environment(tools))
    assert (done.returncode, f"xdg-open failed: open {tmp_path}/report.html in a browser yourself" in done.stderr) == (1, True), done.stderr
    assert (tmp_path / "report.html").exists()


def test_json_is_not_shown(run, tmp_path):
    done = wdtrain("play", run, "--open", "--out", "-", cwd=tmp_path)
    assert (done.returncode, "--open shows a page or a movie" in done.stderr, done.stdout) == (2, True, ""), done.stderr


@pytest.mark.parametrize("command", ["export", "convert", "sweep"])
def test_tools_in_python_get_all_arguments(run, tools, tmp_path, command):
    script(tools / f"wdtrain-{command}", 'printf "<%s>" "$@"; exit 7\n')
    done = wdtrain(command, "a b", "--format", "$(touch evil)", "--help", cwd=tmp_path, env=environment(tools))
    assert (done.returncode, done.stdout, done.stderr) == (7, "<a b><--format><$(touch evil)><--help>", "")


def test_export_finds_runs_as_other_commands_do(run, tools, tmp_path):
    script(tools / "wdtrain-export", 'echo "$@"\n')
    for name in ("a", "b"):
        (tmp_path / "runs").mkdir(exist_ok=True)
        subprocess.run(["cp", "-a", run, tmp_path / "runs" / name], check=True)
        os.utime(tmp_path / "runs" / name / "checkpoints", (1e9, 1e9) if name == "b" else None)
    for arguments in (["latest"], ["--run", "latest"]):
        assert output("export", *arguments, "--format", "onnx", cwd=tmp_path, env=environment(tools)).split()[len(arguments) - 1] == "runs/a"
    done = wdtrain("export", "runs", "--format", "onnx", cwd=tmp_path, env=environment(tools))
    assert (done.returncode, "runs: holds 2 runs: name one of them" in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("command", ["export", "convert", "sweep"])
def test_a_tool_that_is_not_installed(tools, command):
    if os.path.exists(os.path.join(os.path.dirname(os.path.realpath(os.environ["WDTRAIN"])), "../.venv/bin", f"wdtrain-{command}")):
        pytest.skip("it is installed beside the program")
    done = wdtrain(command, "x", env=environment(tools))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{command} needs the program wdtrain-{command} of the Python package" in done.stderr and "`./wd python`" in done.stderr
