"""The surroundings of a process: readers that pause, output files that are devices, limits, signals,
hostile input, and an environment that crashes."""

import fcntl
import json
import os
import pathlib
import pty
import resource
import select
import shlex
import shutil
import signal
import stat
import subprocess
import time

import pytest

from checkpoint.runs import WDTRAIN, iterations, options, run, wait_for
from cli.program import SANITIZED

FAULTY = pathlib.Path(os.environ["WD_BUILD_DIR"]) / "faulty"
CHATTY = ["--env", "cartpole", "--num_envs", "2", "--train_batch_size", "8", "--stop_return", "none", "--threads", "1",
          "--device", "cpu", "--set", "saving.metrics_log_freq=1", "--set", "saving.checkpoint_freq=0"]


# --- user-specified outputs ---


def trace(tmp_path, out):
    (tmp_path / "script.json").write_text('{"actions": [0]}')
    return subprocess.run([WDTRAIN, "trace", "--env", "cartpole", "--script", str(tmp_path / "script.json"), "--out", str(out)],
                          capture_output=True, text=True)


def test_an_output_that_is_a_link_is_followed(tmp_path):
    (tmp_path / "real.json").write_text("old" * 10_000)
    (tmp_path / "link.json").symlink_to("real.json")
    (tmp_path / "dangling.json").symlink_to("made.json")
    for link, target in (("link.json", "real.json"), ("dangling.json", "made.json")):
        assert trace(tmp_path, tmp_path / link).returncode == 0
        assert (tmp_path / link).is_symlink()
        assert json.loads((tmp_path / target).read_text())["environment"] == "cartpole"


