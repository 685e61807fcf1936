"""`wdtrain report`: what the page contains is what numpy computes from the files of the runs."""

import csv
import json
import os
import pathlib
import re
import shutil
import time
import urllib.parse

import numpy as np
import pytest

from cli.program import output, wdtrain
from run_report import rliable_examples
from run_report.folders import content, cumulated, make_run, metric, points, search


def report(folder, *runs, arguments=(), **settings):
    output("report", *runs, "--out", folder / "report.html", *arguments, **settings)
    return content(folder / "report.html")


def interquartile_mean(values):
    """scipy.stats.trim_mean(values, 0.25), which rliable uses."""
    values, cut = np.sort(np.ravel(values)), int(0.25 * np.size(values))
    return values[cut:len(values) - cut].mean()


RETURNS = {"a": [3.0, 10.0, 4.5, 6.25, 5.0, 7.0, 1.0, 4.0], "b": [9.0, 12.0, 8.0, 30.0, 11.0]}


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """Two groups of runs that end with RETURNS."""
    folder = tmp_path_factory.mktemp("compared")
    for name, lr in (("a", 0.001), ("b", 0.01)):
        for seed, value in enumerate(RETURNS[name]):
            curve = [value * k / 20 for k in range(21)]
            make_run(folder / "runs" / f"{name}{seed}", {"shared/recent_return": curve, "time/environment_s": [0.25] * 21,
                                                         "time/update_s": [0.5] * 21}, seed=seed, lr=lr)
    return folder, report(folder, folder / "runs")


def test_interquartile_means_are_numpys_and_intervals_those_of_its_bootstrap(compared):
    _, page = compared
    rng = np.random.default_rng(7)
    scores = page["scores"]
    assert [(score["metric"], score["group"], score["runs"]) for score in scores] == [("shared/recent_return", 0, 8), ("shared/recent_return", 1, 5)]
    draws = {}
    for score, (name, values) in zip(scores, RETURNS.items()):
        assert score["iqm"] == pytest.approx(interquartile_mean(values))
        assert score["median"] == pytest.approx(np.median(values))
        assert (score["min"], score["max"]) == (min(values), max(values))
        resamples, cut = np.sort(rng.choice(values, (100_000, len(values))), axis=1), int(0.25 * len(values))
        draws[name] = resamples[:, cut:len(values) - cut].mean(1)
        low, high = np.percentile(draws[name], [2.5, 97.5])
        assert (score["low"], score["high"]) == (pytest.approx(low, abs=0.15), pytest.approx(high, abs=0.15))
    assert scores[0]["difference"] is None
    difference = scores[1]["difference"]
    assert difference["iqm"] == pytest.approx(interquartile_mean(RETURNS["b"]) - interquartile_mean(RETURNS["a"]))
    low, high = np.percentile(np.subtract(draws["b"], draws["a"]), [2.5, 97.5])
    assert (difference["low"], difference["high"]) == (pytest.approx(low, abs=0.25), pytest.approx(high, abs=0.25))


@rliable_examples.examples
def test_interquartile_means_are_those_of_rliable(tmp_path, values, mean, low, high):
    runs = [make_run(tmp_path / f"{k}", {"shared/recent_return": [value]}, seed=k) for k, value in enumerate(values)]
    (score,) = report(tmp_path, *runs)["scores"]
    assert rliable_examples.is_rliables((score["iqm"], score["low"], score["high"]), mean, low, high)


def test_three_runs_have_a_mean_and_no_interval(tmp_path):
    values = [1.0, 2.0, 10.0]
    runs = [make_run(tmp_path / f"{k}", {"shared/recent_return": [value]}, seed=k) for k, value in enumerate(values)]
    others = [make_run(tmp_path / f"other{k}", {"shared/recent_return": [k]}, seed=k, lr=0.1) for k in range(5)]
    first, second = report(tmp_path, *runs, *others)["scores"]
    assert first["iqm"] == pytest.approx(np.mean(values))
    assert (first["low"], first["high"], first["min"], first["max"]) == (None, None, 1.0, 10.0)
    assert second["low"] < second["iqm"] < second["high"]
    assert second["difference"] == {"iqm": pytest.approx(2 - np.mean(values)), "low": None, "high": None}


