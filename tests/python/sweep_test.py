"""sweep_test.py: wdtrain.sweep() makes every training of a sweep once, whatever is killed, and says what was best."""

import csv
import importlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest
import yaml

ROOT = pathlib.Path(os.environ["WD_SOURCE_DIR"])
sys.path.insert(0, str(ROOT / "python"))

import wdtrain  # noqa: E402

SLOWDOWN = int(os.environ.get("WD_SLOWDOWN", 1))
FIXED = {"trainer.num_envs": 16, "trainer.train_batch_size": 512, "trainer.device": "cpu", "trainer.stop_return": None, "trainer.threads": 1}
SWEEP = {"env": "cartpole", "total_steps": 20480, "trials": 4, "seeds": [3, 5], "sampler": "random", "set": FIXED,
         "settings": {"policy.shared.lr": {"low": "1e-4", "high": 3e-3, "log": True}, "policy.shared.num_epochs": [1, 2], "policy.shared.gamma": "default"}}
MAIN = f"import sys; sys.path.insert(0, {str(ROOT / 'python')!r}); {{}}from wdtrain.sweep import main; main()"


def written(folder, **changed):
    path = folder / "sweep.yaml"
    path.write_text(yaml.safe_dump(SWEEP | changed))
    return path


def started(file, out, *more, before=""):
    command = [sys.executable, "-c", MAIN.format(before), str(file), "--out", str(out), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process):
    out, error = process.communicate(timeout=120 * SLOWDOWN)
    return process.returncode, out, error


def rows(out):
    """The table without what a clock has measured, by trial."""
    table = csv.DictReader((out / "trials.csv").read_text().splitlines())
    return sorted(({key: value for key, value in row.items() if key != "seconds"} for row in table), key=lambda row: int(row["trial"]))


def metrics(run):
    return [{name: repr(value) for name, value in row.items() if not name.startswith("time/")} for row in run.rows()]


def wait_for(path, process):
    deadline = time.monotonic() + 60 * SLOWDOWN
    while not path.exists() or path.stat().st_size == 0:
        assert process.poll() is None and time.monotonic() < deadline, path
        time.sleep(0.01)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    out = tmp_path_factory.mktemp("sweep") / "pole"
    return out, wdtrain.sweep(SWEEP, out=out, jobs=2)


def test_the_table_has_all_trials_and_the_best_is_first(done):
    out, table = done
    assert [row["state"] for row in table] == ["complete"] * 4 and {row["trial"] for row in table} == {0, 1, 2, 3}
    assert [row["score"] for row in table] == sorted((row["score"] for row in table), reverse=True)
    for row in table:
        runs = [wdtrain.Run(out / "trials" / f"{row['trial']:03}" / seed) for seed in ("3", "5")]
        assert list(row["scores"].values()) == [run.rows()[-1]["shared/recent_return"] for run in runs]
        assert row["score"] == pytest.approx(sum(row["scores"].values()) / 2) and row["steps"] == sum(run.summary["env_steps"] for run in runs)
        for run in runs:
            policy = run.config["policy"]["shared"]
            assert policy["lr"] == float(row["policy.shared.lr"]) and 1e-4 <= policy["lr"] <= 3e-3 and 0.9 <= policy["gamma"] <= 0.9999
            assert run.config["trainer"]["total_steps"] == 20480 and run.config["trainer"]["num_envs"] == 16
    assert len({row["policy.shared.lr"] for row in table}) == 4


def test_the_best_settings_train(done, tmp_path):
    out, table = done
    run = wdtrain.train(config=out / "best.yaml", run_dir=tmp_path / "run", progress=False, total_steps=512)
    assert run.config["policy"]["shared"]["lr"] == float(table[0]["policy.shared.lr"]) and run.config["trainer"]["num_envs"] == 16


def test_the_page_needs_no_network(done):
    page = (done[0] / "report.html").read_text()
    assert page.count("<svg") == 6 and page.count('r="4"') == 6 * 4 and page.count('r="2"') == 6 * 8
    assert not re.search(r"https?:|<script|<link|\bnan\b", page.split("<svg", 1)[1])


