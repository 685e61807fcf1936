"""Policies that come with wd: every game has them, they play, and they have the numbers that are written beside them."""

import json
import os
import pathlib
import re

import pytest
import yaml

from cli.program import output, wdtrain
from learn import rows

SOURCE = pathlib.Path(os.environ["WD_SOURCE_DIR"])
PRETRAINED = SOURCE / "configs/pretrained"
NAMES = sorted(path.name for path in PRETRAINED.iterdir())
QUICK = ["acrobot", "cartpole", "foraging", "memory_chain", "mountain_car", "pendulum", "simple_speaker_listener", "simple_tag", "t_maze"]


def test_every_game_has_them():
    shipped = re.findall(r"^(\w+)", output("envs"), re.M)[1:]
    assert NAMES == sorted(name for name in shipped if (SOURCE / "envs" / f"{name}.cu").exists()) and len(NAMES) > 10


@pytest.mark.parametrize("name", NAMES)
def test_they_play(name, tmp_path):
    for weights in (PRETRAINED / name / "weights").iterdir():
        assert weights.stat().st_size <= 100_000
    assert yaml.safe_load((PRETRAINED / name / "config.yaml").read_text())["saving"]["run_dir"] == "", "no path of the machine that trained them"
    said = output("play", "--pretrained", name, "--beside", "random", "--device", "cpu", "--max_steps", 20, cwd=tmp_path)
    assert f"\n{name}.html (" in said and (tmp_path / f"{name}.html").stat().st_size < 1e6
    assert not (PRETRAINED / name / "rollout.html").exists()


@pytest.mark.parametrize("name", QUICK)
def test_they_have_the_numbers_that_are_written_beside_them(name):
    about = json.loads((PRETRAINED / name / "about.json").read_text())
    (row,) = [row for row in rows.load() if row["name"] == about["row"]]
    assert [judged["what"] for judged in about["judged"]] == [judged["what"] for judged in row["judged"]]
    for judged, written in zip(row["judged"], about["judged"], strict=True):
        found = json.loads(output("eval", "--pretrained", name, *judged["eval"], "--json"))
        assert rows.number_at(found, judged["value"]) == pytest.approx(written["value"], rel=2e-2)
        assert rows.meets(judged, written["value"])


@pytest.mark.parametrize("arguments, message", [
    (["play", "--pretrained", "simple_tg"], '--pretrained simple_tg: wd has no trained policies of it; did you mean "simple_tag"?'),
    (["eval", "runs/a", "--pretrained", "cartpole"], "eval plays one run: give runs/a or --pretrained cartpole"),
    (["play", "runs/a", "--run", "runs/b"], "play plays one run: give runs/a or --run runs/b"),
    (["play"], "play needs RUN, a run's folder or a checkpoint's, or --pretrained ENV"),
    (["play", "--pretrained", "simple_tag", "--beside", "random", "--opponent", "random"], "--opponent and --beside both choose other players: give one of them"),
    (["play", "--pretrained", "cartpole", "--beside", "nobody"], "--beside nobody: is none of self, random, scripted, and no folder of a run or a checkpoint"),
])
def test_mistakes_are_named(arguments, message, tmp_path):
    done = wdtrain(*arguments, cwd=tmp_path)
    assert done.returncode == 2 and message in done.stderr, done
