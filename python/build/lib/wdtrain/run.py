"""A run's folder. Nothing here writes to it or disturbs a training that goes on."""

import fcntl
import json
import os
import pathlib
import socket
import time

import numpy
import safetensors


class RunError(Exception):
    """A folder or file is not what was asked for. The message says which, and what to do."""


def _need(module, extra):
    try:
        return __import__(module)
    except ImportError as error:
        raise RunError(f"{module} is needed for this: pip install 'wdtrain[{extra}]'") from error


class Run:
    """The folder of a run, or of one of its checkpoints (then weights and policies are the checkpoint's)."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self._weights = self.folder
        if (self.folder / "manifest.json").is_file():  # a checkpoint: RUN/checkpoints/NAME
            self.folder = self.folder.absolute().parent.parent
        if not (self.folder / "summary.json").is_file():
            raise RunError(f"{folder}: not a run's folder (it has no summary.json)")

    def __repr__(self):
        return f"Run({str(self._weights)!r})"

    @property
    def summary(self):
        """summary.json: status, steps, speed, mean returns."""
        return json.loads((self.folder / "summary.json").read_text())

    @property
    def config(self):
        """config.yaml: the settings in effect, as nested dictionaries."""
        yaml = _need("yaml", "plot")
        return yaml.safe_load((self.folder / "config.yaml").read_text())

    @property
    def status(self):
        """"running", "finished", "stopped", "failed", or "killed": running, but no process holds the folder."""
        status = self.summary["status"]
        return "killed" if status == "running" and not self._is_held() else status

    def _is_held(self):
        lock = self.folder / ".lock"
        try:
            descriptor = os.open(lock, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        # A lock that is held on another machine may not be visible here.
        here = lock.read_text().strip().endswith(f" on {socket.gethostname()}")
        return not here and time.time() - (self.folder / "summary.json").stat().st_mtime < 600

    # --- metrics ------------------------------------------------------------------------------------------

    def rows(self):
        """The lines of metrics.jsonl as dictionaries; null is NaN. A line that is being written is left out."""
        path = self.folder / "metrics.jsonl"
        text = path.read_text() if path.exists() else ""
        return [_row(line) for line in text[: text.rfind("\n") + 1].splitlines()]

    def metrics(self):
        """All metrics as a pandas DataFrame, one row per logging interval."""
        return _need("pandas", "plot").DataFrame(self.rows())

    def watch(self, interval=0.5):
        """Yields each line of metrics.jsonl as it is written, beginning with the first, until the run ends.

        If the run is killed and resumed meanwhile, lines that are made again are not repeated.
        """
        last = 0
        while True:
            ended = self.status != "running"  # before reading, so that no last line is missed
            for row in self.rows():
                if row["iteration"] > last:
                    last = row["iteration"]
                    yield row
            if ended:
                return
            time.sleep(interval)

    def plot(self, *names, x="env_steps", ax=None):
        """Draws metrics over steps; without names, the recent return of each policy. Returns the axes."""
        pyplot = _need("matplotlib.pyplot", "plot").pyplot
        metrics = self.metrics()
        names = names or [name for name in metrics if name.endswith("/recent_return")]
        missing = [name for name in names if name not in metrics]
        if missing:
            raise RunError(f"{self.folder}: no metric {missing[0]!r}; there are: {', '.join(metrics)}")
        ax = ax or pyplot.figure().add_subplot()
        for name in names:
            known = metrics[name].notna()
            ax.plot(metrics[x][known], metrics[name][known], label=name)
        ax.set_xlabel(x)
        ax.legend()
        return ax

    # --- weights ------------------------------------------------------------------------------------------

    @property
    def policies(self):
        """Names of the policies whose weights are there."""
        return sorted(path.stem for path in (self._weights / "weights").glob("*.safetensors"))

    @property
    def checkpoints(self):
        """{iteration: Run of that checkpoint}, oldest first."""
        folders = sorted(path for path in (self.folder / "checkpoints").glob("[0-9]*") if path.is_dir())
        return {int(path.name): Run(path) for path in folders}

    def _file(self, policy):
        names = self.policies
        if policy is None and len(names) == 1:
            policy = names[0]
        if policy not in names:
            raise RunError(f"{self._weights}: name a policy: {', '.join(names) or 'there are no weights yet'}")
        return self._weights / "weights" / f"{policy}.safetensors"

    def weights(self, policy=None):
        """{name: numpy array}. The policy's name can be left out if there is only one."""
        with safetensors.safe_open(self._file(policy), framework="np") as file:
            return {name: file.get_tensor(name) for name in file.keys()}

    def metadata(self, policy=None):
        """What the weights file says of its policy, as text: distribution, sizes, network, steps."""
        with safetensors.safe_open(self._file(policy), framework="np") as file:
            return file.metadata() or {}

    def policy(self, policy=None):
        """The trained policy as a torch module (see wdtrain.policy.Policy)."""
        _need("torch", "torch")
        from wdtrain.policy import Policy

        return Policy.from_weights(self.weights(policy), self.metadata(policy), str(self._file(policy)))


def _row(line):
    return {name: numpy.nan if value is None else value for name, value in json.loads(line).items()}


def runs(folder="runs"):
    """All runs below a folder, in the order of their paths."""
    found = []
    for path, folders, files in os.walk(folder):
        folders.sort()
        if "summary.json" in files:
            found.append(Run(path))
            folders.clear()
    return found