def test_killed_twice_and_interrupted_it_ends_as_without(done, tmp_path):
    whole, out, file = done[0], tmp_path / "killed", written(tmp_path)
    for trial, seed, number in ((0, 5, signal.SIGKILL), (2, 3, signal.SIGKILL), (3, 3, signal.SIGINT)):
        process = started(file, out)
        wait_for(out / "trials" / f"{trial:03}" / str(seed) / "metrics.jsonl", process)
        process.send_signal(number)
        code, said, error = ended(process)
        assert code == (130 if number == signal.SIGINT else -9), error
    assert f"the same command with --out {out} goes on" in error and wdtrain.Run(out / "trials/003/3").status in ("stopped", "finished")
    finished = (out / "trials/000/3/metrics.jsonl").stat().st_mtime_ns
    code, said, error = ended(started(file, out))
    assert (code, re.findall(r"^trial (\d): ", said, re.MULTILINE)) == (0, ["3"]), error
    assert rows(out) == rows(whole) and len(rows(out)) == 4
    assert (out / "trials/000/3/metrics.jsonl").stat().st_mtime_ns == finished
    for run in wdtrain.runs(whole):
        assert metrics(run) == metrics(wdtrain.Run(out / run.folder.relative_to(whole)))


def test_two_processes_share_the_work(tmp_path):
    # A journal: what several machines share. The other storage, a database, is that of the other tests.
    file = written(tmp_path, trials=4, seeds=1, total_steps="20k", storage=str(tmp_path / "journal.log"))
    ends = [ended(process) for process in [started(file, tmp_path / "out") for _ in range(2)]]
    assert [code for code, *_ in ends] == [0, 0], ends
    assert sorted(re.findall(r"^trial (\d): ", ends[0][1] + ends[1][1], re.MULTILINE)) == list("0123")
    assert len(rows(tmp_path / "out")) == 4 and not (tmp_path / "out" / "study.db").exists()


def test_trials_side_by_side_have_gpus_of_their_own(tmp_path, monkeypatch):
    """No driver is here, so trainings that may use a GPU use the CPU."""
    popen, seen = subprocess.Popen, {}

    def spy(words, **settings):
        if folder := next((word for word in words if str(word).startswith("--run_dir=")), None):
            seen.setdefault(settings["env"]["CUDA_VISIBLE_DEVICES"], []).append(folder)
        return popen(words, **settings)

    monkeypatch.setattr(subprocess, "Popen", spy)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2, GPU-1")
    fixed = FIXED | {"trainer.device": "auto"}
    wdtrain.sweep(SWEEP | {"set": fixed, "trials": 6, "seeds": 1, "total_steps": 512}, out=tmp_path / "out", jobs="auto")
    assert set(seen) == {"2", "GPU-1"} and len({*seen["2"], *seen["GPU-1"]}) == 6


