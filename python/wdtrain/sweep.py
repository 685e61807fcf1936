"""Searches settings: many trainings, each of which is a run, as a file describes them. Optuna draws settings and keeps what was done.

>>> wdtrain.sweep({"env": "cartpole", "total_steps": "20k", "trials": 12, "seeds": 3, "settings": ["policy.shared.lr"]}, out="sweeps/pole")
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import dataclasses
import fcntl
import html
import io
import itertools
import json
import math
import os
import pathlib
import shlex
import signal
import socket
import statistics
import sys
import tempfile
import threading
import time
import zlib
from typing import Any

from wdtrain import files
from wdtrain.batch import text_of
from wdtrain.files import RunError, UsageError
from wdtrain.run import Run, flat, need
from wdtrain.train import LONGEST_TAIL, _answered, _checked, _raise_for, _start, _variables, environment_name, find_program

KEYS = ("env", "total_steps", "trials", "seeds", "algorithm", "config", "set", "settings", "sampler", "score", "prune", "storage")
WORDS = {"sampler": ("tpe", "random", "grid"), "prune": ("none", "halving")}
SCALES = ("linear", "log", "logit", "powers_of_two")
SILENT_SECONDS = 600  # a claim of another machine, whose lock may not be visible here, is then one of a dead process
ENDED = ("complete", "pruned", "fail")  # states of trials, as Optuna calls them


def sweep(file: Any, *, out: Any, jobs: Any = 1) -> list[dict[str, Any]]:
    """Makes all trials that the file describes, and returns their table, best first: docs/sweeps.md.

    file: a YAML file, or its content as a dictionary. out: the sweep's folder; one that was begun goes on.
    jobs: trials side by side, or "auto".

    Raises UsageError before anything begins if a setting is wrong, RunError at the end if a training has failed, and
    KeyboardInterrupt once running trainings have written their checkpoints.
    """
    return _Sweep(file, out, jobs).run()


@dataclasses.dataclass
class _Axis:
    """One setting, and how its values are drawn."""

    path: str
    words: list[str] = dataclasses.field(default_factory=list)  # else a range:
    low: Any = None
    high: Any = None
    scale: str = "linear"

    def draw(self, trial):
        if self.words:
            return trial.suggest_categorical(self.path, self.words)
        if self.scale == "logit":
            drawn = trial.suggest_float(self.path, *(math.log(value / (1 - value)) for value in (self.low, self.high)))
            drawn = 1 / (1 + math.exp(-drawn))
        elif isinstance(self.low, int):
            return str(trial.suggest_int(self.path, self.low, self.high, log=self.scale == "log"))
        else:
            drawn = trial.suggest_float(self.path, self.low, self.high, log=self.scale == "log")
        return f"{min(max(float(f'{drawn:.6g}'), self.low), self.high)!r}"  # no digits that nobody would type


def _number(value, where):
    """A number as the program reads it: 1e-4 and 20k are texts in YAML."""
    text = str(value)
    with contextlib.suppress(ValueError):
        number = float(text[:-1]) * {"k": 1e3, "M": 1e6, "G": 1e9}[text[-1]] if text[-1:] in ("k", "M", "G") else float(text)
        if math.isfinite(number) and not isinstance(value, bool):
            whole = number.is_integer() and "." not in text and "e-" not in text
            return int(number) if whole else number
    raise UsageError(f"{where}: {value!r} is not a number")


def _axis(name, given, env):
    """The setting of this name, with the values that the file gives, or those that it has by default."""
    told = json.loads(_answered([find_program(), "config", name, "--env", env, "--json"], _variables(), "question").stdout)
    if len(paths := sorted({one["name"] for one in told})) > 1:
        raise UsageError(f"settings: {name} means several: {', '.join(paths)}")
    path, about = paths[0], told[0]
    if isinstance(given, list) and given:
        return _Axis(path, [text_of(value) for value in given])
    if isinstance(given, dict):
        if wrong := given.keys() - {"low", "high", "log", "scale"}:
            raise UsageError(f"settings: {name}: {', '.join(map(str, wrong))}: known: low, high, log, scale")
        low, high = (_number(given.get(bound), f"settings: {name}: {bound}") for bound in ("low", "high"))
        scale = given.get("scale", "log" if given.get("log") else "linear")
    elif given not in ("default", None):
        return _Axis(path, [text_of(given)])
    elif "search" in about:
        low, high, scale = (about["search"][key] for key in ("low", "high", "scale"))
    elif about["words"]:
        return _Axis(path, about["words"])
    elif path.startswith("env.") and about["range"].startswith("["):  # its author has chosen it
        low, high, scale = *(_number(bound, name) for bound in about["range"][1:-1].split(", ")), "linear"
    else:
        raise UsageError(f"settings: {name}: what values are usual is not known: give low and high, or a list of values")
    if about["type"] == "int" and scale != "logit":
        low, high = int(low), int(high)
    elif isinstance(low, int) or isinstance(high, int):
        low, high = float(low), float(high)
    fits = {"log": low > 0, "powers_of_two": low > 0, "logit": low > 0 and high < 1}.get(scale, True)
    if scale not in SCALES or low >= high or not fits:
        raise UsageError(f"settings: {name}: low {low}, high {high}, scale {scale}: low is less than high, both above 0 with log and powers_of_two, and in (0, 1) "
                         f"with logit; scales are {', '.join(SCALES)}")
    if scale == "powers_of_two":
        powers = [str(1 << n) for n in range(64) if low <= 1 << n <= high]
        if not powers:
            raise UsageError(f"settings: {name}: there is no power of two from {low} to {high}")
        return _Axis(path, powers)
    return _Axis(path, [], low, high, scale)


def _sampler(kind, grid):
    from optuna import samplers

    class Numbered(samplers.BaseSampler):
        """Draws by a trial's number: what it gets depends neither on the process that began it nor on what was killed."""

        def _drawing(self, trial, name=""):
            seed = zlib.crc32(f"{trial.number} {name}".encode())
            return samplers.TPESampler(seed=seed) if kind == "tpe" else samplers.RandomSampler(seed=seed)

        def infer_relative_search_space(self, study, trial):
            return self._drawing(trial).infer_relative_search_space(study, trial)

        def sample_relative(self, study, trial, search_space):
            return self._drawing(trial).sample_relative(study, trial, search_space)

        def sample_independent(self, study, trial, param_name, param_distribution):
            if kind == "grid":
                return grid[trial.number][param_name]
            return self._drawing(trial, param_name).sample_independent(study, trial, param_name, param_distribution)

    return Numbered()


