"""Compares simple_adversary with whole episodes of mpe2's simple_adversary_v3, recorded by tests/data/mpe2/record_talk.py."""

import pytest
from envs.recorded_games import Record

RECORD = Record("simple_adversary")


@pytest.mark.parametrize("case", RECORD.cases)
def test_agrees_with_mpe2(case):
    RECORD.compare(case, lambda goals: {"goal": goals[:1]})


@pytest.mark.parametrize("case", RECORD.cases)
def test_the_record_shows_what_it_should(case):
    goals = RECORD[f"{case}/goals"]
    assert (goals == goals[:, :1]).all() and len(set(goals.flat)) == goals.shape[1] - 1, "each landmark is the goal of an episode"
