"""rows_test.py: the table of docs/learning is what its data say, and rows.py trains, judges and writes a row."""

import copy
import json
import subprocess
import xml.etree.ElementTree as xml

import pytest
import yaml
from learn import rows
from run_report import rliable_examples

ROWS = rows.load()
TOY = {
    "name": "toy",
    "environment": "cartpole",
    "algorithm": "PPO",
    "config": "configs/cartpole.yaml",
    "set": ["trainer.total_steps=4096", "trainer.stop_return=none", "saving.metrics_log_freq=1"],
    "judged": [
        {"what": "return of fresh episodes", "eval": ["--episodes", 20], "value": "returns.cart.mean", "at_least": 5, "source": "nobody"},
        {"what": "length", "eval": ["--episodes", 20], "value": "length.mean", "at_most": 500, "source": "nobody"},
        {"what": "the last return", "metric": "shared/recent_return", "at_least": 5, "source": "nobody"},
    ],
    "curve": "shared/recent_return",
}


def test_the_table_is_what_the_data_say():
    page = (rows.DOCS / "README.md").read_text()
    assert page == rows.with_table(page, ROWS), "run: python3 tests/learn/rows.py table"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_a_row_is_complete(row):
    assert set(row) - {"set", "measured", "config", "program", "file"} == {"name", "environment", "algorithm", "judged", "curve"}
    assert ("config" in row) != ("program" in row)
    if "config" in row:
        config = yaml.safe_load((rows.ROOT / row["config"]).read_text())
        assert config["name"] == row["environment"]
        assert row["algorithm"] in {policy["algorithm"] for policy in config["policy"].values()}
    else:  # nothing but the algorithm is said of the policy
        (policy,) = [setting for setting in row["set"] if setting.startswith("policy")]
        (settings,) = yaml.safe_load(policy.removeprefix("policy=")).values()
        assert settings == {"algorithm": row["algorithm"]}
        assert {setting.split("=")[0] for setting in row["set"]} <= {"policy", "trainer.total_steps", "trainer.stop_return", "env.scale", "env.kwargs"}
    for judged in row["judged"]:
        assert ("at_least" in judged) != ("at_most" in judged) and isinstance(rows.target(judged)[1], int | float)
        assert len({"metric", "eval", "script"} & set(judged)) == 1 and ("metric" in judged) != ("value" in judged)
        assert judged["source"] and judged["what"]


@pytest.mark.parametrize("row", [row for row in ROWS if "measured" in row], ids=lambda row: row["name"])
def test_what_was_measured_is_complete(row):
    measured = row["measured"]
    assert set(measured) == {"date", "commit", "processor", "seeds", "env_steps", "seconds", "values"}
    seeds = len(measured["seeds"])
    assert seeds >= 5 and len(measured["env_steps"]) == len(measured["seconds"]) == seeds
    assert [len(values) for values in measured["values"]] == [seeds] * len(row["judged"])
    picture = xml.parse(rows.DOCS / f"{row['name']}.svg").getroot()
    lines = [path for path in picture.iter("{http://www.w3.org/2000/svg}path") if path.get("fill") == "none"]
    assert len(lines) == seeds * len(rows.curves_of(row))


def test_medians_and_quartiles_judge():
    assert rows.quartiles([5, 1, 4, 2, 3]) == [2, 3, 4]
    assert rows.quartiles([7]) == [7, 7, 7]
    assert rows.holds({"at_least": 3}, [5, 1, 3]) and not rows.holds({"at_least": 3.1}, [5, 1, 3])
    assert rows.holds({"at_most": 3}, [5, 1, 3]) and not rows.holds({"at_most": 2.9}, [5, 1, 3])
    assert rows.text_of([100_000, 200_000, 300_000]) == "200,000 [150,000, 250,000]"


@rliable_examples.examples
def test_interquartile_means_are_those_of_rliable(values, mean, low, high):
    assert rliable_examples.is_rliables(rows.iqm(values), mean, low, high)
    assert rows.iqm(values) == rows.iqm(values), "the table does not change when it is written again"


def test_few_values_have_no_interval():
    assert rows.iqm([1, 2, 6]) == (3, None, None)
    assert rows.with_interval(*rows.iqm([1, 2, 6])) == "3" and rows.with_interval(*rows.iqm([7] * 5)) == "7"


def test_a_share_counts_the_seeds_that_meet_the_target():
    assert rows.share({"at_least": -160}, [-150, -160, -350]) == "2 of 3"
    assert rows.share({"at_most": 70}, [61, 71]) == "1 of 2"


def test_cheap_rows_have_ten_seeds():
    assert rows.seeds_of({}) == rows.seeds_of({"measured": {"seconds": [30.0]}}) == [1, 2, 3, 4, 5]
    assert rows.seeds_of({"measured": {"seconds": [29, 29, 40]}}) == list(range(1, 11))
    assert rows.seeds_text([1, 2, 3, 5, 101, 102]) == "1 to 3, 5, 101 to 102"


