"""Sends the metrics of a run to Weights & Biases or MLflow, while it trains or afterward.

The tracker's own run is remembered in the run's folder. If this program is stopped and started again, or the run is
killed and resumed, it goes on in the same tracker's run and sends no iteration twice.
"""

import argparse
import json
import math

from wdtrain import files
from wdtrain.files import RunError
from wdtrain.run import Run, flat, need


class Memory:
    """RUN/.tracked_TRACKER.json: the tracker's run, and the last iteration that it has."""

    def __init__(self, run, tracker):
        self.path = (run.folder, f".tracked_{tracker}.json")
        try:
            known = files.read_object(*self.path)
        except FileNotFoundError:
            known = {"id": None, "iteration": 0}
        self.id, self.iteration = known.get("id"), known.get("iteration")
        if not isinstance(self.id, str | None) or type(self.iteration) is not int:
            path = run.folder / self.path[1]
            raise RunError(f"{path}: was not written by wdtrain-track: remove it to begin a new run of {tracker}")

    def save(self):
        files.write(json.dumps({"id": self.id, "iteration": self.iteration}).encode(), *self.path, replace=True)


class WandB:
    name = "wandb"

    def __init__(self, run, memory, project):
        self.run = need("wandb").init(project=project, id=memory.id, resume="allow", name=run.folder.name, config=run.config,
                                      dir=str(run.folder))
        memory.id = self.run.id

    def log(self, row, iteration):
        self.run.log(row, step=iteration)

    def finish(self, run):
        self.run.summary.update({"status": run.status, "stop_reason": run.summary.get("stop_reason")})
        self.run.finish(exit_code=0 if run.status in ("finished", "stopped") else 1)


class MLflow:
    name = "mlflow"

    def __init__(self, run, memory, project):
        self.mlflow = need("mlflow")
        self.client = self.mlflow.MlflowClient()
        if memory.id is None:
            found = self.client.get_experiment_by_name(project)
            experiment = found.experiment_id if found else self.client.create_experiment(project)
            memory.id = self.client.create_run(experiment, run_name=run.folder.name).info.run_id
            for name, value in flat(run.config):
                self.client.log_param(memory.id, name, str(value)[:500])
        self.id = memory.id

    def log(self, row, iteration):
        # MLflow's names have no '[' or similar; ours have letters, digits, '_' and '/' only.
        now = int(1000 * row.get("time/wall_s", 0))
        metrics = [self.mlflow.entities.Metric(name, value, now, iteration) for name, value in row.items()]
        self.client.log_batch(self.id, metrics=metrics)

    def finish(self, run):
        self.client.set_terminated(self.id, "FINISHED" if run.status in ("finished", "stopped") else "FAILED")


TRACKERS = {tracker.name: tracker for tracker in (WandB, MLflow)}


def track(run, to, project=None, once=False):
    """Sends all rows that the tracker does not have yet; without `once`, until the run ends. Returns their number."""
    memory = Memory(run, to)
    tracker = TRACKERS[to](run, memory, project or run._said("env"))
    memory.save()
    sent = 0
    for row in run.rows() if once else run.watch():
        if row["iteration"] <= memory.iteration:
            continue
        known = {name: value for name, value in row.items() if name != "iteration" and math.isfinite(value)}
        tracker.log(known, row["iteration"])
        memory.iteration = row["iteration"]
        memory.save()
        sent += 1
    if run.status != "running":
        tracker.finish(run)
    return sent


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="wdtrain-track", description=__doc__)
    parser.add_argument("run", help="the run's folder")
    parser.add_argument("--to", choices=TRACKERS, required=True)
    parser.add_argument("--project", help="wandb's project or MLflow's experiment (the environment's name)")
    parser.add_argument("--once", action="store_true", help="send what is there, and end, even if the run goes on")
    options = parser.parse_args(arguments)
    files.command(_run, options)


def _run(options):
    print(f"{track(Run(options.run), options.to, options.project, options.once)} rows sent to {options.to}")


if __name__ == "__main__":
    main()
