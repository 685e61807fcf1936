"""Evaluations and recordings during training: the numbers of `wdtrain eval`, without any effect on what is learned."""

import hashlib
import json
import signal

import pytest

from cli.program import output, wdtrain

TAG = ["--env", "tag_continuous", "--device", "cpu", "--quiet", "--set", "env.num_taggers=2", "--set", "env.num_runners=5",
       "--set", "env.episode_length=40", "--set", "env.tagging_distance=0.1", "--num_envs", 8, "--train_batch_size", 80,
       "--set", "saving.metrics_log_freq=2"]
EVERY_3 = ["--set", "eval.opponent=none", "--set", "eval.every=3", "--set", "eval.episodes=20"]
CARTPOLE = ["--env", "cartpole", "--device", "cpu", "--quiet"]


def lines(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def evaluated(run):
    return [row for row in lines(run) if any(name.startswith("eval/") for name in row)]


def weights(run):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted((run / "weights").iterdir())}


def without_evaluation(row):
    return {name: value for name, value in row.items() if not name.startswith(("eval/", "time/"))}


def test_training_learns_the_same_with_and_without(tmp_path):
    steps = ["--total_steps", 80 * 8]
    output(*TAG, *steps, "--run_dir", tmp_path / "plain")
    output(*TAG, *steps, *EVERY_3, "--set", "play.every=4", "--run_dir", tmp_path / "evaluated")
    assert weights(tmp_path / "plain") == weights(tmp_path / "evaluated")
    assert [row["iteration"] for row in evaluated(tmp_path / "evaluated")] == [3, 6, 8]
    plain = {row["iteration"]: without_evaluation(row) for row in lines(tmp_path / "plain")}
    for row in lines(tmp_path / "evaluated"):
        # A line after an evaluated iteration covers fewer iterations, so its episodes are fewer.
        if row["iteration"] == 2:
            assert without_evaluation(row) == plain[2]
    assert sorted(page.name for page in (tmp_path / "evaluated" / "rollouts").iterdir()) == ["iteration_4.html", "iteration_8.html"]


@pytest.mark.parametrize("opponent", ["none", "random", "scripted", "both", "a run"])
def test_the_last_evaluation_is_what_eval_says_of_the_run(tmp_path, opponent):
    run = tmp_path / "run"
    if opponent == "a run":
        opponent = str(tmp_path / "other")
        output(*TAG, "--total_steps", 80, "--run_dir", opponent)
    output(*TAG, *EVERY_3, "--total_steps", 80 * 4, "--set", f"eval.opponent={opponent}", "--set", "eval.seed=7", "--run_dir", run)
    last = evaluated(run)[-1]
    assert last["iteration"] == 4
    for kind in ("random", "scripted") if opponent == "both" else (opponent,):
        against = [] if opponent == "none" else ["--opponent", kind]
        said = json.loads(output("eval", "--run", run, "--json", "--device", "cpu", "--episodes", 20, "--seed", 7, *against))
        for role in ("tagger", "runner"):
            match = said if opponent == "none" else said["roles"][role]["trained"]
            shown = f"eval/{role}_vs_{kind}" if opponent == "both" else f"eval/{role}"
            for name, key in (("return", "mean"), ("return_low", "low"), ("return_high", "high")):
                assert last[f"{shown}/{name}"] == pytest.approx(match["returns"][role][key], rel=1e-6)
            if opponent != "none":
                assert last[f"{shown}/env/tags"] == pytest.approx(match["statistics"]["tags"]["mean"], rel=1e-6)
    if opponent == "none":
        assert last["eval/length"] == pytest.approx(said["length"]["mean"], rel=1e-6)
        assert last["eval/env/tags"] == pytest.approx(said["statistics"]["tags"]["mean"], rel=1e-6)
    else:
        assert "eval/length" not in last


def test_stop_return_and_best_can_be_judged_by_evaluations(tmp_path):
    run = tmp_path / "run"
    output(*CARTPOLE, "--set", "eval.every=5", "--set", "trainer.stop_on=eval", "--stop_return", 150, "--run_dir", run,
           "--set", "saving.checkpoint_freq=5")
    returns = [row["eval/cart/return"] for row in evaluated(run)]
    assert returns[-1] >= 150 > max(returns[:-1])
    last = lines(run)[-1]
    assert last["iteration"] % 5 == 0 and last["shared/recent_return"] < 150  # training's window is behind
    assert json.loads((run / "summary.json").read_text())["stop_reason"] == "stop_return"
    manifest = json.loads(next((run / "checkpoints" / "best").glob("*.json")).read_text())
    assert manifest["checkpoint"]["best_return"] == pytest.approx(returns[-1], rel=1e-6)


def test_a_resumed_run_evaluates_the_same(tmp_path):
    settings = [*TAG, *EVERY_3, "--total_steps", 80 * 9, "--set", "saving.checkpoint_freq=4"]
    output(*settings, "--run_dir", tmp_path / "whole")
    killed = wdtrain(*settings, "--run_dir", tmp_path / "killed", "--fault", "iter=8,kind=kill")
    assert killed.returncode == -signal.SIGKILL
    output("--resume", tmp_path / "killed", "--quiet")
    assert weights(tmp_path / "whole") == weights(tmp_path / "killed")
    values = [[{name: value for name, value in row.items() if not name.startswith("time/")} for row in evaluated(tmp_path / run)]
              for run in ("whole", "killed")]
    assert values[0] == values[1]


@pytest.mark.parametrize("device", ["same", "cpu"])
def test_the_first_of_two_workers_evaluates(tmp_path, device):
    settings = [*TAG, *EVERY_3, "--total_steps", 80 * 4, "--set", "play.every=4", "--set", f"eval.device={device}"]
    output(*settings, "--run_dir", tmp_path / "one")
    output(*settings, "--num_workers", 2, "--run_dir", tmp_path / "two")
    one, two = ([row["eval/tagger/return"] for row in evaluated(tmp_path / run)] for run in ("one", "two"))
    assert two == pytest.approx(one, rel=0.05) and len(two) == 2  # sums over ranks round differently
    assert (tmp_path / "two" / "rollouts" / "iteration_4.html").stat().st_size > 20_000


def test_a_page_that_cannot_be_written_does_not_end_training(tmp_path):
    run = tmp_path / "run"
    output(*TAG, "--total_steps", 80 * 2, "--run_dir", run)
    (run / "rollouts").write_text("a file in the place of the folder")
    going_on = wdtrain("--resume", run, "--total_steps", 80 * 4, "--set", "play.every=1")
    assert going_on.returncode == 0
    assert going_on.stderr.count("Not a directory [") == going_on.stderr.count(": training goes on without rollouts") == 1, going_on.stderr


@pytest.mark.parametrize("settings, complaint", [
    (["trainer.stop_on=eval"], "trainer.stop_on = eval: nothing is evaluated"),
    (["eval.every=5", "eval.opponent=random"], "eval.opponent = random: the environment has one role"),
])
def test_settings_that_mean_nothing_are_refused(tmp_path, settings, complaint):
    chosen = [word for setting in settings for word in ("--set", setting)]
    refused = wdtrain(*CARTPOLE, *chosen, "--run_dir", tmp_path / "run")
    assert refused.returncode == 2 and complaint in refused.stderr