class _Sweep:
    def __init__(self, file, out, jobs=1):
        try:
            self.optuna = need("optuna")
        except RunError as error:
            raise RunError(f"{error} (or pip install 'wdtrain[sweep]')") from error
        self.optuna.logging.set_verbosity(self.optuna.logging.ERROR)
        self.out, self.stop, self.failed = pathlib.Path(out).absolute(), threading.Event(), []
        self.said = said = file if isinstance(file, dict) else need("yaml", "pyyaml").safe_load(_text_of_file(file))
        if not isinstance(said, dict) or (wrong := [key for key in said if key not in KEYS]):
            raise UsageError(f"{'this sweep' if isinstance(file, dict) else file}: " + ("has no settings" if not isinstance(said, dict) else f"{wrong[0]}: known: {', '.join(KEYS)}"))
        if missing := [key for key, there in (("env or config", "env" in said or "config" in said), ("total_steps", "total_steps" in said), ("settings", said.get("settings"))) if not there]:
            raise UsageError(f"the sweep has no {missing[0]}")
        self.kind, self.prune = (str(said.get(key) or WORDS[key][0]) for key in ("sampler", "prune"))
        for key, word in (("sampler", self.kind), ("prune", self.prune)):
            if word not in WORDS[key]:
                raise UsageError(f"{key}: {word!r}: one of {', '.join(WORDS[key])}")
        seeds = said.get("seeds", 1)
        self.seeds = [_whole(seed, "seeds", 0) for seed in seeds] if isinstance(seeds, list) else list(range(1, _whole(seeds, "seeds") + 1))
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise UsageError(f"seeds: {seeds}: give a number of seeds, or a list without repetitions")
        self.total = _whole(said["total_steps"], "total_steps")
        fixed = dict(flat(said.get("set") or {}))
        options = {"env": environment_name(said["env"]) if "env" in said else None, "config": said.get("config"), "algorithm": said.get("algorithm"), "total_steps": self.total}
        self.base = [find_program(), "train", *(f"--{key}={text_of(value)}" for key, value in options.items() if value is not None)]
        self.base += [word for path, value in fixed.items() for word in ("--set", f"{path}={text_of(value)}")]
        effective = _checked(self.base)
        self.score = said.get("score") or f"{next(iter(effective['policy']))}/recent_return"
        ranges = said["settings"] if isinstance(said["settings"], dict) else dict.fromkeys(said["settings"], "default")
        self.axes = [_axis(name, given, effective["name"]) for name, given in ranges.items()]
        paths = [axis.path for axis in self.axes]
        if twice := [path for path in paths if path in fixed or paths.count(path) > 1]:
            raise UsageError(f"settings: {twice[0]} is given twice")
        self.grid = []
        if self.kind == "grid":
            if ranged := [axis.path for axis in self.axes if not axis.words]:
                raise UsageError(f"settings: {ranged[0]}: the sampler grid needs a list of values")
            self.grid = [dict(zip(paths, values)) for values in itertools.product(*(axis.words for axis in self.axes))]
        self.trials = _whole(said.get("trials", len(self.grid) or 12), "trials")
        self.trials = min(self.trials, len(self.grid)) if self.grid else self.trials
        for axis in self.axes:  # each end of a range alone: others may fit only together
            for value in axis.words or (axis.low, axis.high):
                _checked([*self.base, "--set", f"{axis.path}={value}"])
        processors, device = len(os.sched_getaffinity(0)), effective["trainer"]["device"]
        on_gpu = device.startswith("cuda") or (device == "auto" and os.path.exists("/dev/nvidia0"))
        self.jobs = (1 if on_gpu else processors) if jobs == "auto" else _whole(jobs, "jobs")
        self.jobs = min(self.jobs, self.trials)
        self.threads = [] if "trainer.threads" in fixed else [f"--threads={max(1, processors // self.jobs)}"]

    # --- trials -------------------------------------------------------------------------------------------

    def folder(self, number):
        return self.out / "trials" / f"{number:03}"

    def command(self, settings, number, seed):
        run = [f"--seed={seed}", f"--run_dir={self.folder(number) / str(seed)}", "--resume=auto"]
        return [*self.base, *run, *(word for path, value in settings.items() for word in ("--set", f"{path}={value}"))]

    def lines(self):
        """The commands of all trainings, for another program that starts them. Nothing begins."""
        if self.kind == "tpe" or self.prune != "none":
            raise UsageError("--print: settings that sampler tpe draws, and what prune ends, depend on the scores of earlier trials: use sampler random or grid, without prune")
        study = self.optuna.create_study(sampler=_sampler(self.kind, self.grid))
        for number in range(self.trials):
            trial = study.ask()
            settings = {axis.path: axis.draw(trial) for axis in self.axes}
            yield from (shlex.join(self.command(settings, number, seed)) for seed in self.seeds)

    def study(self):
        optuna, place = self.optuna, str(self.said.get("storage") or f"sqlite:///{self.out / 'study.db'}")
        storage = optuna.storages.RDBStorage(place, engine_kwargs={"connect_args": {"timeout": 60}} if place.startswith("sqlite") else None) if "://" in place else (
            optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(place)))
        pruner = optuna.pruners.NopPruner()
        if self.prune == "halving":
            pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=math.ceil(self.total / 2), reduction_factor=2)
        return optuna.create_study(storage=storage, study_name=self.out.name, sampler=_sampler(self.kind, self.grid), pruner=pruner, direction="maximize", load_if_exists=True)

    def run(self):
        self.out.mkdir(parents=True, exist_ok=True)
        with _locked(self.out / ".claims"):
            study = self.study()
            plan = json.loads(json.dumps({key: value for key, value in self.said.items() if key not in ("trials", "storage")}, default=str))
            if study.user_attrs.setdefault("sweep", plan) != plan:
                raise UsageError(f"{self.out} holds another sweep: name another folder, or give the same file (only trials may change)")
            study.set_user_attr("sweep", plan)
        self.errors = []
        workers = [threading.Thread(target=self._work) for _ in range(self.jobs)]
        for worker in workers:
            worker.start()
        try:
            while any(worker.is_alive() for worker in workers):
                workers[0].join(0.2) if workers[0].is_alive() else time.sleep(0.2)
        except BaseException as error:
            self.stop.set()
            for worker in workers:
                worker.join()
            if isinstance(error, KeyboardInterrupt):
                raise KeyboardInterrupt(f"the sweep was interrupted; the same command with --out {self.out} goes on") from None
            raise
        if self.errors:
            raise self.errors[0]
        with _locked(self.out / ".claims"):
            rows = self._rows(study)
            self._write(rows)
        failed = [str(row["trial"]) for row in rows if row["state"] == "fail"]
        print(_table(rows), end="")
        if failed:
            raise RunError(f"trainings of trial {', '.join(failed)} failed; {self.out / 'trials.csv'} says why")
        return rows

    def _work(self):
        try:
            study = self.study()
            while not self.stop.is_set() and (claimed := self._claim(study)):
                trial, claim = claimed
                with claim:
                    try:
                        self._run_trial(study, trial, claim)
                    except (RunError, UsageError) as error:
                        print(f"trial {trial.number} failed: {error}", file=sys.stderr, flush=True)
                        trial.set_user_attr("error", str(error))
                        study.tell(trial, state=self.optuna.trial.TrialState.FAIL)
                    claim.truncate(0)
        except BaseException as error:
            self.errors.append(error)
            self.stop.set()

    def _claim(self, study):
        """(trial, claim) of one that a dead process has left, or of a new one. Whoever holds the lock of its claim makes it."""
        running = self.optuna.trial.TrialState.RUNNING
        with _locked(self.out / ".claims"):
            for known in study.get_trials(deepcopy=False)[: self.trials]:
                if known.state == running and (claim := _claimed(self.folder(known.number))):
                    if study.get_trials(deepcopy=False)[known.number].state == running:
                        return self.optuna.trial.Trial(study, known._trial_id), claim
                    claim.close()
            while len(study.get_trials(deepcopy=False)) < self.trials:
                trial = study.ask()
                if trial.number < self.trials and (claim := _claimed(self.folder(trial.number))):
                    return trial, claim
        return None

    def _run_trial(self, study, trial, claim):
        settings = {axis.path: axis.draw(trial) for axis in self.axes}
        trial.set_user_attr("settings", settings)
        done = dict(trial.user_attrs.get("seeds", {}))
        for seed in self.seeds:
            if str(seed) in done:
                continue
            pruned = self._train(trial, settings, seed, [one["score"] for one in done.values()], claim)
            if pruned is None:
                return
            done[str(seed)] = self._result(self.folder(trial.number) / str(seed))
            trial.set_user_attr("seeds", done)
            if pruned:
                study.tell(trial, state=self.optuna.trial.TrialState.PRUNED)
                break
        else:
            study.tell(trial, statistics.fmean(one["score"] for one in done.values()))
        print(f"trial {trial.number}: {_mean(done):.4g} with {', '.join(f'{path}={value}' for path, value in settings.items())}", flush=True)

    def _train(self, trial, settings, seed, scores, claim):
        """Whether the trial is to end early; None if the sweep is. A training of a killed sweep ends by itself: its folder is awaited."""
        folder = self.folder(trial.number) / str(seed)
        while (folder / "summary.json").exists() and Run(folder)._is_held():
            if self.stop.wait(0.1):
                return None
        if (folder / "summary.json").exists() and Run(folder).status == "finished":
            return False
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile() as said:
            process, lines, pruned = _start([*self.command(settings, trial.number, seed), *self.threads, "--quiet"], said, said), None, False
            while process.poll() is None:
                with contextlib.suppress(Exception):
                    process.wait(0.1)
                os.utime(claim.fileno())  # other machines may see no lock
                if self.prune != "none" and not pruned and (folder / "summary.json").exists():
                    lines = lines or files.Lines(folder, "metrics.jsonl")
                    pruned = any(self._is_poor(trial, row, scores) for row in Run(folder)._new_rows(lines))
                if pruned or self.stop.is_set():
                    process.send_signal(signal.SIGINT)
                    process.wait()
            if process.returncode and (self.stop.is_set() or pruned):
                return True if pruned else None
            said.seek(max(0, said.seek(0, os.SEEK_END) - LONGEST_TAIL))
            try:
                _raise_for(process.returncode, said.read().decode(errors="replace"), folder, f"training with seed {seed}")
            except UsageError as error:
                raise UsageError(f"seed {seed}: {error}") from error
        return pruned

    def _is_poor(self, trial, row, scores):
        """Successive halving, once half of total_steps is over. Seeds count as one long training."""
        score = row.get(self.score, math.nan)
        if not math.isfinite(score) or row["env_steps"] < self.total / 2:
            return False
        trial.report(statistics.fmean([*scores, score]), len(scores) * self.total + int(row["env_steps"]))
        return trial.should_prune()

    def _result(self, folder):
        rows = Run(folder).rows()
        known = [row[self.score] for row in rows if math.isfinite(row.get(self.score, math.nan))]
        if not known:
            raise RunError(f"{folder}: no values of the score {self.score!r}; its metrics are {', '.join(rows[-1]) if rows else 'none'}")
        return {"score": known[-1], "steps": int(rows[-1]["env_steps"]), "seconds": round(rows[-1].get("time/wall_s", math.nan), 2)}

    # --- results ------------------------------------------------------------------------------------------

    def _rows(self, study):
        rows = []
        for trial in study.get_trials(deepcopy=False)[: self.trials]:
            done = trial.user_attrs.get("seeds", {})
            score, scores = _mean(done), {seed: one["score"] for seed, one in done.items()}
            spread = statistics.stdev(scores.values()) if len(scores) > 1 else math.nan
            row = {"trial": trial.number, "state": trial.state.name.lower(), "score": score, "spread": spread}
            row |= trial.user_attrs.get("settings", {}) | {"scores": scores, "steps": sum(one["steps"] for one in done.values())}
            rows.append(row | {"seconds": round(sum(one["seconds"] for one in done.values()), 2), "error": trial.user_attrs.get("error", "")})
        return sorted(rows, key=lambda row: (row["state"] != "complete", math.isnan(row["score"]), -row["score"], row["trial"]))

    def _write(self, rows):
        text = io.StringIO()
        table = csv.DictWriter(text, ["trial", "state", "score", "spread", *(axis.path for axis in self.axes), "scores", "steps", "seconds", "error"], lineterminator="\n")
        table.writeheader()
        table.writerows(row | {"scores": " ".join(map(str, row["scores"].values()))} for row in rows)
        files.write(text.getvalue().encode(), self.out, "trials.csv", replace=True)
        files.write(self._page(rows).encode(), self.out, "report.html", replace=True)
        if rows and rows[0]["state"] == "complete":
            best = [word for axis in self.axes for word in ("--set", f"{axis.path}={rows[0][axis.path]}")]
            text = _answered([*self.base, *best, "--print_config"], _variables()).stdout
            files.write(text.encode(), self.out, "best.yaml", replace=True)

    def _page(self, rows):
        ended = [row for row in rows if row["state"] in ENDED and row["scores"]]
        plots = [("trial", lambda row: row["trial"], "linear"), ("steps", lambda row: row["steps"], "linear"), ("seconds", lambda row: row["seconds"], "linear")]
        plots += [(axis.path, lambda row, axis=axis: axis.words.index(row[axis.path]) if axis.words else float(row[axis.path]), axis.words or axis.scale) for axis in self.axes]
        drawn = "".join(_plot(name, [(place(row), row["score"], list(row["scores"].values())) for row in ended], scale) for name, place, scale in plots)
        return f"""<!doctype html><meta charset="utf-8"><title>{html.escape(self.out.name)}</title>
<style>body {{ font: 14px sans-serif; margin: 2em }} svg {{ margin: 0 1em 1em 0 }} pre {{ overflow: auto }} text {{ font-size: 11px }}</style>
<h1>{html.escape(self.out.name)}</h1><p>Score: {html.escape(self.score)}, the mean over {len(self.seeds)} seeds (large dots; small ones are seeds).</p>
<pre>{html.escape(_table(rows))}</pre>{drawn}
"""


