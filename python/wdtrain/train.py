"""Trains in a process of its own: the program wdtrain, which writes the run's folder.

>>> run = wdtrain.train("cartpole", algorithm="PPO", seed=1, total_steps=100_000)
>>> run.summary["status"], run.metrics()["shared/recent_return"].iloc[-1]
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, overload

from wdtrain import files, installed
from wdtrain.files import RunError, UsageError
from wdtrain.batch import modules, text_of
from wdtrain.run import Run, Runs, need

OF_OTHERS = {  # words of Stable-Baselines3
    "n_steps": "Stable-Baselines3's n_steps is train_batch_size / num_envs here: give these two",
    "verbose": "progress=False shows warnings only",
    "tensorboard_log": "event files of TensorBoard are in every run's folder, which run_dir names",
    "callback": "on_log=FUNCTION is called with each line of metrics, and ends training if it returns False",
    "policy_kwargs": "layers are **{'policy.NAME.model.fc_dims': [64, 64]}, and NAME is that of a policy: shared, or agent for games in Python",
}
LINE_SECONDS = 10  # between lines of progress that are not redrawn in place
ERASE = "\r\x1b[J"  # what the program's table occupies, from the cursor on
LONGEST_TAIL = 1 << 14  # of what the program said, in an error's message

# Becomes the program, which is asked to end if the thread that started it ends first (that thread waits for it otherwise). A
# small process does this, because Python code between fork and exec can deadlock when there are threads. The kernel sends the
# signal once for each thread of a dying process: a second TERM would end the program without a checkpoint, a second HUP does not.
START = """
import ctypes, os, signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
ctypes.CDLL(None).prctl(1, signal.SIGHUP)  # PR_SET_PDEATHSIG
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


@overload
def train(env: Any = None, *, on_log: Callable[[dict[str, Any]], Any] | None = None, total_steps: int | None = None, num_envs: int | None = None,
          seed: int | None = None, seeds: None = None, **options: Any) -> Run: ...
