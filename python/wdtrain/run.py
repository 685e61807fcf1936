"""A run's folder. Nothing here writes to it or disturbs a training that goes on."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pathlib
import socket
import time
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy
import safetensors.numpy

from wdtrain import files
from wdtrain.files import RunError, UsageError

if TYPE_CHECKING:
    from wdtrain.policy import Policy


def need(module, package=None):
    try:
        return __import__(module)
    except ImportError as error:
        raise RunError(f"{module} is not installed: pip install {package or module}") from error


AVERAGE = ".average"  # ends the name of weights that are the moving average of a policy's


class Run:
    """The folder of a run, or of one of its checkpoints (then weights and policies are the checkpoint's)."""

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = pathlib.Path(folder)
        self._weights = self.folder
        if (self.folder / "manifest.json").is_file():  # a checkpoint: RUN/checkpoints/NAME
            self.folder = self.folder.absolute().parent.parent
        if not (self.folder / "summary.json").is_file():
            raise RunError(f"{folder}: not a run's folder (it has no summary.json)")

    def __repr__(self) -> str:
        return f"Run({str(self._weights)!r})"

    @property
    def summary(self) -> dict[str, Any]:
        """summary.json: status, steps, speed, mean returns."""
        return files.read_object(self.folder, "summary.json")

    def _said(self, name):
        value = self.summary.get(name)
        if not isinstance(value, str):
            raise RunError(f"{self.folder / 'summary.json'}: has no text {name!r}")
        return value

    @property
    def config(self) -> dict[str, Any]:
        """config.yaml: the settings in effect, as nested dictionaries."""
        yaml = need("yaml", "pyyaml")
        text = files.read(self.folder, "config.yaml")
        with files.parsing(self.folder / "config.yaml"):
            settings = yaml.safe_load(text)
        if not isinstance(settings, dict):
            raise RunError(f"{self.folder / 'config.yaml'}: has no settings")
        return settings

    @property
    def status(self) -> str:
        """"running", "finished", "stopped", "failed", or "killed": running, but no process holds the folder."""
        status = self._said("status")
        return "killed" if status == "running" and not self._is_held() else status

    def _is_held(self):
        try:
            with files.opened(self.folder, ".lock") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                holder = lock.read(256).decode(errors="replace")
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        # A lock that is held on another machine may not be visible here.
        here = holder.strip().endswith(f" on {socket.gethostname()}")
        return not here and time.time() - (self.folder / "summary.json").stat().st_mtime < 600

    # --- metrics ------------------------------------------------------------------------------------------

    def rows(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl as dictionaries; null is NaN. A line that is being written is left out."""
        return list(self._new_rows(files.Lines(self.folder, "metrics.jsonl")))

    def _new_rows(self, lines):
        """The rows that were added. A line that is not usable is left out with a warning, as reports do."""
        last = 0
        while batch := lines.new():
            for number, line in batch:
                last = 0 if number == 1 else last
                try:
                    row = _row(line, last)
                except (ValueError, RecursionError) as error:
                    path = self.folder / "metrics.jsonl"
                    warnings.warn(f"{path}: line {number} is left out: {str(error)[:100]}", stacklevel=3)
                    continue
                last = row["iteration"]
                yield row

    def metrics(self) -> Any:
        """All metrics as a pandas DataFrame, one row per logging interval."""
        return need("pandas").DataFrame(self.rows())

    def watch(self, interval: float = 0.5) -> Iterator[dict[str, Any]]:
        """Yields each line of metrics.jsonl as it is written, beginning with the first, until the run ends.

        If the run is killed and resumed meanwhile, lines that are made again are not repeated.
        """
        last, lines = 0, files.Lines(self.folder, "metrics.jsonl")
        while True:
            ended = self.status != "running"  # before reading, so that no last line is missed
            for row in self._new_rows(lines):
                if row["iteration"] > last:
                    last = row["iteration"]
                    yield row
            if ended:
                return
            time.sleep(interval)

    def plot(self, *names: str, x: str = "env_steps", ax: Any = None) -> Any:
        """Draws metrics over steps; without names, the recent return of each policy. Returns the axes."""
        known = self.metrics()
        names = names or [name for name in known if name.endswith("/recent_return")]
        if missing := [name for name in names if name not in known]:
            raise RunError(f"{self.folder}: no metric {missing[0]!r}; there are: {', '.join(known)}")
        for name in names:
            ax = Runs([self]).plot(metric=name, x=x, ax=ax)
        return ax

    def play(self, out: Any = "episode.html", **options: Any) -> pathlib.Path:
        """Records episodes as a page (.html), movie (.gif, .mp4) or numbers (.json), and returns its path. options: those of `wdtrain play --help`."""
        from wdtrain.train import ask

        ask("play", self, out=out, **options)
        return pathlib.Path(out)

    # --- weights ------------------------------------------------------------------------------------------

    @property
    def policies(self) -> list[str]:
        """Names of the policies whose weights are there."""
        return sorted(path.stem for path in (self._weights / "weights").glob("*.safetensors") if not path.stem.endswith(AVERAGE))

    @property
    def checkpoints(self) -> dict[int, Run]:
        """{iteration: Run of that checkpoint}, oldest first."""
        folders = (path for path in (self.folder / "checkpoints").glob("[0-9]*") if path.name.isdecimal())
        complete = [path for path in folders if (path / "manifest.json").is_file()]
        return {int(path.name): Run(path) for path in sorted(complete)}

    def policy_name(self, policy: str | None = None) -> str:
        """The name itself, if there is such a policy, or NAME.average, if it has one; without one, that of the only policy."""
        names = self.policies
        if policy is None and len(names) == 1:
            policy = names[0]
        if policy is not None and policy.endswith(AVERAGE) and policy.removesuffix(AVERAGE) in names:
            if not (self._weights / "weights" / f"{policy}.safetensors").is_file():
                raise RunError(f"{self._weights}: there is no {policy}: train with policy.{policy.removesuffix(AVERAGE)}.average above 0")
            return policy
        if policy not in names:
            raise RunError(f"{self._weights}: name a policy: {', '.join(names) or 'there are no weights yet'}")
        return policy

    def weights_file(self, policy: str | None = None) -> tuple[pathlib.Path, bytes]:
        """(path, content) of the policy's safetensors file."""
        path = ("weights", f"{self.policy_name(policy)}.safetensors")
        return self._weights.joinpath(*path), files.read(self._weights, *path)

    def weights(self, policy: str | None = None) -> dict[str, numpy.ndarray]:
        """{name: numpy array}. The policy's name can be left out if there is only one."""
        return _tensors(*self.weights_file(policy))

    def metadata(self, policy: str | None = None) -> dict[str, str]:
        """What the weights file says of its policy, as text: distribution, sizes, network, steps."""
        return _metadata(*self.weights_file(policy))

    def policy(self, policy: str | None = None, *, env: Any = None, agent: str | None = None) -> Policy:
        """The trained policy as a torch module (see wdtrain.policy.Policy); "NAME.average": with the moving average of its weights.

        env: an environment in Python: act() takes its observations as they are, and gives its actions. agent: whose, if it has several.
        """
        need("torch")
        from wdtrain.policy import Policy

        if policy is None and agent is not None and (role := agent.rpartition("_")[0]) in self.policies:
            policy = role  # PettingZoo's agents of one role are ROLE_0, ROLE_1, ...
        file = self.weights_file(policy)
        made = Policy.from_weights(_tensors(*file), _metadata(*file), str(file[0]))
        if env is not None:
            from wdtrain.spaces import Spaces

            made.spaces = Spaces(env, agent)
            if (size := made.spaces.observer.size) != made.observation_size:
                raise UsageError(f"observations of env have {size} numbers, and the policy reads {made.observation_size}")
        return made


def _tensors(path, content):
    with files.parsing(path):
        return safetensors.numpy.load(content)


def _metadata(path, content):
    with files.parsing(path):
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        return dict(header.get("__metadata__", {}))


def _row(line, last):
    row = json.loads(line)
    if not isinstance(row, dict) or type(row.get("iteration")) is not int:
        raise ValueError("it is not an object with an iteration")
    if row["iteration"] <= last:
        raise ValueError(f"its iteration is {row['iteration']} after {last}")
    for name, value in row.items():
        if value is not None and type(value) not in (int, float):
            raise ValueError(f"{name} is not a number")
    return {name: numpy.nan if value is None else value for name, value in row.items()}


def flat(settings, prefix=""):
    """("trainer.seed", 1), ..."""
    for name, value in settings.items():
        yield from flat(value, f"{prefix}{name}.") if isinstance(value, dict) else [(prefix + name, value)]


class Runs(list[Run]):
    """Runs, and what they have in common: a table, and curves."""

    def table(self) -> Any:
        """A pandas DataFrame, one row per run: what it is, the settings in which runs differ, and what came of it."""
        pandas = need("pandas")
        settings = pandas.DataFrame([{name: value for name, value in flat(run.config) if name != "name" and not name.startswith("saving.")} for run in self])
        differ = [name for name in settings if settings[name].map(repr).nunique() > 1]
        known = pandas.DataFrame([{
            "folder": str(run.folder), "env": run.summary.get("env"), "status": run.status,
            "steps": run.summary.get("env_steps"), "seconds": run.summary.get("wall_s"),
            "last_return": next(iter(run.summary.get("mean_return", {}).values()), None), "best": _best(run)} for run in self])
        return pandas.concat([known.iloc[:, :3], settings[differ], known.iloc[:, 3:]], axis=1)

    def plot(self, by: str | None = None, metric: str | None = None, statistic: str = "mean", x: str = "env_steps", ax: Any = None) -> Any:
        """Draws a metric over steps: the recent return of the first policy, unless another is named. Returns the axes.

        by: a setting, of whose values each has a curve: "policy.shared.lr". Without it, all runs are one group.
        statistic: "mean" with a band of one standard deviation, or "iqm", the mean of the middle half, with a band around that half.
        """
        if statistic not in ("mean", "iqm"):
            raise UsageError(f"statistic={statistic!r}: must be 'mean' or 'iqm'")
        ax, groups = ax or need("matplotlib.pyplot", "matplotlib").pyplot.figure().add_subplot(), {}
        for run in self:
            settings, rows = dict(flat(run.config)), run.metrics()
            name = metric or next((name for name in rows if name.endswith("/recent_return")), "recent_return")
            for kind, word, known in (("setting", by, settings), ("metric", name, rows)):
                if word is not None and word not in known:
                    raise UsageError(f"{run.folder}: has no {kind} {word!r}; there are: {', '.join(known)}")
            if len(curve := rows[[x, name]].dropna().to_numpy()):
                groups.setdefault(f"{by}={settings[by]}" if by else name, []).append(curve)
        for label, curves in groups.items():
            # From the last beginning to the first end: beyond, a mean would be that of fewer runs.
            steps = numpy.unique(numpy.concatenate([curve[:, 0] for curve in curves]))
            steps = steps[(steps >= max(curve[0, 0] for curve in curves)) & (steps <= min(curve[-1, 0] for curve in curves))]
            each = numpy.sort([numpy.interp(steps, *curve.T) for curve in curves], axis=0)
            middle = each[len(each) // 4 : len(each) - len(each) // 4] if statistic == "iqm" else each
            mean, spread = middle.mean(axis=0), each.std(axis=0)
            line = ax.plot(steps, mean, label=label)[0]
            ax.fill_between(steps, *((middle[0], middle[-1]) if statistic == "iqm" else (mean - spread, mean + spread)), alpha=0.2, color=line.get_color())
        ax.set(xlabel=x, ylabel=metric or "recent_return")
        ax.legend()
        return ax


def _best(run):
    """The return of the checkpoint that is the best."""
    with contextlib.suppress(OSError):
        return files.read_object(run.folder / "checkpoints" / "best", "manifest.json").get("checkpoint", {}).get("best_return")


def runs(folder: str | os.PathLike[str] = "runs") -> Runs:
    """All runs below a folder, in the order of their paths."""
    found = Runs()
    for path, folders, files in os.walk(folder):
        folders.sort()
        if "summary.json" in files:
            found.append(Run(path))
            folders.clear()
    return found
