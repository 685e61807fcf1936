"""Training from the command line: the files of a run, how options and files combine, and how a signal ends
a run."""

import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import time

import pytest
import safetensors

from cli.program import output, wdtrain

SHORT = ["--env", "cartpole", "--device", "cpu", "--total_steps", "2048"]


def summary(folder):
    return json.loads((folder / "summary.json").read_text())


def test_a_run_leaves_its_files(tmp_path):
    output(*SHORT, "--run_dir", tmp_path / "run", "--seed", 3)
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"config.yaml", "metrics.jsonl", "summary.json", "log.txt", "weights"} <= names
    assert any(name.startswith("events.out.tfevents.") for name in names)
    left = summary(tmp_path / "run")
    assert (left["status"], left["env"], left["seed"], left["stop_reason"]) == ("finished", "cartpole", 3, "total_steps")
    assert left["env_steps"] == 2048


def weights_metadata(folder, *arguments):
    output(*arguments, "--device", "cpu", "--run_dir", folder, "--quiet", "--set", "saving.checkpoint_freq=0")
    found = {}
    for path in (folder / "weights").iterdir():
        with safetensors.safe_open(path, framework="np") as file:
            found[path.stem] = (file.metadata(), {name: file.get_tensor(name).shape for name in file.keys()})
    return found


def test_weights_say_what_they_are_for(tmp_path):
    found = weights_metadata(tmp_path / "tag", "--env", "tag_continuous", "--num_envs", 4, "--train_batch_size", 80,
                             "--total_steps", 160, "--set", "env.num_runners=4", "--set",
                             "policy={tagger: {algorithm: A2C, model: {input: observation, fc_dims: [8, 6], activation: tanh}}, runner: {algorithm: PPO}}")
    (tagger, shapes), (runner, _) = found["tagger"], found["runner"]
    assert tagger.pop("program").startswith("wd ")
    assert tagger == {"environment": "tag_continuous", "policy": "tagger", "roles": "tagger", "algorithm": "A2C", "iteration": "2",
                      "env_steps": "160", "observation_size": str(shapes["layers.0.weight"][1]), "distribution": "categorical",
                      "action_heads": "21,21", "model": "fully_connected", "fc_dims": "8,6", "activation": "tanh",
                      "state_size": "0", "action_mask": "false"}
    assert (runner["algorithm"], runner["roles"]) == ("PPO", "runner")
    (metadata, shapes), = weights_metadata(tmp_path / "pendulum", "--env", "pendulum", "--num_envs", 4, "--train_batch_size", 80,
                                           "--total_steps", 80, "--set", "policy.shared.model={type: gru}", "--set",
                                           "policy.shared.num_minibatches=4").values()
    assert (metadata["distribution"], metadata["action_components"], metadata["model"]) == ("gaussian", "1", "gru")
    assert (metadata["action_low"], metadata["action_high"], metadata["state_size"]) == ("-2", "2", "128")
    with safetensors.safe_open(tmp_path / "pendulum" / "checkpoints" / "latest" / "weights" / "shared.safetensors", framework="np") as file:
        assert file.metadata() == metadata
    assert (metadata["fc_dims"], metadata["activation"]) == ("", "tanh"), "of the layers around the memory"


def documented_metrics():
    text = (pathlib.Path(os.environ["WD_SOURCE_DIR"]) / "docs" / "metrics.md").read_text()
    return re.findall(r"^\| `([^`]+)` \|", text, re.M)


# Not of PPO's and A2C's choices, without past selves.
OF_OTHERS = ("epsilon", "critic_grad_norm", "critic_update_ratio", "critic_dormant_share", "critics_gap", "temperature", "memory_size", "memory_age", "counted_share",
             "td_error_median", "td_error_p90", "past_share", "past_oldest", "past_win_rate")