@pytest.mark.parametrize(("device", "visible", "jobs"), [("auto", "3,-1,4", 1), ("auto", "0, 1,2", 3), ("cuda", None, 1), ("cuda", "", 1), ("cpu", "0,1", 4)])
def test_jobs_by_themselves_are_one_for_each_gpu(device, visible, jobs, tmp_path, monkeypatch):
    """As CUDA counts them: -1 ends the list. A GPU whose device file is not seen, as under WSL, counts as one."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(4))
    monkeypatch.setattr("glob.glob", lambda _: [])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    made = importlib.import_module("wdtrain.sweep")._Sweep(SWEEP | {"set": FIXED | {"trainer.device": device}}, tmp_path, "auto")
    assert made.jobs == jobs


@pytest.mark.parametrize(("changed", "message"), [
    ({"settings": ["policy.shared.lrr"]}, 'there is no setting .*did you mean "policy.shared.lr"'),
    ({"settings": {"policy.shared.lr": {"low": 1e-4, "high": 30}}}, r"policy\.shared\.lr = 30.*must be in \[0, 10\]"),
    ({"settings": {"policy.shared.num_epochs": [2, "many"]}}, "num_epochs = many: must be a whole number"),
    ({"settings": ["trainer.total_steps"]}, "total_steps: what values are usual is not known: give low and high"),
    ({"settings": {"policy.shared.lr": {"low": 0, "high": 1, "log": True}}}, "both above 0 with log"),
    ({"settings": {"policy.shared.lr": {"low": 1e-3}}}, "policy.shared.lr: .*give low, and high above it"),
    ({"settings": {"policy.shared.lr": []}}, r"lr: \[\]: give low"),
    ({"settings": {"lr": "default", "policy.shared.lr": "default"}}, "policy.shared.lr is given twice"),
    ({"sampler": "grid"}, "policy.shared.lr: the sampler grid needs a list"),
    ({"sampler": "grit"}, "sampler: 'grit': one of tpe, random, grid"),
    ({"set": {"trainer.num_envs": 0}}, "num_envs = 0"),
    ({"seeds": [1, 1]}, "without repetitions"),
    ({"trails": 3}, "trails: known: env, "),
])
def test_what_is_wrong_is_refused_before_anything_begins(tmp_path, changed, message):
    with pytest.raises(wdtrain.UsageError, match=message):
        wdtrain.sweep(SWEEP | changed, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_another_sweep_is_refused_in_the_same_folder(done):
    with pytest.raises(wdtrain.UsageError, match="holds another sweep"):
        wdtrain.sweep(SWEEP | {"total_steps": "5k"}, out=done[0])


def test_a_missing_optuna_is_named(tmp_path):
    code, _, error = ended(started(written(tmp_path), tmp_path / "out", before="sys.modules['optuna'] = None; "))
    assert code == 1 and "optuna is not installed: pip install optuna" in error and not (tmp_path / "out").exists()


def test_commands_for_a_scheduler(tmp_path):
    grid = {"policy.shared.lr": ["1e-3", 2e-3], "policy.shared.num_epochs": [1, 2]}
    file = written(tmp_path, sampler="grid", settings=grid, total_steps=1024, seeds=[3])
    code, said, error = ended(started(file, tmp_path / "out", "--print"))
    assert code == 0 and len(lines := said.splitlines()) == 4 and not (tmp_path / "out").exists(), error
    subprocess.run(lines[1], shell=True, check=True, capture_output=True)
    run = wdtrain.Run(tmp_path / "out/trials/001/3")
    assert (run.status, run.config["policy"]["shared"]["lr"], run.config["policy"]["shared"]["num_epochs"]) == ("finished", 1e-3, 2)
    before = (run.folder / "summary.json").stat().st_mtime_ns
    assert ended(started(file, tmp_path / "out"))[0] == 0
    assert (run.folder / "summary.json").stat().st_mtime_ns == before
    assert {(float(row["policy.shared.lr"]), row["policy.shared.num_epochs"]) for row in rows(tmp_path / "out")} == {(1e-3, "1"), (1e-3, "2"), (2e-3, "1"), (2e-3, "2")}
    with pytest.raises(wdtrain.UsageError, match="--print: .*earlier trials"):
        list(importlib.import_module("wdtrain.sweep")._Sweep(SWEEP | {"sampler": "tpe"}, tmp_path / "out").lines())


def test_runs_have_a_table_and_curves(done):
    pytest.importorskip("pandas")
    runs = wdtrain.runs(done[0])
    table = runs.table()
    assert len(runs) == len(table) == 8 and isinstance(runs, list) and set(table["status"]) == {"finished"}
    assert {"policy.shared.lr", "policy.shared.gamma", "trainer.seed"} <= set(table) and "trainer.num_envs" not in table and "saving.run_dir" not in table
    assert list(table["policy.shared.lr"]) == [run.config["policy"]["shared"]["lr"] for run in runs]
    assert list(table["last_return"]) == [run.summary["mean_return"]["shared"] for run in runs]
    assert (table["steps"] == 20480).all() and table["seconds"].notna().all()
    for statistic in ("mean", "iqm"):
        ax = runs.plot(by="policy.shared.lr", statistic=statistic)
        assert len(ax.lines) == len(ax.collections) == 4
    two = [run.rows()[-1]["shared/recent_return"] for run in runs[:2]]
    assert wdtrain.Runs(runs[:2]).plot().lines[0].get_ydata()[-1] == pytest.approx(sum(two) / 2)
    with pytest.raises(wdtrain.UsageError, match="no setting 'lrr'"):
        runs.plot(by="lrr")


def test_claims_are_exclusive_and_end_with_their_process(tmp_path):
    from wdtrain.sweep import _claimed

    first = _claimed(tmp_path)
    assert first and _claimed(tmp_path) is None
    first.close()
    again = _claimed(tmp_path)
    assert again
    again.close()
    (tmp_path / ".claim").write_text("elsewhere")
    assert _claimed(tmp_path) is None
    os.utime(tmp_path / ".claim", (0, 0))
    assert _claimed(tmp_path)


def test_ends_of_a_range_are_read_as_the_program_reads_them(tmp_path):
    made = importlib.import_module("wdtrain.sweep")._Sweep(SWEEP | {"settings": {"trainer.train_batch_size": {"low": "1k", "high": "20k"}}, "set": {"trainer.num_envs": 8}}, tmp_path)
    assert (made.axes[0].low, made.axes[0].high) == (1000, 20000)


def test_settings_say_what_a_search_draws():
    def about(name):
        said = subprocess.run([os.environ["WDTRAIN"], "config", name, "--env", "cartpole", "--json"], capture_output=True, text=True, check=True)
        return json.loads(said.stdout)[0]

    assert about("policy.shared.lr")["search"] == {"low": 1e-5, "high": 1e-2, "scale": "log"}
    assert about("gamma")["search"]["scale"] == "logit" and about("num_envs")["search"]["scale"] == "powers_of_two"
    assert "search" not in about("trainer.total_steps") and about("normalize_advantage")["words"] == ["true", "false"]