@overload
def train(env: Any = None, *, seeds: Sequence[int], jobs: int | None = None, **options: Any) -> Runs: ...
def train(env: Any = None, *, algorithm: str | None = None, env_params: dict[str, Any] | None = None, run_dir: Any = None, tag: str | None = None,
          config: Any = None, resume: Any = None, settings: Sequence[str] = (), progress: bool = True, on_log: Callable[[dict[str, Any]], Any] | None = None,
          total_steps: int | None = None, num_envs: int | None = None, seed: int | None = None, seeds: Sequence[int] | None = None, jobs: int | None = None,
          **options: Any) -> Run | Runs:
    """Trains policies, waits for the end, and returns the Run; with seeds or a population, Runs.

    env: name of an environment (`wdtrain envs` lists them), or what makes a Gymnasium or PettingZoo environment.
    algorithm: of all policies that learn: "PPO". If it is another one than before, the policies' settings begin with its defaults.
    env_params: parameters of the environment: {"episode_length": 200}.
    run_dir: the run's folder. None: BASEDIR/NAME/TAG/ENV/DATE-TIME-SEED, in which `tag` is saving.tag.
    config: a YAML file, over the one that belongs to the environment.
    resume: a Run, or the folder of one or of its checkpoint, that goes on.
    seeds: range(1, 11): one training for each, in run_dir/SEED, `jobs` at a time (None: as many as this machine has processors or
        GPUs for). on_log's lines have their "seed". RunError names a seed that fails, after the others have ended. With
        **{"trainer.population": 8} the list has the members in their order, and the lines their "member".
    settings: as for --set: ["policy.shared.lr=1e-3"].
    progress: False: shows warnings only.
    on_log: is called with each line of metrics, a dictionary. If it returns False, training ends as by Ctrl-C, and the run is returned.
    options: options of `wdtrain train --help`: total_steps=100_000, num_envs=64, device="cpu", seed=1, num_workers=2; settings by
        path: **{"policy.shared.lr": 1e-3}; and sections: trainer={"precision": "bf16"}.

    Raises UsageError, a ValueError, if a setting is wrong; RunError if training fails; TypeError if env is neither a name nor
    callable; FileNotFoundError if the program wdtrain is not found. KeyboardInterrupt ends training after the current iteration with
    a checkpoint, and is raised again; a second one ends it at once.
    """
    options |= {key: value for key, value in (("total_steps", total_steps), ("num_envs", num_envs), ("seed", seed), ("jobs", jobs)) if value is not None}
    if seeds is not None:
        options["seeds"] = ",".join(map(str, seeds := list(seeds)))
    if not isinstance(algorithm, str | None):
        raise UsageError(f"algorithm={algorithm!r}: give its name, as algorithm='PPO'")
    for key in options.keys() & OF_OTHERS.keys():
        raise UsageError(f"{key}: {OF_OTHERS[key]}")
    command = [find_program(), "train"]
    base = [f"--{key}={_text(value)}" for key, value in (("config", config), ("resume", resume), ("run_dir", run_dir), ("algorithm", algorithm)) if value is not None]
    if env is not None:
        base.append(f"--env={environment_name(env)}")
    of_env = [] if env_params is None else [("env", env_params)]
    by_path = [*of_env, *((key, value) for key, value in options.items() if _is_path(key, value))]
    base += [_option(key, value) for key, value in options.items() if not _is_path(key, value)]
    by_path += [] if tag is None else [("saving.tag", tag)]
    for text in settings:
        if "=" not in text:
            raise UsageError(f"settings: {text!r} is not SECTION.KEY=VALUE")
    sets = [*(f"{key}={_text(value)}" for key, value in by_path), *settings]
    command += base + [word for text in sets for word in ("--set", text)]
    try:
        effective = _checked(command)
    except UsageError as error:
        if f"algorithm = {algorithm}:" not in str(error):
            raise
        command = [f"--algorithm={algorithm.upper()}" if word.startswith("--algorithm=") else word for word in command]
        effective = _checked(command)
    several = _Several("seed", seeds) if seeds is not None else None
    if members := effective["trainer"]["population"]:
        several = _Several("member", range(members))
    if folder := effective["saving"]["run_dir"] if resume in (None, "auto") or members else Run(_text(resume)).folder:
        return _trained(command, pathlib.Path(folder), progress, on_log, several)
    return _in_new_folder(command, effective, progress, on_log, several)


def evaluate(run: Any, episodes: int = 100, **options: Any) -> dict[str, Any]:
    """Plays fresh episodes with the policies of a run, and returns what `wdtrain eval --json` prints: returns, lengths, statistics.

    options: those of `wdtrain eval --help`: greedy=True, seed=2, policy={"runner": "random"}, set={"env.episode_length": 50}.
    """
    return json.loads(ask("eval", run, episodes=episodes, json=True, **options))


def ask(command, run, **options):
    """What a command of the program prints about a run. An option that is a dictionary or a list is repeated."""
    words = [find_program(), command, f"--run={_text(run)}"]
    for key, value in options.items():
        some = [f"{name}={_text(one)}" for name, one in value.items()] if isinstance(value, dict) else value if isinstance(value, list | tuple) else [value]
        words += [_option(key, one) for one in some if one is not None and one is not False]
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.suppress(ImportError, RuntimeError):  # a movie needs ffmpeg: that of PATH goes first
            os.symlink(__import__("imageio_ffmpeg").get_ffmpeg_exe(), os.path.join(folder, "ffmpeg"))
        variables = _variables() | {"PATH": os.pathsep.join([*os.get_exec_path(), folder])}
        done = _answered(words, variables, command)
    print(done.stderr, end="", file=sys.stderr)  # warnings
    return done.stdout