@pytest.mark.parametrize("opponent", ["none", "both"])
def test_every_documented_metric_is_logged_and_no_other(tmp_path, opponent):
    output("--env", "tag_continuous", "--device", "cpu", "--run_dir", tmp_path / "run", "--quiet", "--num_envs", 8,
           "--set", "env.num_runners=4", "--set", "env.episode_length=20", "--train_batch_size", 400, "--total_steps", 800,
           "--set", "saving.metrics_log_freq=1", "--set", "policy={tagger: {algorithm: PPO}, runner: {algorithm: A2C}}",
           "--set", "eval.every=2", "--set", f"eval.opponent={opponent}")
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [line["env_steps"] for line in lines] == [400, 800]
    expected = set()
    for name in documented_metrics():
        names = [name.replace("FIELD", field) for field in ("tags", "survival")] if "FIELD" in name else [name]
        if "action_std_over" in name:
            names = [f"{name}/{head}" for head in ("acceleration", "turn")]
        expected |= {re.sub("POLICY|ROLE", of, n) for n in names for of in ("tagger", "runner")}
    expected -= {f"{of}/{name}" for of in ("tagger", "runner") for name in OF_OTHERS}
    alone = {"eval/length", "eval/env/tags", "eval/env/survival"}
    against = {name for name in expected if re.fullmatch("eval/(tagger|runner)/.*", name)}
    if opponent == "none":
        expected -= {name for name in against if "/env/" in name}
    else:
        roles = [(role, f"{role}_vs_{kind}") for role in ("tagger", "runner") for kind in ("random", "scripted")]
        expected = expected - alone - against | {name.replace(role, shown) for name in against for role, shown in roles if role in name}
    assert set(lines[0]) == {name for name in expected if not name.startswith("eval/")}
    last = lines[-1]
    assert set(last) == expected
    unknown = {name for name, value in last.items() if value is None}
    assert all(name.endswith(("_z", "dormant_share", "saturated_share")) for name in unknown), "z-scores need more lines, and networks read entities and remember nothing"
    assert 0 < last["env/survival"] <= 20
    assert last["tagger/reward_min"] <= last["tagger/reward_mean"] <= last["tagger/reward_max"]
    # Almost uniform choices among 21: the standard deviation is sqrt((21^2 - 1) / 12) = 6.06.
    assert 5 < last["runner/action_std_over_time/turn"] < 7


def test_metrics_of_actors_and_critics(tmp_path):
    learning = "batch_size: 8, replay_ratio: 1, learning_starts: 0, buffer_size: 400, model: {separate_value: false}"
    last = {}
    for algorithm in ("DDPG", "SAC"):
        output("--env", "pendulum", "--device", "cpu", "--quiet", "--num_envs", 4, "--train_batch_size", 40, "--total_steps", 80, "--run_dir", tmp_path / algorithm,
               "--set", f"policy={{shared: {{algorithm: {algorithm}, {learning}}}}}")
        lines = (tmp_path / algorithm / "metrics.jsonl").read_text().splitlines()
        last[algorithm] = {name.removeprefix("shared/"): value for name, value in json.loads(lines[-1]).items()}
        assert set(last[algorithm]) <= {re.sub("POLICY/", "", name) for name in documented_metrics()} | {f"action_std_over_{over}/torque" for over in ("agents", "envs", "time")} | {"saturated_share/torque"}
        assert all(last[algorithm][name] is not None for name in ("policy_loss", "value_loss", "value_mean", "return_mean", "epsilon"))
        assert last[algorithm]["grad_norm"] > 0 and last[algorithm]["critic_grad_norm"] > 0 and last[algorithm]["updates"] == 5
    assert last["SAC"].keys() - last["DDPG"].keys() == {"entropy", "temperature"}
    assert last["DDPG"]["critics_gap"] is None, "one critic"
    for of in last.values():
        assert of["memory_size"] == 80 and 0 < of["memory_age"] < 80 and of["counted_share"] > 0.9
        assert 0 < of["td_error_median"] < of["td_error_p90"] and 0 <= of["saturated_share/torque"] < 1
    assert 0 < last["SAC"]["temperature"] < 1.1