def _plot(name, points, scale):
    """Score over something, as SVG. points: (x, mean, scores of seeds). scale: a scale's name, or words whose places are x."""
    moved = {"log": math.log, "logit": lambda x: math.log(x / (1 - x))}.get(scale if isinstance(scale, str) else "", float)
    across, up = [moved(x) for x, *_ in points] or [0], [score for *_, scores in points for score in scores] or [0]
    left, right, low, high = min(across), max(across), min(up), max(up)
    at = lambda x, y: f'cx="{50 + 240 * (moved(x) - left) / ((right - left) or 1):.1f}" cy="{180 - 160 * (y - low) / ((high - low) or 1):.1f}"'  # noqa: E731
    dots = "".join("".join(f'<circle {at(x, one)} r="2" fill="#999"/>' for one in scores) + f'<circle {at(x, mean)} r="4" fill="#06c"/>' for x, mean, scores in points)
    ends = [f"{x:.4g}" if isinstance(scale, str) else scale[int(x)] for x in (min(points)[0], max(points)[0])] if points else ["", ""]
    labels = "".join(f'<text x="{x}" y="{y}" text-anchor="{anchor}">{html.escape(text)}</text>' for x, y, anchor, text in (
        (45, 184, "end", f"{low:.4g}"), (45, 24, "end", f"{high:.4g}"), (50, 198, "start", ends[0]), (290, 198, "end", ends[1]), (170, 212, "middle", name)))
    return f'<svg width="310" height="220"><path d="M50 15V185H295" fill="none" stroke="#999"/>{dots}{labels}</svg>'


