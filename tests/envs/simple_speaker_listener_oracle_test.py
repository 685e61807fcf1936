"""Compares simple_speaker_listener with whole episodes of mpe2's simple_speaker_listener_v4, recorded by tests/data/mpe2/record_talk.py."""

import numpy as np
import pytest
from envs.recorded_games import Record

RECORD = Record("simple_speaker_listener")
SPEAKER = 3  # numbers that the speaker sees; those of the listener follow


def goal(goals):
    return {"goal": [goals[1]]}


@pytest.mark.parametrize("case", RECORD.cases)
def test_agrees_with_mpe2(case):
    RECORD.compare(case, goal)


def padded(rows):
    zeros = np.zeros((len(rows), 8))
    return np.concatenate([rows[:, :SPEAKER], zeros, zeros[:, :1] + 1, rows[:, SPEAKER:], zeros[:, :1]], axis=1)


def test_one_role_pads_the_rows_and_is_the_same_game():
    RECORD.compare("long", goal, padded, {"one_role": True})


def test_the_record_shows_what_it_should():
    goals, words = RECORD["long/goals"], RECORD["long/actions"][:, :, 0, 0]
    assert set(goals[:, 1]) == set(words.flat) == {0, 1, 2} and set(goals[:, 0]) == {-1}