def test_one_run_has_no_interval(tmp_path):
    (score,) = report(tmp_path, make_run(tmp_path / "one", {"shared/recent_return": [1.0, 4.0]}))["scores"]
    assert (score["iqm"], score["low"], score["high"]) == (4.0, None, None)


def test_runs_that_differ_only_in_the_seed_are_one_group(compared):
    _, page = compared
    assert [(group["label"], len(group["runs"])) for group in page["groups"]] == [("lr=0.001", 8), ("lr=0.01", 5)]
    assert page["settings"] == [{"path": "policy.shared.lr", "values": ["0.001", "0.01"]}]
    assert page["runs"][0]["time"] == [{"part": "environment", "seconds": 21 * 0.25}, {"part": "update", "seconds": 21 * 0.5}]


def test_settings_that_cannot_change_what_is_learned_do_not_divide_a_group(tmp_path):
    settings = [{"threads": 1, "every": 0}, {"threads": 2, "every": 40}, {"threads": 2, "every": 40, "lr": 0.1}]
    runs = [make_run(tmp_path / f"{k}", {"shared/entropy": [1.0]}, seed=k, settings=each) for k, each in enumerate(settings)]
    page = report(tmp_path, *runs)
    assert [(group["label"], group["runs"]) for group in page["groups"]] == [("lr=0.001", [0, 1]), ("lr=0.1", [2])]
    assert {each["path"]: each["values"] for each in page["settings"]} == {
        "play.every": ["0, 40", "40"], "policy.shared.lr": ["0.001", "0.1"], "trainer.threads": ["1, 2", "2"]}


@pytest.mark.parametrize("field, setting, groups", [
    ("eval.every", "5", 1), ("eval.seed", "5", 1), ("eval.greedy", "true", 2), ("trainer.device", "cuda", 1), ("autoscale.max_envs", "9", 1),
    ("trainer.num_envs", "9", 2), ("trainer.stop_return", "3", 2), ("saving.checkpoint_freq", "3", 1), ("trainer.total_steps", "300", 1)])
@pytest.mark.parametrize("stop_on", ["training", "eval"])
def test_what_divides_a_group(tmp_path, field, setting, groups, stop_on):
    section, key = field.split(".")
    for k in range(2):
        run = make_run(tmp_path / "runs" / f"{k}", {"shared/entropy": [1.0]})
        text = {"trainer": f"stop_on: {stop_on}"} | ({section: f"{key}: {setting}"} if k and section != "trainer" else {})
        if k and section == "trainer":
            text["trainer"] += f"\n  {key}: {setting}"
        (run / "config.yaml").write_text("name: cartpole\n" + "".join(f"{name}:\n  {lines}\n" for name, lines in text.items()))
    divided = groups == 2 or (section == "eval" and stop_on == "eval")
    assert len(report(tmp_path, tmp_path / "runs")["groups"]) == 1 + divided


def test_groups_by_named_settings(tmp_path):
    settings = [{}, {"lr": 0.1}, {"fc_dims": "[8]"}, {"stop_return": 5}, {"threads": 3}]
    for k, each in enumerate(settings):
        make_run(tmp_path / "runs" / f"{k}", {"shared/entropy": [1.0]}, seed=k, settings=each)
    labels = lambda *by: [(group["label"], group["runs"]) for group in report(tmp_path, tmp_path / "runs", arguments=by)["groups"]]
    assert labels("--group_by", "lr") == [("lr=0.001", [0, 2, 3, 4]), ("lr=0.1", [1])]
    assert [runs for _, runs in labels("--group_by", "policy.shared.lr,model")] == [[0, 3, 4], [1], [2]]
    assert labels("--group_by", "threads") == [("threads=0", [0, 1, 2, 3]), ("threads=3", [4])]
    for name, nearest in (("threds", "threads"), ("policy.shard.lr", "policy.shared.lr"), ("modle", "model")):
        done = wdtrain("report", tmp_path / "runs", "--group_by", name, cwd=tmp_path)
        assert done.returncode == 2 and f'--group_by {name}: no run has a setting {name}; did you mean "{nearest}"?' in done.stderr