def _table(rows):
    keys = [key for key in rows[0] if key not in ("scores", "error")] if rows else ["trial"]
    cells = [keys, *([f"{row.get(key, ''):.4g}" if isinstance(row.get(key), float) else str(row.get(key, "")) for key in keys] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells)]
    return "".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() + "\n" for line in cells)


def _mean(done):
    return statistics.fmean(one["score"] for one in done.values()) if done else math.nan


def _whole(value, where, least=1):
    number = _number(value, where)
    if not isinstance(number, int) or number < least:
        raise UsageError(f"{where}: {value!r}: must be a whole number, at least {least}")
    return number


def _text_of_file(file):
    try:
        return pathlib.Path(file).read_text()
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from error


@contextlib.contextmanager
def _locked(path):
    with open(path, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _claimed(folder):
    """A file whose lock says that this process makes the trial; None if another one does. The kernel ends the lock with the process."""
    folder.mkdir(parents=True, exist_ok=True)
    claim, here = open(folder / ".claim", "a+"), socket.gethostname()
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        claim.close()
        return None
    claim.seek(0)
    holder, age = claim.read(), time.time() - os.fstat(claim.fileno()).st_mtime
    if holder not in ("", here) and age < SILENT_SECONDS:
        claim.close()
        return None
    claim.truncate(0)
    claim.write(here)
    claim.flush()
    return claim


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="wdtrain sweep", description=f"{__doc__.partition(chr(10))[0]} (docs/sweeps.md)")
    parser.add_argument("file", metavar="FILE", help="YAML file: env, total_steps, trials, seeds, settings, sampler, score, prune, storage")
    parser.add_argument("--out", metavar="FOLDER", required=True, help="the sweep's folder: runs, table, report; one that was begun goes on")
    parser.add_argument("--jobs", metavar="N", default="1", help="trials side by side, or auto (1)")
    parser.add_argument("--print", action="store_true", help="print the command of each training, for a Slurm array or xargs, and begin nothing")
    options = parser.parse_args(arguments)
    files.command(_run, options)


def _run(options):
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # of a cluster: as Ctrl-C
    try:
        made = _Sweep(options.file, options.out, options.jobs)
        print("\n".join(made.lines())) if options.print else made.run()
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt as error:
        print(f"\n{error}", file=sys.stderr)
        raise


if __name__ == "__main__":
    main()