def environment_name(env):
    """The name by which the program knows the environment. Raises TypeError if env is neither a name nor callable."""
    if isinstance(env, str):
        return env
    if callable(env):
        from wdtrain import outside

        return outside.environment_name(env)
    raise TypeError(f"env is {env!r}: give the name of an environment, or a function that makes one")


def find_program():
    """The path of the program wdtrain: $WDTRAIN, or what was built or installed with this package, or from PATH.

    Raises FileNotFoundError if there is none, and ImportError if it is for another torch.
    """
    if named := os.environ.get("WDTRAIN"):
        found = _which(named)
        if not found:
            raise FileNotFoundError(f"WDTRAIN is {named!r}, which is not a program: set it to the path of wdtrain, or unset it")
        return os.path.abspath(found)
    if folder := installed.prefix():
        return str(folder / "bin" / "wdtrain")
    package = os.path.dirname(os.path.abspath(__file__))
    # PROJECT/python/wdtrain, BUILD/python/wdtrain, PREFIX/lib/pythonX.Y/site-packages/wdtrain, and the same in PROJECT/.venv
    for place in ("../../build", "../..", "../../../../bin", "../../../../../build", *os.get_exec_path()):
        if found := _which(os.path.normpath(os.path.join(package, place, "wdtrain"))):
            return os.path.abspath(found)
    raise FileNotFoundError("the program wdtrain is not found: build it (./wd build in the project's folder), or set WDTRAIN to its path")


def _which(path):
    """The program that is called by this path, if it is not main(), which would start itself."""
    if found := shutil.which(path):
        with open(found, "rb") as file:
            return None if b"wdtrain.train import main" in file.read(1000) else found
    return None


def main():
    """The command `wdtrain` that pip installs: becomes the program."""
    os.environ.setdefault("WDTRAIN_PYTHON", sys.executable)
    try:
        program = find_program()
    except (FileNotFoundError, ImportError) as error:
        sys.exit(f"error: {error}")
    called = "wdtrain" if os.path.basename(program) == "wdtrain" and shutil.which("wdtrain") == sys.argv[0] else program  # for commands in messages
    os.execv(program, [called, *sys.argv[1:]])


# --- settings -------------------------------------------------------------------------------------------------


def _text(value):
    if isinstance(value, Run):
        return str(value._weights)  # the run's folder, or its checkpoint's
    return text_of(value)


def _is_path(key, value):
    return "." in key or isinstance(value, dict)


def _option(key, value):
    return f"--{key}" if value is True else f"--{key}={_text(value)}"


def _checked(command):
    """The settings in effect, as dictionaries."""
    words = [word for word in command if not word.startswith("--auto_scale")]  # excludes the next one
    return need("yaml", "pyyaml").safe_load(_answered([*words, "--print_config"], _variables()).stdout)


