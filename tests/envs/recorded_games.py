"""Plays episodes that tests/data/mpe2/record_talk.py recorded again in ours, and compares what agents see, what they are paid, and ends."""

import json
import os
import pathlib

import numpy as np
from envs.trace import play


class Record:
    def __init__(self, game):
        self.game, self.file = game, np.load(pathlib.Path(os.environ["WD_SOURCE_DIR"]) / f"tests/data/mpe2/{game}.npz")
        self.cases = sorted({name.rsplit("/", 1)[0] for name in self.file.files if "/" in name})

    def __getitem__(self, name):
        return self.file[name]

    def compare(self, case, start_of, expected=lambda rows: rows, settings=None):
        """start_of(goals) is the part of our state that follows from the goals; expected(rows) is what our agents should see, [steps, numbers]."""
        parameters = json.loads(str(self[f"{case}/parameters"]))
        rows = [self[f"{case}/{name}"] for name in ("start", "goals", "actions", "reward", "observation")]
        for episode, (start, goals, actions, rewards, observations) in enumerate(zip(*rows, strict=True)):
            agents = actions.shape[1]
            state = dict(zip(("x", "y"), start[:agents].T)) | dict(zip(("landmark_x", "landmark_y"), start[agents:].T)) | start_of(goals)
            steps = play(self.game, parameters | (settings or {}), self.choices(actions), state)["steps"]
            assert len(steps) == 1 + len(actions) == 1 + parameters.get("episode_length", 25)
            for t, (step, seen) in enumerate(zip(steps, expected(observations), strict=True)):
                where = f"episode {episode}, step {t}"
                np.testing.assert_allclose(np.concatenate(step["observations"]), seen, rtol=1e-6, atol=1e-5, err_msg=where)
                if t > 0:
                    np.testing.assert_allclose(step["rewards"], rewards[t - 1], rtol=1e-6, atol=1e-5, err_msg=where)
                    assert (bool(step["terminated"]), bool(step["truncated"])) == (False, t == len(actions)), where

    def choices(self, actions):
        """[step][agent][head] of ours: agents without a second head have a 0 there in the record."""
        heads = 2 if self.game == "simple_reference" else 1
        return actions[:, :, :heads].tolist()
