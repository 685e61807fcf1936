"""Searches settings: many trainings, each of which is a run, as a file describes them. Optuna draws settings and keeps what was done.

>>> wdtrain.sweep({"env": "cartpole", "total_steps": "20k", "trials": 12, "seeds": 3, "settings": ["policy.shared.lr"]}, out="sweeps/pole")
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import csv
import fcntl
import glob
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
import warnings
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


def sweep(file: Any, *, out: Any, jobs: Any = 1) -> list[dict[str, Any]]:
    """Makes all trials that the file describes, and returns their table, best first (docs/sweeps.md).

    file: a YAML file, or its content as a dictionary. out: the sweep's folder; one that was begun goes on.
    jobs: trials side by side, or "auto": one for each GPU, or processor.

    Raises UsageError before anything begins if a setting is wrong, RunError at the end if a training has failed, and
    KeyboardInterrupt once running trainings have written their checkpoints.
    """
    return _Sweep(file, out, jobs).run()


class _Axis:
    """One setting, with the values that the file gives, or those that it has by default: words, or a range and its scale."""

    def __init__(self, name, given, env, effect):
        """effect(path, value): the value as the program reads it."""
        told = json.loads(_answered([find_program(), "config", name, "--env", env, "--json"], _variables(), "question").stdout)
        if len(paths := sorted({one["name"] for one in told})) > 1:
            raise UsageError(f"settings: {name} means several: {', '.join(paths)}")
        self.path, about = paths[0], told[0]
        if given in ("default", None):
            given = about.get("search") or about["words"]
            if not given and self.path.startswith("env.") and about["range"].startswith("["):  # which the game's author has chosen
                given = dict(zip(("low", "high"), about["range"][1:-1].split(", ")))
            if not given:
                raise UsageError(f"settings: {name}: what values are usual is not known: give low and high, or a list of values")
        self.words = [] if isinstance(given, dict) else [text_of(value) for value in (given if isinstance(given, list) else [given])]
        if self.words:
            for word in self.words:  # each alone: others may fit only together
                effect(self.path, word)
            return
        try:
            self.scale = given.get("scale", "log" if given.get("log") else "linear")
            self.low, self.high = ((int if about["type"] == "int" else float)(effect(self.path, given[end])) for end in ("low", "high"))
            fits = {"linear": True, "log": self.low > 0, "powers_of_two": self.low > 0, "logit": 0 < self.low and self.high < 1}[self.scale]
        except (AttributeError, KeyError, TypeError):  # an empty list, too
            fits = False
        if not fits or not self.low < self.high or given.keys() - {"low", "high", "log", "scale"}:
            raise UsageError(f"settings: {name}: {given}: give low, and high above it, as numbers, both above 0 with log and powers_of_two "
                             f"and inside 0 to 1 with logit, and log: true or scale: {' | '.join(SCALES)}")
        if self.scale == "powers_of_two":
            self.words = [str(1 << n) for n in range(64) if self.low <= 1 << n <= self.high] or [str(self.low)]

    def draw(self, trial):
        if self.words:
            return trial.suggest_categorical(self.path, self.words)
        if self.scale == "logit":
            drawn = 1 / (1 + math.exp(-trial.suggest_float(self.path, *(math.log(value / (1 - value)) for value in (self.low, self.high)))))
        else:
            suggest = trial.suggest_int if isinstance(self.low, int) else trial.suggest_float
            drawn = suggest(self.path, self.low, self.high, log=self.scale == "log")
        return str(drawn if isinstance(drawn, int) else min(max(float(f"{drawn:.6g}"), self.low), self.high))  # no digits that nobody would type


class _Sweep:
    def __init__(self, file, out, jobs=1):
        self.optuna = need("optuna")
        self.optuna.logging.set_verbosity(self.optuna.logging.ERROR)
        warnings.filterwarnings("ignore", category=self.optuna.exceptions.ExperimentalWarning)  # of a sampler that fixes values
        self.out, self.stop = pathlib.Path(out).absolute(), threading.Event()
        self.said = said = file if isinstance(file, dict) else need("yaml", "pyyaml").safe_load(files.read(file))
        if not isinstance(said, dict) or not said.get("settings") or "total_steps" not in said or not {"env", "config"} & said.keys():
            raise UsageError("a sweep needs env (or config), total_steps and settings")
        if wrong := [key for key in said if key not in KEYS]:
            raise UsageError(f"{wrong[0]}: known: {', '.join(KEYS)}")
        self.kind, self.prune = (str(said.get(key) or WORDS[key][0]) for key in WORDS)
        for key, word in zip(WORDS, (self.kind, self.prune)):
            if word not in WORDS[key]:
                raise UsageError(f"{key}: {word!r}: one of {', '.join(WORDS[key])}")
        seeds = said.get("seeds", 1)
        self.seeds = seeds if isinstance(seeds, list) else list(range(1, _count(seeds, "seeds") + 1))
        if len(set(map(str, self.seeds))) < max(1, len(self.seeds)):
            raise UsageError(f"seeds: {seeds}: give a number of seeds, or a list without repetitions")
        fixed = dict(flat(said.get("set") or {}))
        options = {key: said[key] for key in ("env", "config", "algorithm", "total_steps") if key in said}
        options |= {"env": environment_name(said["env"])} if "env" in said else {}
        self.base = [find_program(), "train", *(f"--{key}={text_of(value)}" for key, value in options.items()), *_sets(fixed)]
        effective = _checked([*self.base, f"--seed={self.seeds[0]}"])
        self.total, self.score = effective["trainer"]["total_steps"], said.get("score") or f"{next(iter(effective['policy']))}/recent_return"
        ranges = said["settings"] if isinstance(said["settings"], dict) else dict.fromkeys(said["settings"], "default")
        effect = lambda path, value: dict(flat(_checked([*self.base, *_sets({path: value})])))[path]  # noqa: E731
        self.axes = [_Axis(name, given, effective["name"], effect) for name, given in ranges.items()]
        paths = [*fixed, *(axis.path for axis in self.axes)]
        if twice := [path for path in paths if paths.count(path) > 1]:
            raise UsageError(f"settings: {twice[0]} is given twice")
        if self.kind == "grid" and (ranged := [axis.path for axis in self.axes if not axis.words]):
            raise UsageError(f"settings: {ranged[0]}: the sampler grid needs a list of values")
        self.grid = [dict(zip(paths[len(fixed) :], values)) for values in itertools.product(*(axis.words for axis in self.axes))]
        self.trials = _count(said.get("trials", len(self.grid) or 12), "trials")
        self.trials = min(self.trials, len(self.grid)) if self.kind == "grid" else self.trials
        processors, device = len(os.sched_getaffinity(0)), effective["trainer"]["device"]
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(str(k) for k in range(len(glob.glob("/dev/nvidia[0-9]*")))))
        self.gpus = [] if device == "cpu" else list(itertools.takewhile(lambda name: name not in ("", "-1"), map(str.strip, visible.split(","))))
        self.jobs = min(self.trials, (len(self.gpus) or (1 if device == "cuda" else processors)) if jobs == "auto" else _count(jobs, "jobs"))
        self.threads = [] if "trainer.threads" in fixed else [f"--threads={max(1, processors // self.jobs)}"]

    # --- trials -------------------------------------------------------------------------------------------

    def folder(self, number, seed=""):
        return self.out / "trials" / f"{number:03}" / str(seed)

    def command(self, settings, number, seed):
        return [*self.base, f"--seed={seed}", f"--run_dir={self.folder(number, seed)}", "--resume=auto", *_sets(settings)]

    def draw(self, trial):
        """The trial's settings. Numbers are drawn by those of trial and setting: they depend neither on the process nor on what was killed."""
        samplers, drawn = self.optuna.samplers, {}
        for axis in self.axes:
            seed = zlib.crc32(f"{trial.number} {axis.path}".encode())
            sampler = samplers.TPESampler(seed=seed, multivariate=False) if self.kind == "tpe" else samplers.RandomSampler(seed=seed)
            trial.study.sampler = samplers.PartialFixedSampler(self.grid[trial.number], sampler) if self.kind == "grid" else sampler
            drawn[axis.path] = axis.draw(trial)
        return drawn

    def lines(self):
        """The commands of all trainings, for another program that starts them. Nothing begins."""
        if self.kind == "tpe" or self.prune != "none":
            raise UsageError("--print: what sampler tpe draws, and what prune ends, depends on the scores of earlier trials: "
                             "use sampler random or grid, without prune")
        study = self.optuna.create_study()
        for trial in (study.ask() for _ in range(self.trials)):
            settings = self.draw(trial)
            yield from (shlex.join(self.command(settings, trial.number, seed)) for seed in self.seeds)

    def study(self):
        optuna, pruner = self.optuna, self.optuna.pruners.NopPruner()
        place = str(self.said.get("storage") or f"sqlite:///{self.out / 'study.db'}?timeout=60")  # seconds that it waits for other processes
        if self.prune == "halving":
            pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=math.ceil(self.total / 2), reduction_factor=2)
        storage = place if "://" in place else optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(place))
        return optuna.create_study(storage=storage, study_name=self.out.name, pruner=pruner, direction="maximize", load_if_exists=True)

    def run(self):
        self.out.mkdir(parents=True, exist_ok=True)
        with _locked(self.out / ".claims"):
            study, plan = self.study(), json.loads(json.dumps({**self.said, "trials": 0}, default=str))
            if study.user_attrs.get("sweep", plan) != plan:
                raise UsageError(f"{self.out} holds another sweep: name another folder, or give the same file (only trials may change)")
            study.set_user_attr("sweep", plan)
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            try:
                workers = [pool.submit(self._work, {"CUDA_VISIBLE_DEVICES": self.gpus[k % len(self.gpus)]} if self.gpus else {}) for k in range(self.jobs)]
                concurrent.futures.wait(workers, return_when=concurrent.futures.FIRST_EXCEPTION)
            except KeyboardInterrupt:
                raise KeyboardInterrupt(f"the sweep was interrupted; the same command with --out {self.out} goes on") from None
            finally:
                self.stop.set()
        for worker in workers:
            worker.result()
        with _locked(self.out / ".claims"):
            self._write(rows := self._rows(study))
        print(_table(rows), end="")
        if failed := [str(row["trial"]) for row in rows if row["state"] == "fail"]:
            raise RunError(f"trainings of trial {', '.join(failed)} failed; {self.out / 'trials.csv'} says why")
        return rows

    def _work(self, variables):
        study = self.study()
        while not self.stop.is_set() and (claimed := self._claim(study)):
            trial, claim = claimed
            with claim:
                try:
                    self._run_trial(study, trial, claim, variables)
                except (RunError, UsageError) as error:
                    print(f"trial {trial.number} failed: {error}", file=sys.stderr, flush=True)
                    trial.set_user_attr("error", str(error))
                    study.tell(trial, state=self.optuna.trial.TrialState.FAIL)
                claim.truncate(0)

    def _claim(self, study):
        """(trial, claim) of one that a dead process has left, or of a new one. Who holds the lock of a claim makes the trial."""
        known = lambda number: study.get_trials(deepcopy=False)[number]  # noqa: E731
        with _locked(self.out / ".claims"):
            for number in range(self.trials):
                if number >= len(study.get_trials(deepcopy=False)):
                    study.ask()
                if not known(number).state.is_finished() and (claim := _claimed(self.folder(number))):
                    if not known(number).state.is_finished():
                        return self.optuna.trial.Trial(study, known(number)._trial_id), claim
                    claim.close()  # it ended meanwhile
        return None

    def _run_trial(self, study, trial, claim, variables):
        settings = self.draw(trial)
        trial.set_user_attr("settings", settings)
        done, pruned = dict(trial.user_attrs.get("seeds", {})), False
        for seed in self.seeds:
            if str(seed) not in done and not pruned:
                pruned = self._train(trial, settings, seed, [one["score"] for one in done.values()], claim, variables)
                if pruned is None:
                    return
                done[str(seed)] = self._result(self.folder(trial.number, seed))
                trial.set_user_attr("seeds", done)
        if pruned:
            study.tell(trial, state=self.optuna.trial.TrialState.PRUNED)
        else:
            study.tell(trial, _mean(done))
        print(f"trial {trial.number}: {_mean(done):.4g} with {', '.join(f'{path}={value}' for path, value in settings.items())}", flush=True)

    def _train(self, trial, settings, seed, scores, claim, variables):
        """Whether the trial is to end early; None if the sweep is."""
        folder = self.folder(trial.number, seed)
        # The claim's time is renewed while this process lives, because other machines may see no lock.
        while (begun := (folder / "summary.json").exists()) and Run(folder)._is_held():  # by a training of a killed sweep, which ends by itself
            os.utime(claim.fileno())
            if self.stop.wait(0.1):
                return None
        if begun and Run(folder).status == "finished":
            return False
        with tempfile.TemporaryFile() as said:
            process = _start([*self.command(settings, trial.number, seed), *self.threads, "--quiet"], said, said, **variables)
            lines, pruned = files.Lines(folder, "metrics.jsonl"), False
            while process.poll() is None:
                self.stop.wait(0.1)
                os.utime(claim.fileno())
                if self.prune != "none" and (folder / "summary.json").exists():
                    pruned = any(self._is_poor(trial, row, scores) for row in Run(folder)._new_rows(lines))
                if pruned or self.stop.is_set():
                    process.send_signal(signal.SIGINT)
                    process.wait()
            if process.returncode and (pruned or self.stop.is_set()):
                return True if pruned else None
            said.seek(max(0, said.seek(0, os.SEEK_END) - LONGEST_TAIL))
            _raise_for(process.returncode, f"error: seed {seed}: {said.read().decode(errors='replace').removeprefix('error: ')}", folder, "training")
        return pruned

    def _is_poor(self, trial, row, scores):
        """Successive halving, once half of total_steps is over. Seeds count as one long training."""
        if not math.isfinite(score := row.get(self.score, math.nan)) or row["env_steps"] < self.total / 2:
            return False
        trial.report(statistics.fmean([*scores, score]), len(scores) * self.total + int(row["env_steps"]))
        return trial.should_prune()

    def _result(self, folder):
        rows = Run(folder).rows()
        if not (known := [row[self.score] for row in rows if math.isfinite(row.get(self.score, math.nan))]):
            raise RunError(f"{folder}: no values of the score {self.score!r}; its metrics are {', '.join(rows[-1]) if rows else 'none'}")
        return {"score": known[-1], "steps": int(rows[-1]["env_steps"]), "seconds": round(rows[-1].get("time/wall_s", math.nan), 2)}

    # --- results ------------------------------------------------------------------------------------------

    def _rows(self, study):
        rows = []
        for trial in study.get_trials(deepcopy=False)[: self.trials]:
            done, settings = trial.user_attrs.get("seeds", {}), trial.user_attrs.get("settings", {})
            scores = {seed: one["score"] for seed, one in done.items()}
            spread = statistics.stdev(scores.values()) if len(scores) > 1 else math.nan
            row = {"trial": trial.number, "state": trial.state.name.lower(), "score": _mean(done), "spread": spread}
            row |= {axis.path: settings.get(axis.path, "") for axis in self.axes} | {"steps": sum(one["steps"] for one in done.values())}
            rows.append(row | {"seconds": round(sum(one["seconds"] for one in done.values()), 2), "scores": scores, "error": trial.user_attrs.get("error", "")})
        return sorted(rows, key=lambda row: (row["state"] != "complete", math.isnan(row["score"]), -row["score"], row["trial"]))

    def _write(self, rows):
        table = csv.DictWriter(text := io.StringIO(), rows[0], lineterminator="\n")
        table.writeheader()
        table.writerows(row | {"scores": " ".join(map(str, row["scores"].values()))} for row in rows)
        files.write(text.getvalue().encode(), self.out, "trials.csv", replace=True)
        files.write(self._page(rows).encode(), self.out, "report.html", replace=True)
        if rows[0]["state"] == "complete":
            best = _answered([*self.base, *_sets({axis.path: rows[0][axis.path] for axis in self.axes}), "--print_config"], _variables()).stdout
            files.write(best.encode(), self.out, "best.yaml", replace=True)

    def _page(self, rows):
        ended, words = [row for row in rows if row["scores"]], {axis.path: axis.words for axis in self.axes}
        return f"""<!doctype html><meta charset="utf-8"><title>{html.escape(self.out.name)}</title>
<style>body {{ font: 14px sans-serif; margin: 2em }} svg {{ margin: 0 1em 1em 0 }} pre {{ overflow: auto }} text {{ font-size: 11px }}</style>
<h1>{html.escape(self.out.name)}</h1><p>{html.escape(self.score)} over the ranks of trials, costs and settings: large dots are means over seeds, small ones are seeds.</p>
<pre>{html.escape(_table(rows))}</pre>{"".join(_plot(name, words.get(name), ended) for name in ("trial", "steps", "seconds", *words))}
"""


