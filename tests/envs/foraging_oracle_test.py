"""Compares foraging with whole episodes of lbforaging's Foraging-*-v3, recorded by tests/data/lbforaging/record_foraging.py, and its
parameters with those of lbforaging's registered games."""

import json
import os
import pathlib
import re

import numpy as np
import pytest
from cli.program import output
from envs.trace import field, play

SOURCE = pathlib.Path(os.environ["WD_SOURCE_DIR"])
RECORD = np.load(SOURCE / "tests/data/lbforaging/foraging.npz")
CASES = sorted({name.rsplit("/", 1)[0] for name in RECORD.files if "/" in name})


def parameters(arguments):
    """Ours, from lbforaging's."""
    ours = {{"max_episode_steps": "episode_length"}.get(name, name): value for name, value in arguments.items()}
    size = ours["field_size"]
    return ours | {"field_size": size if isinstance(size, int) else size[0], "max_food_level": ours["max_food_level"] or 0}


def record(case):
    return {name.removeprefix(f"{case}/"): RECORD[name] for name in RECORD.files if name.startswith(f"{case}/")}


def episodes(case):
    """The start of each episode, and the rows of its steps."""
    rows, first = record(case), 0
    for k, last in enumerate(np.flatnonzero(rows["done"])):
        start = {name: rows[name][k] for name in ("first_players", "first_food", "first_seen", "spawned")}
        yield start, {name: rows[name][first : last + 1] for name in ("action", "players", "food", "reward", "seen", "done", "truncated")}
        first = last + 1


def food(step):
    """Rows of row, column, level of the food that is left, row by row, and -1, -1, 0 for the rest."""
    found = np.stack([field(step, name, int) for name in ("food_row", "food_col", "food_level")], axis=1)
    left = sorted(row.tolist() for row in found if row[2] > 0)
    return np.array(left + [[-1, -1, 0]] * (len(found) - len(left)))


@pytest.mark.parametrize("case", CASES)
def test_agrees_with_lbforaging(case):
    settings, steps_played = parameters(json.loads(str(record(case)["arguments"]))), 0
    for start, rows in episodes(case):
        state = dict(zip(("row", "col", "level"), start["first_players"].T))
        state |= dict(zip(("food_row", "food_col", "food_level"), start["first_food"].T))
        state = {name: values.tolist() for name, values in state.items()} | {"spawned": [int(start["spawned"])]}
        steps = play("foraging", settings, rows["action"], state)["steps"]
        np.testing.assert_array_equal(np.concatenate(steps[0]["observations"]), start["first_seen"])
        assert len(steps) == 1 + len(rows["action"])
        for t, step in enumerate(steps[1:]):
            equal = lambda ours, name: np.testing.assert_array_equal(ours, rows[name][t], err_msg=f"step {t + 1}: {name}")  # noqa: B023, E731
            equal(np.stack([field(step, name, int) for name in ("row", "col", "level")], axis=1), "players")
            equal(food(step), "food")
            equal(np.concatenate(step["observations"]), "seen")
            equal(bool(step["terminated"]), "done")
            equal(bool(step["truncated"]), "truncated")
            np.testing.assert_allclose(step["rewards"], rows["reward"][t], atol=1e-6, err_msg=f"step {t + 1}: rewards")
        eaten = 1 - sum(steps[-1]["state"]["food_level"]) / start["spawned"]
        np.testing.assert_allclose(steps[-1]["state"]["eaten"], [eaten], atol=1e-6)
        steps_played += len(rows["action"])
    assert steps_played >= 500


def all_of(name, *cases):
    return [record(case)[name] for case in (cases or CASES)]


def test_the_record_shows_what_it_should():
    """Players share a cell, swap places, load alone, together, in vain; food is seen and unseen; episodes end early and late."""
    crowded = record("crowded 5x5-4p-2f")["players"][:, :, :2]
    shared = [len(np.unique(players, axis=0)) < len(players) for players in crowded]
    assert sum(shared) >= 10
    swaps = sum(bool((rows["players"][t, i, :2] == rows["players"][t + 1, j, :2]).all() and (rows["players"][t + 1, i, :2] == rows["players"][t, j, :2]).all()
                     and (rows["players"][t, i, :2] != rows["players"][t, j, :2]).any())
                for case in CASES for _, rows in episodes(case) for t in range(len(rows["done"]) - 1)
                for i in range(rows["players"].shape[1]) for j in range(i))
    assert swaps >= 10
    for rewards in all_of("reward"):
        loaders = (rewards > 0).sum(axis=1)
        assert loaders.any()
    loaders = (record("sight and penalty")["reward"] > 0).sum(axis=1)
    assert {1, 2} <= set(loaders)
    assert (record("sight and penalty")["reward"] < 0).any() and (record("rewards as they are")["reward"] > 1).any()
    lengths = [len(rows["done"]) for case in CASES for _, rows in episodes(case)]
    assert 50 in lengths and min(lengths) < 20
    assert not any(rows.any() for rows in all_of("truncated"))
    for case in ("2s-8x8-2p-2f-coop", "sight and penalty"):
        seen = record(case)["seen"]
        assert {-1, 0} <= set(seen[:, 0]) and {-1, 0} <= set(seen[:, -3])


IDS = re.findall(r"^\| `(Foraging-\S+-v3)` \| (.+) \|$", (SOURCE / "docs/games.md").read_text(), re.MULTILINE)


def test_the_table_has_ids():
    assert len(IDS) >= 8


@pytest.mark.parametrize(("game", "settings"), IDS)
def test_the_table_gives_the_parameters_of_registered_games(game, settings):
    """The parameters in the table, and the defaults of all others, are what lbforaging registers."""
    pytest.importorskip("lbforaging")
    import gymnasium

    shown = dict(re.findall(r"`(\w+): (\S+?)`", settings))
    described = json.loads(output("envs", "foraging", "--json", *[part for key, value in shown.items() for part in ("--set", f"env.{key}={value}")]))
    ours = {parameter["name"]: parameter["value"] for parameter in described["parameters"]}
    registered = parameters({name: value for name, value in gymnasium.spec(game).kwargs.items() if name != "grid_observation"})
    assert gymnasium.spec(game).kwargs["grid_observation"] is False
    assert {name: ours[name] for name in registered} == pytest.approx(registered)