def _answered(words, variables, what="training"):
    """What the program has said, which succeeded."""
    done = subprocess.run(words, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    _raise_for(done.returncode, done.stderr, None, what)
    return done


def _raise_for(code, said, folder, what):
    """Raises what the program's exit code means."""
    if code == 0:
        return
    if code == 2:
        message = re.split("^error: ", said.strip(), maxsplit=1, flags=re.MULTILINE)[-1]
        raise UsageError(_in_python(message))
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    where = f"; its folder is {folder}" if folder and (folder / "summary.json").exists() else ""
    last = "\n".join(said.strip().splitlines()[-20:])
    raise RunError(f"the {what} ended with {how}{where}\n{last}".rstrip())


def _in_python(message):
    """The message with what one writes in Python in place of options of the shell."""
    if (unknown := re.match(r"unknown option --(\w+)", message)) and "did you mean" not in message:
        message += ("; settings in sections are given by path: **{'policy.shared.lr': 1e-3}, and arguments of the function that makes the environment by"
                    f" env_params={{'kwargs': {{{unknown[1]!r}: ...}}}}")
    if (wrong := re.search(r"env\.(\w+): unknown key; known: .*\bkwargs\b", message)):
        message += f"; arguments of the function that makes the environment: env_params={{'kwargs': {{{wrong[1]!r}: ...}}}}"
    for shell, python in ((r"did you mean --(?!set )(\w+) (\S+)\?", r"did you mean \1=\2?"), (r"--set ([\w.]+)=([-\d.e]+)(?=\W|$)", r'**{"\1": \2}'), (r"--(allow_drift|trust)\b", r"\1=True"),
                          (r"\(--warm_start\)", "(warm_start=RUN)"), (r'(unknown option |")--(?=\w)', r"\1")):
        message = re.sub(shell, python, message)
    return message


# --- the process ----------------------------------------------------------------------------------------------


class _Several(NamedTuple):
    """Trainings of one call: each has its folder in that of all."""

    what: str  # "seed", "member": the key of its lines in on_log
    names: Sequence[int]

    @property
    def folder(self):
        return "seeds" if self.what == "seed" else "population"


def _in_new_folder(command, effective, progress, on_log, several):
    """Makes the folder that the program would make: it is known here, whatever else trains at the same time."""
    saving = effective["saving"]
    game = re.sub(r"^pickle:(?:.*/)?(.+)-\w{16}\.pkl$", r"\1", effective["name"])  # a function is known by its name
    parent = pathlib.Path(saving["basedir"] or ".", saving["name"], saving["tag"], re.sub(r"[^A-Za-z0-9_.-]", "_", game[:100]))
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{effective['trainer']['seed'] if several is None else several.folder}"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for attempt in range(1, 1 << 20):
            folder = parent / (name if attempt == 1 else f"{name}-{attempt}")
            with contextlib.suppress(FileExistsError):
                folder.mkdir()
                break
    except OSError as error:
        raise UsageError(f"the run's folder cannot be made: {error}: name another with run_dir") from error
    try:
        return _trained([*command, f"--run_dir={folder}"], folder, progress, on_log, several)
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()  # if nothing was written


def _trained(command, folder, progress, on_log, several):
    """Runs the training whose folder this is, or those of several in it."""
    runs = {None: folder} if several is None else {name: folder / str(name) for name in several.names}

    def result():
        return Run(folder) if several is None else Runs(Run(run) for run in runs.values() if (run / "summary.json").exists())

    stdout = _terminal() if progress else None
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as told:  # a file, unlike a pipe, is never full
        words = command if progress else [*command, "--quiet"]
        process = None
        voices = [_Voice(said, stdout is not None)]
        if progress and not stdout:
            voices.append(_Voice(told, False, sys.stdout) if several else _Progress(told))
        for name, run in runs.items() if on_log else ():
            voices.append(_Listener(run, on_log if several is None else lambda row, name=name: on_log({**row, several.what: name})))
        try:
            with _interrupts_later():
                process = _start(words, stdout or told, said)
            _follow(process, voices)
        except BaseException as error:
            if process is not None:
                _stop(process, voices)
            if isinstance(error, KeyboardInterrupt):
                raise KeyboardInterrupt(_how_to_go_on(folder, several)) from None
            if not isinstance(error, _EnoughError) or process.returncode not in (0, 130):
                raise
            return result()
        _raise_for(process.returncode, voices[0].tail(), folder, "training")
    return result()


def _terminal():
    """sys.stdout, if it is a terminal, on which the program draws its own table; else None."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        if os.isatty(sys.stdout.fileno()):
            sys.stdout.flush()
            return sys.stdout
    return None


def _start(command, stdout, stderr, **variables):
    """Starts the program in a session of its own: a terminal's Ctrl-C reaches Python alone, which passes it on once."""
    words = [sys.executable, "-I", "-S", "-c", START, str(os.getpid()), *command]
    return subprocess.Popen(words, env=_variables() | variables, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True)


@contextlib.contextmanager
def _interrupts_later():
    """Delays Ctrl-C until the end of the block: an exception between a process's start and its return would leave it running."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is None:
        yield
        return
    came = []
    signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


def _variables():
    """Variables by which an environment in Python is made by this Python, with the modules that it finds."""
    return {"WDTRAIN_PYTHON": sys.executable, **os.environ, "PYTHONPATH": modules()}


def _follow(process, voices):
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
        for voice in voices:
            voice.show(process.returncode)
        if process.returncode is not None:
            return


def _stop(process, voices):
    """Asks the program to end after its current iteration, and waits. Each further Ctrl-C insists."""
    for number in (signal.SIGINT, signal.SIGINT, signal.SIGKILL):
        process.send_signal(number)
        with contextlib.suppress(KeyboardInterrupt):
            while process.returncode is None:
                try:
                    _follow(process, voices)
                except Exception:  # what it says cannot be shown: it ends all the same
                    voices = ()
            return
    process.wait()


def _how_to_go_on(folder, several):
    if several is not None:
        return f"the trainings were interrupted; their folder is {folder}; the same call with run_dir={str(folder)!r} and resume='auto' goes on"
    if not (folder / "summary.json").exists():
        return "the training was interrupted before it began"
    return f"the training was interrupted; its folder is {folder}; wdtrain.train(resume={str(folder)!r}) goes on"


class _Voice:
    """What the program says besides progress, as it says it, on sys.stderr."""

    def __init__(self, file, beside_table, stream=None):
        self._file, self._shown, self._before, self._stream = file.fileno(), 0, ERASE if beside_table else "", stream

    def _read(self, start):
        return os.pread(self._file, os.fstat(self._file).st_size - start, start)  # the program writes at the file's own position

    def show(self, code=None):
        if code in (1, 2):
            return  # the exception says it
        text = self._read(self._shown)
        text = text[: text.rfind(b"\n") + 1]
        if code is None and (error := re.search(b"^error: ", text, re.MULTILINE)):
            text = text[: error.start()]  # the exit code, which follows, says whether the exception says it
        if text:
            self._shown += len(text)
            print(self._before + text.decode(errors="replace"), end="", file=self._stream or sys.stderr, flush=True)

    def tail(self):
        return self._read(max(0, os.fstat(self._file).st_size - LONGEST_TAIL)).decode(errors="replace")


class _EnoughError(Exception):
    """on_log has returned False."""


class _Listener:
    """Calls a function with each new line of metrics.jsonl, until it raises or returns False."""

    def __init__(self, folder, function):
        self._folder, self._lines, self._function, self._last = folder, files.Lines(folder, "metrics.jsonl"), function, 0
        self._last = max((row["iteration"] for row in self._rows()), default=0)  # of a run that goes on

    def _rows(self):
        return Run(self._folder)._new_rows(self._lines) if (self._folder / "summary.json").exists() else ()

    def show(self, code=None):
        for row in self._rows() if self._function else ():
            if row["iteration"] > self._last:
                function, self._function, self._last = self._function, None, row["iteration"]
                if function(row) is False:
                    raise _EnoughError
                self._function = function


class _Progress(_Voice):
    """The newest line of progress that the program has written: redrawn in place in a notebook, otherwise one every LINE_SECONDS."""

    def __init__(self, file):
        super().__init__(file, False)
        self._in_place, self._width, self._next = _in_notebook(), 0, 0.0

    def show(self, code=None):
        now, ended = time.monotonic(), code is not None
        if now < self._next and not ended:
            return
        text = self._read(self._shown)
        if end := text.rfind(b"\n") + 1:
            self._next, self._shown = now + (0.5 if self._in_place else LINE_SECONDS), self._shown + end
            self._print(text[: end - 1].rpartition(b"\n")[2].decode(errors="replace"))
        if ended and self._width:
            print(flush=True)

    def _print(self, line):
        if not self._in_place:
            print(line, flush=True)
            return
        print("\r" + line.ljust(self._width), end="", flush=True)
        self._width = len(line)


def _in_notebook():
    """Whether an IPython kernel shows what is printed."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None
