"""Rewards of agents that have left are either learned or reported as dropped, by `check` and by training."""

import json
import os
import pathlib
import re
import subprocess

import pytest

BUILD = pathlib.Path(os.environ["WD_BUILD_DIR"])
EMULATED = os.environ.get("WD_SLOWDOWN") is None
WORDS = r"player [0-3] left in step 1 of an episode and was paid 10 in step 10: nothing learns from it.*paid_after_leaving"


def run(program, *arguments):
    command = [str(BUILD / program), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def checked(*settings, env="left_then_paid"):
    return run("faulty", "check", "--env", env, "--device", "cpu", *(word for setting in settings for word in ("--set", setting)))


def trained(folder, *arguments, program="faulty", env="left_then_paid"):
    """What the run's log says, and its rows of metrics."""
    run(program, "--env", env, "--run_dir", folder, "--quiet", "--set", "saving.metrics_log_freq=1", *arguments)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return (folder / "log.txt").read_text(), rows


SMALL = ["--num_envs", 8, "--train_batch_size", 176, "--total_steps", 528, "--set", "policy={shared: {algorithm: PPO}}"]


def test_check_warns_of_rewards_that_are_dropped():
    assert re.search(f"^warning +every reward counts +{WORDS}", checked(), re.M)


@pytest.mark.parametrize("settings, env", [(["env.paid=true"], "left_then_paid"), ([], "racy")])
def test_check_does_not_warn_if_none_is(settings, env):
    output = checked(*settings, env=env)
    assert re.search(r"^ok +every reward counts +\d+ steps", output, re.M) and "warning" not in output, output


def test_agents_out_of_the_game_need_no_legal_choice(tmp_path):
    assert "FAILED" not in checked("env.no_mask=true")
    trained(tmp_path / "run", *SMALL, "--device", "cpu", "--set", "env.no_mask=true")


@pytest.mark.parametrize("program, device", [("faulty", "cpu")] + [("wdtrain_emulated", "cuda")] * EMULATED)
def test_training_warns_once_and_reports_what_it_learns(tmp_path, program, device):
    log, rows = trained(tmp_path / "run", *SMALL, "--device", device, program=program)
    assert len(re.findall(WORDS, log)) == 1, log
    assert len(rows) == 3 and all(row["shared/mean_return"] <= 1.0 for row in rows if row["shared/mean_return"] is not None)
    log, rows = trained(tmp_path / "paid", *SMALL, "--device", device, "--set", "env.paid=true", program=program)
    assert "was paid" not in log
    assert rows[-1]["shared/recent_return"] > 2.0 and rows[-1]["shared/reward_max"] == 10.0


def test_evaluation_follows_the_same_rule(tmp_path):
    for paid in ("false", "true"):
        folder = tmp_path / paid
        trained(folder, *SMALL, "--device", "cpu", "--set", f"env.paid={paid}")
        result = json.loads(run("faulty", "eval", "--run", folder, "--json", "--device", "cpu", "--episodes", 50))
        assert (result["returns"]["player"]["mean"] > 1.001) == (paid == "true"), result


def test_play_and_trace_show_who_is_in_the_game(tmp_path):
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"actions": [[1, 0, 0, 0]] * 10}))
    traces = {}
    for paid in ("false", "true"):
        traces[paid] = json.loads(run("faulty", "trace", "--env", "left_then_paid", "--script", script, "--out", "-", "--set", f"env.paid={paid}"))["steps"]
        assert all(step["active"] == [False, True, True, True] for step in traces[paid][1:])
    assert traces["false"][-1]["rewards"][0] == 0.0 and traces["true"][-1]["rewards"][0] == 10.0