@pytest.mark.parametrize("replicas, steps, null", [(4, 10, {"agents"}), (4, 1, {"agents", "time"}), (1, 10, {"agents", "envs"})])
def test_the_spread_of_one_action_alone_is_null(replicas, steps, null, tmp_path):
    output("--env", "pendulum", "--device", "cpu", "--quiet", "--num_envs", replicas, "--train_batch_size", replicas * steps, "--total_steps", 80,
           "--run_dir", tmp_path / "run", "--set", "policy={shared: {algorithm: TD3, batch_size: 4, replay_ratio: 4, model: {separate_value: false}}}")
    last = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    spread = {over: last[f"shared/action_std_over_{over}/torque"] for over in ("agents", "envs", "time")}
    assert {over for over, value in spread.items() if value is None} == null
    assert all(value > 0.01 for value in spread.values() if value is not None)


def test_steps_that_only_reset_and_absent_agents_have_no_reward(tmp_path):
    output(*SHORT, "--run_dir", tmp_path / "pole", "--set", "saving.metrics_log_freq=1")
    lines = [json.loads(line) for line in (tmp_path / "pole" / "metrics.jsonl").read_text().splitlines()]
    assert sum(line["episodes"] for line in lines) > 10, "too few episodes ended: the test shows less than it says"
    assert [(line["shared/reward_min"], line["shared/reward_max"]) for line in lines] == [(1, 1)] * len(lines)
    output("--env", "pendulum", "--device", "cpu", "--run_dir", tmp_path / "pendulum", "--quiet", "--num_envs", 4, "--train_batch_size", 1200,
           "--total_steps", 1200)
    last = json.loads((tmp_path / "pendulum" / "metrics.jsonl").read_text())
    assert last["episodes"] == 4 and last["shared/reward_max"] < 0


@pytest.mark.parametrize("limit", [[], ["--max_seconds", "600"]])
def test_strict_device_passes_with_metrics_weights_and_checkpoints_on_the_way(tmp_path, limit):
    output(*SHORT, "--run_dir", tmp_path / "run", "--strict_device", *limit, "--train_batch_size", "256", "--set", "saving.metrics_log_freq=1",
           "--set", "saving.checkpoint_freq=2", "--set", "saving.model_params_save_freq=1")
    assert summary(tmp_path / "run")["env_steps"] == 2048


def test_the_word_train_may_be_left_out(tmp_path):
    output("train", *SHORT, "--run_dir", tmp_path / "run", "--quiet")
    assert summary(tmp_path / "run")["status"] == "finished"