def _plot(name, words, rows):
    """Scores over the ranks of a column's values, as SVG. words: those of a setting, in their order."""
    rank = words.index if words else float
    values = sorted({row[name] for row in rows}, key=rank)
    scores = [score for row in rows for score in row["scores"].values()]
    low, high = min(scores, default=0), max(scores, default=0)
    dots = ""
    for row in rows:
        across = 60 + 220 * values.index(row[name]) / max(1, len(values) - 1)
        marks = [(2, "#999", score) for score in row["scores"].values()] + [(4, "#06c", row["score"])]
        dots += "".join(f'<circle cx="{across:.1f}" cy="{180 - 160 * (score - low) / ((high - low) or 1):.1f}" r="{r}" fill="{color}"/>' for r, color, score in marks)
    texts = [(45, 184, "end", f"{low:.4g}"), (45, 24, "end", f"{high:.4g}"), (170, 212, "middle", name)]
    texts += [(60, 198, "start", values[0]), (280, 198, "end", values[-1])] if values else []
    labels = "".join(f'<text x="{x}" y="{y}" text-anchor="{anchor}">{html.escape(str(text))}</text>' for x, y, anchor, text in texts)
    return f'<svg width="310" height="220"><path d="M50 15V185H295" fill="none" stroke="#999"/>{dots}{labels}</svg>'