def test_runs_that_stop_at_a_return_have_its_steps_and_time(tmp_path):
    reached = [make_run(tmp_path / f"{k}", {"shared/recent_return": [1.0] * n}, seed=k, settings={"stop_return": 475}, stop_reason="stop_return")
               for k, n in enumerate((3, 8, 4))]
    other = make_run(tmp_path / "other", {"shared/recent_return": [1.0]}, seed=9, settings={"stop_return": 475})
    free = make_run(tmp_path / "free", {"shared/recent_return": [1.0]}, lr=0.1)
    (found,) = report(tmp_path, *reached, other, free)["reached"]
    assert found == {"group": 0, "return": "475", "runs": 4, "reached": 3, "steps": {"median": 400, "min": 300, "max": 800},
                     "seconds": {"median": 2, "min": 1.5, "max": 4}}


def test_a_report_of_one_group_has_its_configuration(compared, tmp_path):
    folder, page = compared
    assert page["configuration"] == []
    settings = {each["path"]: each["value"] for each in report(tmp_path, folder / "runs" / "a1")["configuration"]}
    assert (settings["policy.shared.lr"], settings["policy.shared.model.fc_dims"], settings["trainer.seed"]) == ("0.001", "[64, 64]", "1")


def test_bands_are_quartiles_as_far_as_all_runs_have_come(tmp_path):
    rng = np.random.default_rng(3)
    curves = [rng.normal(size=n).round(4).tolist() for n in (60, 50, 45, 60)]
    curves[1][7] = None
    runs = [make_run(tmp_path / f"{k}", {"shared/entropy": curve}, seed=k) for k, curve in enumerate(curves)]
    (band,) = metric(report(tmp_path, *runs), "shared/entropy")["bands"]
    complete = [i for i in range(45) if i != 7]
    assert cumulated(band["steps"]) == [100 * (i + 1) for i in complete]
    expected = np.quantile([[curve[i] for i in complete] for curve in curves], [0.25, 0.5, 0.75], axis=0)
    for key, values in zip(("low", "middle", "high"), expected):
        assert band[key] == pytest.approx(values, rel=1e-5, abs=1e-9)


