"""Compares simple_reference with whole episodes of mpe2's simple_reference_v3, recorded by tests/data/mpe2/record_talk.py."""

import pytest
from envs.recorded_games import Record

RECORD = Record("simple_reference")


@pytest.mark.parametrize("case", RECORD.cases)
def test_agrees_with_mpe2(case):
    RECORD.compare(case, lambda goals: {"goal": goals})


@pytest.mark.parametrize("case", RECORD.cases)
def test_the_record_shows_what_it_should(case):
    goals, words = RECORD[f"{case}/goals"], RECORD[f"{case}/actions"][..., 1]
    assert (goals[:, 0] != goals[:, 1]).any() and set(goals.flat) == {0, 1, 2} and set(words.flat) == set(range(10))