def test_an_output_that_is_a_pipe_is_written_to(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert trace(tmp_path, tmp_path / "pipe").returncode == 0
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert json.loads(os.read(reader, 1 << 16))["environment"] == "cartpole"
    os.close(reader)


def test_an_output_that_is_a_device_stays_one(tmp_path):
    try:
        os.mknod(tmp_path / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        open(tmp_path / "null", "w").close()
    except PermissionError:
        pytest.skip("no device can be made here")
    assert trace(tmp_path, tmp_path / "null").returncode == 0
    assert stat.S_ISCHR((tmp_path / "null").stat().st_mode)
    done = subprocess.run([WDTRAIN, "bench", "--env", "cartpole", "--mode", "env", "--seconds", "0.1", "--device", "cpu", "--json", str(tmp_path / "null")],
                          capture_output=True, text=True)
    assert done.returncode == 0 and stat.S_ISCHR((tmp_path / "null").stat().st_mode), done.stderr


# --- readers that pause: 400 lines of progress, more than twice the size of a 4 KiB pipe plus our own buffer
# ---


def small_pipe():
    read_end, write_end = os.pipe()
    fcntl.fcntl(read_end, fcntl.F_SETPIPE_SZ, 4096)
    return read_end, write_end


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("streams", ["stdout", "both"])
def test_a_reader_that_pauses_does_not_stop_training(workers, streams, tmp_path):
    read_end, write_end = small_pipe()  # nothing is read until the end
    more = ["--num_workers", "2", "--step_seconds", "20"] if workers else []
    count = 100 if workers else 400
    process = subprocess.Popen([WDTRAIN, *CHATTY, "--total_steps", str(8 * count), *more, "--run_dir", str(tmp_path / "run")], stdout=write_end,
                               stderr=write_end if streams == "both" else subprocess.DEVNULL)
    os.close(write_end)
    assert process.wait(timeout=60) == 0
    assert iterations(tmp_path / "run") == count
    text = b""
    while part := os.read(read_end, 1 << 16):
        text += part
    os.close(read_end)
    assert 3000 < len(text) < 8000, "the pipe was full"


def test_a_reader_that_comes_back_is_told_what_it_missed(tmp_path):
    read_end, write_end = small_pipe()
    process = subprocess.Popen([WDTRAIN, *CHATTY, "--total_steps", "3200", "--run_dir", str(tmp_path / "run"), "--fault", "iter=350,kind=slow:20"], stdout=write_end,
                               stderr=subprocess.DEVNULL)
    os.close(write_end)
    wait_for(lambda: iterations(tmp_path / "run") >= 350)
    with os.fdopen(read_end) as pipe:
        text = pipe.read()
    assert process.wait(timeout=60) == 0
    assert "bytes left out here: the reader did not read them)" in text
    lines = text.splitlines()
    assert lines[-1].startswith("iteration 400 | "), lines[-1]
    assert all(line.startswith(("iteration ", "(")) for line in lines), "no line is torn"


def test_a_dumb_terminal_that_is_stopped_does_not_stop_training(tmp_path):
    ours, theirs = os.openpty()
    process = subprocess.Popen([WDTRAIN, *CHATTY, "--total_steps", "3200", "--run_dir", str(tmp_path / "run")], stdin=theirs, stdout=theirs, stderr=theirs,
                               env={**os.environ, "TERM": "dumb"})
    assert process.wait(timeout=60) == 0  # nothing reads the terminal
    assert iterations(tmp_path / "run") == 400
    os.close(ours)
    os.close(theirs)


# --- limits and signals ---


def test_a_file_at_its_limit_is_as_a_full_disk(tmp_path):
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    done = subprocess.run([WDTRAIN, *CHATTY, "--total_steps", "16k", "--quiet", "--run_dir", str(tmp_path / "run")], capture_output=True, text=True, preexec_fn=limit)
    assert done.returncode == 0, done.stderr
    assert "metrics.jsonl: cannot write: File too large: training goes on without metrics.jsonl" in done.stderr


@pytest.mark.parametrize("fault, code, status", [("iter=9,kind=slow:500", 143, "stopped"), ("iter=9,kind=nan:loss", 1, "failed")])
def test_a_log_that_cannot_be_written_changes_no_end_and_hides_no_cause(fault, code, status, tmp_path):
    folder, most = tmp_path / "run", 1 << 20
    assert run(*options("cartpole", "PPO", 5), "--run_dir", folder).returncode == 0
    (folder / "log.txt").write_text("x" * most)
    process = subprocess.Popen([WDTRAIN, "--resume", str(folder), "--total_steps", "10M", "--fault", fault], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               text=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))
    if status == "stopped":
        wait_for(lambda: iterations(folder) >= 8)
        process.send_signal(signal.SIGTERM)
    _, text = process.communicate(timeout=30)
    assert (process.returncode, json.loads((folder / "summary.json").read_text())["status"]) == (code, status), text
    assert text.count("log.txt: cannot write: File too large: messages are missing there") == 1
    assert ("the policy loss is not finite" in text) == (status == "failed")


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_of_a_person_ends_at_once(second, tmp_path):
    process = subprocess.Popen([WDTRAIN, *options("cartpole", "PPO"), "--run_dir", str(tmp_path / "run"), "--fault", "iter=3,kind=hang"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: iterations(tmp_path / "run") >= 2)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    assert process.poll() is None
    process.send_signal(second)
    _, text = process.communicate(timeout=5)
    assert process.returncode == -second
    assert text.count("once more to stop at once") == 1


STOPPING = ["--fault", "iter=3,kind=slow:1500"]  # every rollout from then on: time for several signals


def stopped_with_a_checkpoint(folder):
    """The run ended by a signal after a whole iteration, and its newest checkpoint is of that iteration."""
    told = json.loads((folder / "summary.json").read_text())
    assert (told["status"], told["stop_reason"]) == ("stopped", "signal"), told
    assert int(os.readlink(folder / "checkpoints" / "latest")) == told["iterations"] == iterations(folder) > 0


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("signals", ["HUP HUP", "HUP HUP HUP TERM", "INT HUP", "TERM HUP HUP"])
def test_a_closed_terminal_is_no_second_wish(signals, workers, tmp_path):
    """A shell passes HUP on to its jobs, to which the kernel has sent it; systemd sends TERM and then HUP."""
    first = getattr(signal, "SIG" + signals.split()[0])
    process = subprocess.Popen([WDTRAIN, *options("cartpole", "PPO", 1000), "--run_dir", str(tmp_path / "run"), *STOPPING, "--threads", "1",
                                *(["--num_workers", "2"] if workers else [])], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: iterations(tmp_path / "run") >= 2)
    for name in signals.split():
        time.sleep(0.1)
        process.send_signal(getattr(signal, "SIG" + name))
    _, text = process.communicate(timeout=30)
    assert process.returncode == 128 + first, text
    stopped_with_a_checkpoint(tmp_path / "run")


@pytest.mark.parametrize("numbers", ["HUP TERM TERM", "HUP INT TERM"])
def test_after_a_closed_terminal_a_person_may_insist(numbers, tmp_path):
    process = subprocess.Popen([WDTRAIN, *options("cartpole", "PPO"), "--run_dir", str(tmp_path / "run"), "--fault", "iter=3,kind=hang"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: iterations(tmp_path / "run") >= 2)
    for name in numbers.split():
        time.sleep(0.2)
        assert process.poll() is None
        process.send_signal(getattr(signal, "SIG" + name))
    assert process.wait(timeout=5) == -signal.SIGTERM


def in_a_shell_whose_terminal_closes(command, ready):
    """Types the command into an interactive bash, closes its terminal when ready() is true, and waits until
    all processes of that session have ended."""
    shell, terminal = pty.fork()
    if shell == 0:
        os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
    os.write(terminal, (shlex.join(map(str, command)) + "\n").encode())
    wait_for(lambda: select.select([terminal], [], [], 0)[0] and os.read(terminal, 1 << 16) and ready() or ready())
    os.close(terminal)
    os.waitpid(shell, 0)
    wait_for(lambda: not processes_of_session(shell))


def processes_of_session(session):
    found = []
    for stat_file in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, its_session = stat_file.read_text().rsplit(")", 1)[1].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(its_session) == session and state not in "ZX":
            found.append(stat_file.parent.name)
    return found


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("again", range(int(os.environ.get("WD_CLOSED_TERMINALS", 2))))
def test_a_shell_whose_terminal_closes_leaves_a_checkpoint(again, workers, tmp_path):
    folder = tmp_path / "run"
    command = [WDTRAIN, *options("cartpole", "PPO", 100_000), "--run_dir", folder, "--fault", "iter=3,kind=slow:100", "--threads", "1",
               "--set", "saving.checkpoint_freq=0", *(["--num_workers", "2"] if workers else [])]
    in_a_shell_whose_terminal_closes(command, lambda: iterations(folder) >= 4)
    stopped_with_a_checkpoint(folder)


def test_after_a_signal_it_says_how_to_go_on(tmp_path):
    process = subprocess.Popen([WDTRAIN, *options("cartpole", "PPO", 10_000), "--run_dir", str(tmp_path / "run")], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
    wait_for(lambda: iterations(tmp_path / "run") >= 2)
    process.send_signal(signal.SIGINT)
    _, text = process.communicate(timeout=30)
    assert (process.returncode, f"; --resume {tmp_path / 'run'} goes on" in text) == (130, True), text


# --- hostile input ---

DEEP = 500_000
SCRIPTS = ['{"actions": %s}', '{"actions": [%s]}', '{"actions": [0], "state": %s}', '{"actions": [0], "state": {"x": %s}}']
STARTS = ["%s", '{"x": %s}', '[{"x": %s}]']


@pytest.mark.parametrize("brackets", ["[]", "{}"])
def test_json_that_is_nested_too_deeply_is_refused(brackets, tmp_path):
    deep = "[" * DEEP + "]" * DEEP if brackets == "[]" else '{"a":' * DEEP + "0" + "}" * DEEP
    path = tmp_path / "deep.json"
    for form in SCRIPTS if brackets == "[]" else SCRIPTS[:1]:
        path.write_text(form % deep)
        done = subprocess.run([WDTRAIN, "trace", "--env", "cartpole", "--script", str(path), "--out", "-"], capture_output=True, text=True)
        assert (done.returncode, "deep.json: is nested deeper than 32 levels" in done.stderr) == (2, True), done
    for form in STARTS if brackets == "[]" else STARTS[1:2]:
        path.write_text(form % deep)
        done = run("--env", "cartpole", "--set", "env.reset=given", "--set", f"env.starts={path}", "--run_dir", tmp_path / "run")
        assert (done.returncode, "env.starts" in done.stderr) == (2, True), done


def test_a_start_that_no_float_holds_is_refused(tmp_path):
    (tmp_path / "starts.json").write_text('{"x": [1, 1e300]}')
    done = run("--env", "tag_continuous", "--set", "env.num_taggers=1", "--set", "env.num_runners=1", "--set", "env.reset=given", "--set", f"env.starts={tmp_path}/starts.json", "--run_dir", tmp_path / "run")
    assert (done.returncode, "state field 'x': 1e+300 is not a float" in done.stderr) == (2, True), done


def test_a_summary_that_is_nested_too_deeply_is_no_summary(tmp_path):
    folder = tmp_path / "run"
    assert run(*options("cartpole", "PPO", 2), "--run_dir", folder).returncode == 0
    (folder / "summary.json").write_text('{"status": %s}' % ("[" * DEEP + "]" * DEEP))
    assert run("--resume", folder).returncode == 0


@pytest.mark.skipif(SANITIZED, reason="limits of memory do not work with a sanitizer")
def test_input_without_an_end_is_refused(tmp_path):
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    done = subprocess.run([WDTRAIN, "trace", "--env", "cartpole", "--script", "/dev/zero", "--out", "-"], capture_output=True, text=True, preexec_fn=limit)
    assert (done.returncode, "/dev/zero: cannot read: File too large" in done.stderr) == (2, True), done


# --- an environment that ends the process ---


def test_a_crash_of_one_process_leaves_its_place(tmp_path):
    done = run(*options("cartpole", "PPO"), "--run_dir", tmp_path / "run", "--fault", "iter=3,kind=segv")
    assert done.returncode == -signal.SIGSEGV
    assert ("error: segmentation fault, in iteration 3, phase rollout; `wdtrain check --env NAME` says which agent of the environment goes out of bounds, "
            "if one does\n") in done.stderr, done.stderr
    assert "_ZNK2wd5Fault6injectEl" in done.stderr
    told = json.loads((tmp_path / "run" / "error.json").read_text())
    assert (told["rank"], told["iteration"], told["phase"], told["signal"], told["exit_code"]) == (0, 3, "rollout", "SIGSEGV", None)
    assert any("inject" in frame for frame in told["backtrace"])
    assert abs(time.time() - __import__("datetime").datetime.fromisoformat(told["time"].replace("Z", "+00:00")).timestamp()) < 60
    assert told["message"] == "segmentation fault" and told["host"] == os.uname().nodename


def test_an_environment_that_calls_exit_is_noticed(tmp_path):
    done = subprocess.run([str(FAULTY), "--env", "faulty", "--set", "env.fault=exit", "--device", "cpu", "--num_envs", "2", "--train_batch_size", "8",
                           "--total_steps", "800", "--run_dir", str(tmp_path / "run")], capture_output=True, text=True)
    assert done.returncode == 1, done
    assert "error: exit() was called before the program had finished" in done.stderr
    assert json.loads((tmp_path / "run" / "error.json").read_text())["exit_code"] == 1


def test_a_step_that_never_ends_is_named(tmp_path):
    with open(tmp_path / "said", "w") as said:
        process = subprocess.Popen([str(FAULTY), "--env", "faulty", "--set", "env.fault=loop", "--device", "cpu", "--num_envs", "2",
                                    "--train_batch_size", "8", "--step_seconds", "0.5", "--run_dir", str(tmp_path / "run")], stderr=said)
    try:
        wait_for(lambda: "no progress for 0.5 s in phase rollout of iteration 1" in (tmp_path / "said").read_text())
    finally:
        process.kill()
        process.wait()