def test_thinning_keeps_the_extremes_of_every_bucket(tmp_path):
    n, spike = 20_000, 12_345
    rng = np.random.default_rng(5)
    curves = {f"shared/m{k}": rng.normal(size=n).round(4).tolist() for k in range(12)}
    curves["shared/m0"][spike] = 1000.0
    runs = [make_run(tmp_path / f"{seed}", curves, seed=seed) for seed in (1, 2)]
    page = report(tmp_path, *runs)
    assert (tmp_path / "report.html").stat().st_size < 2_000_000
    for name, values in curves.items():
        curve = points(metric(page, name)["curves"][0])
        assert len(curve) <= 2049 and curve[-1] == (100 * n, values[-1])
        assert all(values[steps // 100 - 1] == value for steps, value in curve), "every point is a row"
        kept = {steps // 100 for steps, _ in curve}
        width = 32  # iterations: the least power of two with at most 1024 buckets
        for first in range(0, n + 1, width):
            bucket = {i: values[i - 1] for i in range(max(first, 1), min(first + width, n + 1))}
            assert min(bucket, key=bucket.get) in kept and max(bucket, key=bucket.get) in kept
        (band,) = metric(page, name)["bands"]
        means = [np.mean(values[max(first - 1, 0):first + width - 1]) for first in range(0, n + 1, width)]
        assert band["iterations"] == width and band["middle"] == pytest.approx(means, rel=1e-4, abs=1e-5)
    assert (100 * (spike + 1), 1000.0) in points(metric(page, "shared/m0")["curves"][0])


SHORT = ["--env", "cartpole", "--device", "cpu", "--quiet", "--num_envs", 8, "--train_batch_size", 80, "--total_steps", 1600,
         "--stop_return", "none", "--set", "saving.checkpoint_freq=3"]


def test_a_run_that_was_killed_and_resumed_has_no_gap_and_no_repeat(tmp_path):
    output(*SHORT, "--run_dir", tmp_path / "whole")
    assert wdtrain(*SHORT, "--run_dir", tmp_path / "cut", "--fault", "iter=12,kind=kill").returncode == -9
    (left,) = report(tmp_path, tmp_path / "cut")["runs"]
    assert (left["status"], left["rows"]) == ("killed", 11)
    output("--resume", tmp_path / "cut", "--quiet")
    whole, cut = (report(tmp_path, tmp_path / name) for name in ("whole", "cut"))
    for name in ("shared/recent_return", "shared/total_loss", "shared/grad_norm"):
        assert points(metric(cut, name)["curves"][0]) == points(metric(whole, name)["curves"][0])
    (curve,) = metric(cut, "shared/total_loss")["curves"]
    assert cumulated(curve["steps"]) == [80 * k for k in range(1, 21)]
    assert all(step > 0 for step in curve["ms"]), "time goes on"
    assert (cut["runs"][0]["rows"], cut["runs"][0]["skipped"], cut["runs"][0]["status"]) == (20, 0, "finished")


def test_lines_that_are_no_rows_are_left_out_and_counted(tmp_path):
    run = make_run(tmp_path / "run", {"shared/entropy": [1.0, 2.0, 3.0, 4.0]})
    lines = (run / "metrics.jsonl").read_text().splitlines()
    strange = ['{"iteration":5', "[]", '{"iteration":"6"}', '{"a":{"iteration":7}}', '{"iteration":8} x', '{"iteration":1e999}', "\x00"]
    (run / "metrics.jsonl").write_text("\n".join([*lines[:3], lines[1], lines[2], *strange, lines[3], '{"iteration":9,"shared/entropy":5']))
    page = report(tmp_path, run)
    assert points(metric(page, "shared/entropy")["curves"][0]) == [(100, 1), (200, 2), (300, 3), (400, 4)]
    assert (page["runs"][0]["rows"], page["runs"][0]["skipped"]) == (4, 2 + len(strange))


def test_the_table_has_every_row(compared, tmp_path):
    folder, _ = compared
    table = tmp_path / "all.csv"
    report(tmp_path, folder / "runs" / "a3", folder / "runs" / "b1", arguments=["--csv", table])
    rows = list(csv.DictReader(table.open(newline="")))
    assert len(rows) == 42 and {row["group"] for row in rows} == {"lr=0.001", "lr=0.01"}
    expected = [json.loads(line) for line in (folder / "runs" / "b1" / "metrics.jsonl").read_text().splitlines()]
    for row, numbers in zip(rows[21:], expected):
        assert row.pop("run") == str(folder / "runs" / "b1") and row.pop("seed") == "1" and row.pop("group") == "lr=0.01"
        assert {name: float(value) for name, value in row.items() if value} == numbers


def test_no_cell_of_the_table_is_a_formula(tmp_path):
    make_run(tmp_path / "=1+1", {"=2+2": [1.0, -0.5], "@x": [2.0, 3.0]})
    page = report(tmp_path, "=1+1", arguments=["--csv", tmp_path / "all.csv"], cwd=tmp_path)
    rows = list(csv.reader((tmp_path / "all.csv").open(newline="")))
    assert {"'=2+2", "'@x"} <= set(rows[0]) and rows[1][0] == "'=1+1" and rows[2][rows[0].index("'=2+2")] == "-0.5"
    assert page["metrics"][0]["name"] == "=2+2"


def test_a_table_that_cannot_be_written_keeps_the_older_one(compared, tmp_path):
    folder, _ = compared
    table = tmp_path / "all.csv"
    table.write_text("old")
    for cause in ("ENOSPC", "short"):
        done = wdtrain("report", folder / "runs", "--out", tmp_path / "a.html", "--csv", table, env={**os.environ, "WD_FAILPOINT": f"write:2:{cause}"})
        assert done.returncode == 1 and "all.csv.tmp: cannot write: No space left on device" in done.stderr
        assert table.read_text() == "old" and {path.name for path in tmp_path.iterdir()} == {"a.html", "all.csv"}


def test_what_is_too_long_is_left_out_quickly(tmp_path):
    run = make_run(tmp_path / "run", {"shared/entropy": [1.0, 2.0]})
    first, second = (run / "metrics.jsonl").read_text().splitlines()
    names = ",".join(f'"m{k}":0' for k in range(60_000))
    rows = [first, '{"iteration":2,' + "x" * 2_000_000, '{"iteration":2,' + names + "}", second]
    (run / "metrics.jsonl").write_text("\n".join(rows) + "\n")
    (run / "summary.json").write_text('{"status":"finished","mean_return":{' + names + "}}")
    begin = time.monotonic()
    page = report(tmp_path, run)
    output("list", run)
    output("status", run)
    assert time.monotonic() - begin < 4
    assert (page["runs"][0]["rows"], page["runs"][0]["skipped"]) == (2, 2)
    assert points(metric(page, "shared/entropy")["curves"][0]) == [(100, 1), (200, 2)]


def test_many_runs_that_differ_are_labeled_quickly_and_too_many_are_refused(tmp_path):
    for k in range(400):
        make_run(tmp_path / "runs" / f"{k:04}", {"shared/entropy": [1.0]}, lr=0.001 * (k + 1))
    begin = time.monotonic()
    page = report(tmp_path, tmp_path / "runs")
    assert time.monotonic() - begin < 10 and len({group["label"] for group in page["groups"]}) == 400
    for k in range(1000 - 399):
        shutil.copytree(tmp_path / "runs" / "0000", tmp_path / "runs" / f"again{k}")
    done = wdtrain("report", tmp_path / "runs", "--out", tmp_path / "no.html")
    assert done.returncode == 2 and "report: 1001 runs are too many for a page, which can show 1000" in done.stderr


def test_links_to_episodes_are_relative_to_the_page(tmp_path):
    run = make_run(tmp_path / "runs" / "50 % #1", {"shared/entropy": [1.0]})
    (run / "rollouts").mkdir()
    for iteration in (9, 10):
        (run / "rollouts" / f"iteration_{iteration}.html").write_text("x")
    (tmp_path / "pages").mkdir()
    links = report(tmp_path / "pages", run)["runs"][0]["rollouts"]
    assert [link["name"] for link in links] == ["iteration_9", "iteration_10"]
    for link in links:
        assert (tmp_path / "pages" / urllib.parse.unquote(link["href"])).read_text() == "x"
        assert re.fullmatch(r"[\w/.%-]+", link["href"]) and not pathlib.PurePath(link["href"]).is_absolute()


def test_a_training_writes_the_report_of_its_run(tmp_path):
    output(*SHORT, "--run_dir", tmp_path / "run", "--set", "eval.every=10", "--set", "eval.episodes=5", "--set", "play.every=10")
    page = content(tmp_path / "run" / "report.html")
    (run,) = page["runs"]
    assert (run["status"], run["rows"], run["workers"], run["env"]) == ("finished", 20, 1, "cartpole")
    assert [link["href"] for link in run["rollouts"]] == ["rollouts/iteration_10.html", "rollouts/iteration_20.html"]
    last = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()][-1]
    (evaluation,) = run["evaluation"]
    assert evaluation == {"role": "cart", "mean": pytest.approx(last["eval/cart/return"]),
                          "low": pytest.approx(last["eval/cart/return_low"]), "high": pytest.approx(last["eval/cart/return_high"])}
    assert run["hardware"]["cores"] >= 1 and run["hardware"]["cpu"] and run["version"]["program"]


def test_a_report_that_cannot_be_written_is_a_warning(tmp_path):
    run = tmp_path / "run"
    output(*SHORT, "--run_dir", run)
    (run / "report.html").unlink()
    (run / "report.html").mkdir()
    (run / "report.html" / "in_the_way").touch()
    done = wdtrain("--resume", run, "--total_steps", 1760)
    assert done.returncode == 0
    assert "warning: the report is not written: " in done.stderr and "report.html" in done.stderr


@pytest.mark.parametrize("arguments, message", [
    ([], "report needs RUN..."),
    (["nowhere"], "nowhere: there is no such folder"),
    (["."], "there is no run in it or below it"),
    (["run", "--out", "a.pdf"], "--out a.pdf: must end in .html"),
    (["run", "--out", "no/where/a.html"], "--out no/where/a.html: there is no folder no/where"),
])
def test_wrong_input_is_refused(tmp_path, arguments, message):
    done = wdtrain("report", *arguments, cwd=tmp_path)
    assert done.returncode == 2 and message in done.stderr and not list(tmp_path.iterdir())


@pytest.mark.parametrize("text, shown", [(json.dumps(search()), search()), (None, None), ("{", None), ("[]", None),
                                         (json.dumps({**search(), "tries": 1}), None), (json.dumps({**search(), "version": 2}), None)])
def test_a_search_is_shown_if_it_is_one(tmp_path, text, shown):
    run = make_run(tmp_path / "run", {"shared/recent_return": [1.0]})
    if text is not None:
        (run / "autoscale.json").write_text(text)
    found = report(tmp_path, run)["runs"][0]["search"]
    if shown is not None:
        shown = {**shown, "chosen": {**shown["chosen"], "flags": "--set trainer.num_envs=64 --set trainer.train_batch_size=1024"}}
    assert found == shown