@pytest.fixture
def docs(tmp_path):
    rows.save([copy.deepcopy(TOY)], tmp_path)
    (tmp_path / "README.md").write_text(f"before\n{rows.BEGIN}{rows.END}after\n")
    return tmp_path


@pytest.fixture(autouse=True)
def a_clean_tree(monkeypatch):
    """These tests also run in a tree with changes."""
    monkeypatch.setattr(rows, "changes_outside", lambda docs: [])
    monkeypatch.setattr(rows, "require_a_commit", lambda commit: None)


def test_rows_are_written_in_a_clean_tree_only(docs, tmp_path, monkeypatch):
    monkeypatch.undo()
    folder = tmp_path / "tree/docs/learning"
    folder.mkdir(parents=True)
    git = ["git", "-C", tmp_path / "tree", "-c", "user.name=a", "-c", "user.email=a"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "one"]):
        subprocess.run([*git, *words], check=True)
    (folder / "rows.yaml").write_text("written by rows.py")
    assert rows.changes_outside(folder) == []
    (tmp_path / "tree/changed.cpp").write_text("")
    assert rows.changes_outside(folder) == ["?? changed.cpp"]
    rows.require_a_commit("0123456789ab")
    for commit in ("0123456789ab-dirty", ""):
        with pytest.raises(SystemExit, match="build it of a commit"):
            rows.require_a_commit(commit)


def test_a_row_of_a_changed_tree_is_refused_before_it_is_trained(docs, tmp_path, monkeypatch):
    before = (docs / "rows.yaml").read_text()
    monkeypatch.setattr(rows, "measure", lambda *_: pytest.fail("trained"))
    monkeypatch.setattr(rows, "changes_outside", lambda docs: [" M src/a.cpp"])
    (tmp_path / "toy.json").write_text("{}")
    for words in (["run", "toy", "--write"], ["write", str(tmp_path / "toy.json")]):
        with pytest.raises(SystemExit, match="the tree has changes, .*\n M src/a.cpp"):
            rows.main(words, docs)
    assert (docs / "rows.yaml").read_text() == before


def test_a_row_is_trained_judged_and_written(docs, capsys):
    assert rows.main(["run", "toy", "--seeds", "1", "2", "--write"], docs) == 0
    (row,) = rows.load(docs)
    measured = row["measured"]
    assert measured["seeds"] == [1, 2] and measured["env_steps"] == [4096, 4096]
    returns, lengths, last = measured["values"]
    assert returns == lengths, "cartpole pays 1 a step"
    assert len(set(returns)) == 2 and all(9 <= value <= 500 for value in returns + last)
    assert capsys.readouterr().out.count("holds, 2 of 2; IQM ") == 3
    page = (docs / "README.md").read_text()
    assert page.startswith("before\n") and page.endswith("after\n") and "`python3 tests/learn/rows.py run toy`" in page
    assert "missed" not in page and (docs / "toy.svg").read_text().startswith("<svg")
    assert rows.with_table(page, [row]) == page


def test_a_file_of_a_run_is_written_later_unless_the_row_has_changed(docs, tmp_path):
    file = tmp_path / "toy.json"
    assert rows.main(["run", "toy", "--seeds", "1", "--json", str(file)], docs) == 0
    assert "measured" not in rows.load(docs)[0]
    assert rows.main(["write", str(file)], docs) == 0
    (row,) = rows.load(docs)
    assert row["measured"] == json.loads(file.read_text())["measured"] and (docs / "toy.svg").is_file()
    row["judged"][1]["at_most"] = 499
    rows.save([row], docs)
    with pytest.raises(SystemExit, match="toy is judged in another way now"):
        rows.main(["write", str(file)], docs)
    file.write_text(json.dumps(json.loads(file.read_text()) | {"device": "cuda"}))
    with pytest.raises(SystemExit, match="was measured on a GPU"):
        rows.main(["write", str(file)], docs)


def test_a_missed_target_is_an_error_and_changes_nothing(docs, capsys):
    row = copy.deepcopy(TOY)
    row["judged"][1]["at_most"] = 8
    rows.save([row], docs)
    before = {file: file.read_text() for file in docs.iterdir()}
    assert rows.main(["run", "toy", "--seeds", "1"], docs) == 1
    assert "MISSED" in capsys.readouterr().out
    assert {file: file.read_text() for file in docs.iterdir()} == before
    measured = {"date": "2026-01-01", "commit": "0", "processor": "one", "seeds": [1], "env_steps": [9], "seconds": [1.0], "values": [[9.0]] * 3}
    assert rows.table([row | {"measured": measured}]).count("**missed**") == 1
    assert json.dumps(row) == json.dumps(rows.load(docs)[0])