def test_quiet_says_nothing(tmp_path):
    done = wdtrain(*SHORT, "--run_dir", tmp_path / "run", "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("settings", [["--stop_return", "30"], ["--stop_return", "30", "--set", "trainer.stop_on=eval", "--set", "eval.every=1"]])
def test_the_last_line_of_a_run_has_no_eta(tmp_path, settings):
    # Two replicas have finished all episodes of recent_return within a few iterations.
    *lines, last = output("--env", "cartpole", "--device", "cpu", "--run_dir", tmp_path / "run", "--num_envs", 2, "--set", "saving.metrics_log_freq=1",
                          *settings).splitlines()
    assert all(" | eta " in line for line in lines) and "eta" not in last
    assert summary(tmp_path / "run")["stop_reason"] == "stop_return"


def test_the_default_folder_is_under_runs(tmp_path):
    output(*SHORT, "--quiet", cwd=tmp_path)
    (folder,) = (tmp_path / "runs" / "cartpole").iterdir()
    assert summary(folder)["status"] == "finished"


def test_a_folder_that_holds_something_is_refused(tmp_path):
    (tmp_path / "precious").write_text("x")
    done = wdtrain(*SHORT, "--run_dir", tmp_path)
    assert done.returncode == 2
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


@pytest.mark.parametrize("settings, message", [
    (["env.use_full_observation=false"], "this environment has no Spec::table"),
])
def test_a_table_of_observations_is_refused_where_there_is_none(tmp_path, settings, message):
    more = [word for setting in settings for word in ("--set", setting)]
    done = wdtrain("--env", "tag_continuous", "--run_dir", tmp_path / "run", "--set", "trainer.observations=table", *more)
    assert (done.returncode, message in done.stderr, (tmp_path / "run").exists()) == (2, True, False), done.stderr
    assert "trainer.observations = table" in done.stderr


@pytest.mark.parametrize("settings, words", [
    (["--train_batch_size", "8G", "--total_steps", "16G"], "8 replicas x 1000000000 steps x 5 agents take observations "),
    (["--set", "policy.tagger.model.fc_dims=[65536, 65536, 65536]"], "take networks 128.0 GiB, "),
    (["--set", "env.num_taggers=16384"], "x 16385 agents take "),
])
def test_memory_that_cannot_be_had_is_refused_before_anything_is_allocated(tmp_path, settings, words):
    begin = time.monotonic()
    done = wdtrain("--env", "tag_gridworld", "--num_envs", 8, "--device", "cpu", "--run_dir", tmp_path / "run", *settings)
    assert (done.returncode, words in done.stderr) == (2, True), done.stderr
    assert re.search(r"with rollouts of \d+ steps, (not even one|at most \d+) replicas? ", done.stderr), done.stderr
    assert "not enough memory: training needs at least " in done.stderr and "policy.NAME.model.fc_dims" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: not enough memory") and not (tmp_path / "run").exists()
    assert time.monotonic() - begin < 20


def test_memory_that_runs_out_is_told_in_one_line(tmp_path):
    done = wdtrain(*SHORT, "--run_dir", tmp_path / "run", "--quiet", "--fault", "rank=0,iter=1,kind=oom")
    assert done.returncode == 1
    assert re.fullmatch(r"error: out of memory: cannot allocate more; lower trainer.num_envs .*\n", done.stderr), done.stderr
    assert summary(tmp_path / "run")["stop_reason"].startswith("out of memory")


def test_options_lie_over_files(tmp_path):
    (tmp_path / "mine.yaml").write_text("name: cartpole\ntrainer: {seed: 5, num_envs: 4}\n")
    text = output("--config", tmp_path / "mine.yaml", "--set", "trainer.num_envs=8", "--seed", 7, "--print_config")
    assert re.search(r"seed: 7 +# --seed", text)
    assert re.search(r"num_envs: 8 +# --set", text)
    assert not (tmp_path / "runs").exists()


def test_a_folder_with_a_name_that_yaml_would_misread(tmp_path):
    output(*SHORT, "--quiet", "--run_dir", "1e6", cwd=tmp_path)
    assert summary(tmp_path / "1e6")["status"] == "finished"


def test_a_run_s_configuration_is_a_configuration(tmp_path):
    output(*SHORT, "--quiet", "--run_dir", tmp_path / "one")
    output("--config", tmp_path / "one" / "config.yaml", "--quiet", "--run_dir", tmp_path / "two")
    weights = [(tmp_path / name / "weights" / "shared.safetensors").read_bytes() for name in ("one", "two")]
    assert weights[0] == weights[1]


def start(folder):
    command = [os.environ["WDTRAIN"], "--env", "cartpole", "--device", "cpu", "--total_steps", "1G", "--set", "trainer.stop_return=1e9"]
    process = subprocess.Popen([*command, "--run_dir", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not ((folder / "metrics.jsonl").exists() and (folder / "metrics.jsonl").stat().st_size) and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_training_in_good_order(tmp_path: pathlib.Path, number):
    process = start(tmp_path / "run")
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == 128 + number
    left = summary(tmp_path / "run")
    assert (left["status"], left["stop_reason"]) == ("stopped", "signal")
    assert (tmp_path / "run" / "weights" / "shared.safetensors").stat().st_size > 0


def test_log_txt_holds_all_that_was_said(tmp_path):
    folder = tmp_path / "someone's run"
    done = wdtrain("--env", "cartpole", "--device", "cpu", "--total_steps", 2000, "--run_dir", folder)
    lines = (folder / "log.txt").read_text().splitlines()
    said = [line.split(" ", 2)[2] for line in lines]
    assert said == ["info: " + line if not line.startswith("warning: ") else line for line in done.stderr.splitlines()]
    assert any("is rounded up to" in line for line in said) and said[-3].startswith("info: ended by total_steps")
    watch, report = said[-2:]
    command = watch.removeprefix("info: watch the policies: ")
    assert shlex.split(command) == [os.environ["WDTRAIN"], "play", "--run", str(folder)], "a shell can run it as it is"
    assert report == f"info: report: {folder}/report.html"


def test_log_txt_holds_why_a_run_ended_early(tmp_path):
    process = start(tmp_path / "stopped")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert "stopping: signal 15" in (tmp_path / "stopped" / "log.txt").read_text()
    wdtrain(*SHORT, "--run_dir", tmp_path / "failed", "--fault", "rank=0,iter=2,kind=nan:reward")
    assert "failed: policy 'shared': reward nan" in (tmp_path / "failed" / "log.txt").read_text()


def test_a_finished_run_says_what_goes_on(tmp_path):
    """A run that stopped at its target return is not continued by a larger number of steps."""
    begin = ["--env", "cartpole", "--device", "cpu", "--quiet", "--stop_return", 5]
    output(*begin, "--run_dir", tmp_path / "one")
    steps = summary(tmp_path / "one")["env_steps"]
    output(*begin, "--run_dir", tmp_path / "two", "--total_steps", steps)
    for name, options in (("one", "--stop_return none"), ("two", "--stop_return none --total_steps N")):
        done = wdtrain("--resume", tmp_path / name)
        assert f"nothing is left to do; go on with {options}\n" in done.stderr
        output("--resume", tmp_path / name, "--quiet", "--stop_return", "none", "--total_steps", steps + 1024)
        assert summary(tmp_path / name)["env_steps"] == steps + 1024


def test_a_run_of_all_its_steps_goes_on_with_more(tmp_path):
    output(*SHORT, "--run_dir", tmp_path / "run", "--quiet")
    assert "nothing is left to do; go on with --total_steps N\n" in wdtrain("--resume", tmp_path / "run").stderr


def test_max_seconds_ends_training_in_good_order(tmp_path):
    begin = time.monotonic()
    output("--env", "cartpole", "--device", "cpu", "--total_steps", "1G", "--set", "trainer.stop_return=1e9", "--max_seconds", 1,
           "--run_dir", tmp_path / "run", "--quiet")
    assert time.monotonic() - begin < 20
    assert (summary(tmp_path / "run")["status"], summary(tmp_path / "run")["stop_reason"]) == ("stopped", "max_seconds")


WARPDRIVE = sorted((pathlib.Path(os.environ["WD_SOURCE_DIR"]) / "tests" / "data" / "warpdrive").glob("*.yaml"))
assert len(WARPDRIVE) == 8, "all run configurations of WarpDrive 2.7.1"


@pytest.mark.parametrize("file", WARPDRIVE, ids=lambda file: file.stem)
def test_run_configurations_of_warpdrive_train(file, tmp_path):
    """As they are, but for the number of iterations, and replicas of the largest game."""
    smaller = ["--num_envs", "8", "--train_batch_size", "400"] if file.stem == "tag_continuous" else []
    steps = {"tag_gridworld": 400_000, "tag_gridworld_with_reset_pool": 400_000, "single_mountain_car": 1_000_000, "tag_continuous": 800}.get(file.stem, 150_000)
    output("--config", file, *smaller, "--total_steps", steps, "--device", "cpu", "--quiet", "--run_dir", tmp_path / "run")
    last = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert last["iteration"] >= 2 and last["env_steps"] == steps
    learned = {name: value for name, value in last.items() if name.endswith("/updates")}
    assert learned and all(value >= 1 for value in learned.values()), learned
    assert all(last[name.replace("updates", "grad_norm")] > 0 for name in learned)