def _table(rows):
    keys = list(rows[0])[:-2]  # without scores and error
    cells = [keys, *([f"{row[key]:.4g}" if isinstance(row[key], float) else str(row[key]) for key in keys] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells)]
    return "".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() + "\n" for line in cells)


def _mean(done):
    return statistics.fmean(one["score"] for one in done.values()) if done else math.nan


def _sets(settings):
    return [word for path, value in settings.items() for word in ("--set", f"{path}={text_of(value)}")]


def _count(value, where):
    if not str(value).isdecimal() or int(value) < 1:
        raise UsageError(f"{where}: {value!r}: must be a whole number above 0")
    return int(value)


@contextlib.contextmanager
def _locked(path):
    with open(path, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _claimed(folder):
    """A file whose lock says that this process makes the trial; None if another one does. The kernel ends the lock with the process."""
    folder.mkdir(parents=True, exist_ok=True)
    claim = open(folder / ".claim", "a+")
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        claim.seek(0)
        if claim.read() in ("", socket.gethostname()) or time.time() - os.fstat(claim.fileno()).st_mtime > SILENT_SECONDS:
            claim.truncate(0)
            claim.write(socket.gethostname())
            claim.flush()
            return claim
    claim.close()


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="wdtrain sweep", description=f"{__doc__.partition(chr(10))[0]} (docs/sweeps.md)")
    parser.add_argument("file", metavar="FILE", help=f"YAML: {', '.join(KEYS)}")
    parser.add_argument("--out", metavar="FOLDER", required=True, help="the sweep's folder: runs, table, report; one that was begun goes on")
    parser.add_argument("--jobs", metavar="N", default="1", help="trials side by side, or auto (1)")
    parser.add_argument("--print", action="store_true", help="print the command of each training, for a Slurm array or xargs, and begin nothing")
    files.command(_run, parser.parse_args(arguments))


def _run(options):
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
