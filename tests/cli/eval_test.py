"""`wdtrain eval` plays the requested number of episodes, of a run or of other players, and gives the same
bytes when repeated."""

import json
import os
import re
import shutil

import numpy
import pytest
from safetensors.numpy import load_file, save_file

from cli.program import output, wdtrain


@pytest.fixture(scope="module")
def tag_run(tmp_path_factory):
    """A short training run of a small tag game."""
    folder = tmp_path_factory.mktemp("runs") / "tag"
    output("--env", "tag_continuous", "--run_dir", folder, "--num_envs", 8, "--train_batch_size", 160, "--total_steps", 160,
           "--device", "cpu", "--quiet", "--set", "env.num_taggers=2", "--set", "env.num_runners=5", "--set", "env.episode_length=40",
           "--set", "env.tagging_distance=0.05")
    return folder


@pytest.fixture(scope="module")
def cartpole_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "cartpole"
    output("--env", "cartpole", "--run_dir", folder, "--total_steps", 1024, "--device", "cpu", "--quiet")
    return folder


def evaluate(run, *arguments):
    return json.loads(output("eval", "--run", run, "--json", "--device", "cpu", *arguments))


def test_every_episode_counts_once(cartpole_run):
    result = evaluate(cartpole_run, "--episodes", 300)
    assert result["episodes"] == 300
    assert result["players"] == {"cart": "trained"}
    length, returns = result["length"], result["returns"]["cart"]
    assert length == returns  # the reward is 1 per step
    assert length["low"] < length["mean"] < length["high"]


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(cartpole_run):
    first, again, other = (evaluate(cartpole_run, "--episodes", 20, "--seed", seed) for seed in (1, 1, 2))
    assert first == again
    assert first["length"] != other["length"]


def test_a_run_is_played_in_its_precision(cartpole_run, tmp_path):
    folder = tmp_path / "bf16"
    output("--env", "cartpole", "--run_dir", folder, "--total_steps", 1024, "--device", "cpu", "--quiet", "--set", "trainer.precision=bf16")
    weights = load_file(folder / "weights" / "shared.safetensors")
    assert {(name, tensor.dtype.name) for name, tensor in weights.items()} == \
        {(name, "float32") for name in load_file(cartpole_run / "weights" / "shared.safetensors")}
    exact = ["--episodes", 50, "--greedy"]
    rounded = evaluate(folder, *exact)
    assert rounded["length"]["mean"] > 5
    assert evaluate(folder, *exact, "--set", "trainer.precision=fp32")["length"] != rounded["length"]


def test_a_run_with_tables_is_played_with_either_and_weights_are_the_same_to_both(tmp_path):
    folder = tmp_path / "table"
    output("--env", "tag_continuous", "--run_dir", folder, "--num_envs", 4, "--train_batch_size", 80, "--total_steps", 160, "--device", "cpu",
           "--quiet", "--set", "env.num_runners=9", "--set", "env.episode_length=30", "--set", "trainer.observations=table")
    rows, tables = (evaluate(folder, "--episodes", 12, "--greedy", "--set", f"trainer.observations={form}") for form in ("rows", "table"))
    assert rows == tables
    assert evaluate(folder, "--episodes", 12, "--greedy") == tables


def test_a_run_of_a_gpu_in_tf32_is_played_in_fp32_and_that_is_said(cartpole_run, tmp_path):
    folder = tmp_path / "tf32"
    shutil.copytree(cartpole_run, folder)
    config = (folder / "config.yaml").read_text()
    assert "precision: fp32" in config
    (folder / "config.yaml").write_text(config.replace("precision: fp32", "precision: tf32"))
    done = wdtrain("eval", "--run", folder, "--json", "--device", "cpu", "--episodes", 20)
    assert done.returncode == 0 and "it is played in fp32" in done.stderr
    assert json.loads(done.stdout)["length"] == evaluate(cartpole_run, "--episodes", 20)["length"]


def test_threads_do_not_matter(tag_run):
    assert evaluate(tag_run, "--episodes", 10, "--threads", 1) == evaluate(tag_run, "--episodes", 10, "--threads", 3)


def test_a_quota_for_each_replica_does_not_favour_short_episodes(cartpole_run):
    """Random play lasts 22.3 steps on average; the first 300 episodes to end would be far shorter."""
    result = evaluate(cartpole_run, "--episodes", 1500, "--policy", "cart=random")
    assert result["players"] == {"cart": "random"}
    assert 21.0 < result["length"]["mean"] < 23.5


def with_weights(run, folder, change):
    """A copy of a run in which `change(tensors)` replaces the weights of the policy named shared."""
    shutil.copytree(run, folder, symlinks=True)
    path = folder / "weights" / "shared.safetensors"
    save_file(change(load_file(path)), path)
    return path


def test_damaged_checkpoints_are_not_played(cartpole_run, tmp_path):
    for name in ("weights/shared.safetensors", "config.yaml"):
        folder = tmp_path / name.split("/")[0]
        shutil.copytree(cartpole_run, folder, symlinks=True)
        checkpoint = folder / "checkpoints" / "latest"
        assert wdtrain("eval", "--run", checkpoint, "--episodes", 3).returncode == 0
        path = checkpoint / name
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
        done = wdtrain("eval", "--run", checkpoint, "--episodes", 3)
        assert (done.returncode, f"{name}: is damaged: its checksum is wrong" in done.stderr, done.stdout) == (1, True, ""), done.stderr
        (checkpoint / "manifest.json").unlink()
        done = wdtrain("eval", "--run", checkpoint, "--episodes", 3)
        assert (done.returncode, "manifest.json: there is no such file" in done.stderr) == (1, True), done.stderr


@pytest.mark.parametrize("name, index, value", [("layers.0.weight", 5, "nan"), ("value_head.bias", 0, "inf"), ("layers.1.bias", 63, "-inf")])
def test_weights_that_are_not_finite_are_named(cartpole_run, tmp_path, name, index, value):
    def poisoned(tensors):
        tensors[name].reshape(-1)[index] = float(value)
        return tensors

    path = with_weights(cartpole_run, tmp_path / "run", poisoned)
    message = f"shared.safetensors: tensor '{name}'[{index}] is {value}: weights must be finite numbers"
    done = wdtrain("eval", "--run", tmp_path / "run", "--greedy", "--json")
    assert (done.returncode, message in done.stderr, done.stdout) == (1, True, ""), done.stderr
    done = wdtrain("--env", "cartpole", "--set", f"policy.shared.model.model_ckpt_filepath={path}", "--run_dir", tmp_path / "new", "--quiet")
    assert (done.returncode, message in done.stderr, (tmp_path / "new").exists()) == (1, True, False), done.stderr


@pytest.mark.parametrize("change, message", [
    (lambda tensors: {k: v for k, v in tensors.items() if k != "value_head.bias"}, "has no tensor 'value_head.bias'"),
    (lambda tensors: tensors | {"layers.0.weight": numpy.zeros((64, 3), numpy.float32)}, "'layers.0.weight' is F32 [64, 3] where F32 [64, 4]"),
    (lambda tensors: tensors | {"layers.0.bias": numpy.zeros(64, numpy.float64)}, "'layers.0.bias' is F64 [64] where F32 [64]"),
    (lambda tensors: tensors | {"log_std": numpy.zeros(1, numpy.float32)}, "tensor 'log_std' is not expected"),
])
def test_weights_of_another_network_are_a_mistake_of_the_user(cartpole_run, tmp_path, change, message):
    with_weights(cartpole_run, tmp_path / "run", change)
    done = wdtrain("eval", "--run", tmp_path / "run")
    assert (done.returncode, message in done.stderr, "weights of another network" in done.stderr) == (2, True, True), done.stderr


def test_missing_weights_and_missing_runs(cartpole_run, tmp_path):
    shutil.copytree(cartpole_run, tmp_path / "run", symlinks=True)
    (tmp_path / "run" / "weights" / "shared.safetensors").unlink()
    for folder, message in (("run", "shared.safetensors: there is no such file"), ("nosuch", "nosuch: there is no such folder"),
                            ("run/weights", "is not a run's folder: it has no config.yaml")):
        done = wdtrain("eval", "--run", tmp_path / folder)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def trained_on(folder, *settings):
    output("--env", "cartpole", "--run_dir", folder, "--total_steps", 1024, "--seed", 5, "--device", "cpu", "--quiet", *settings)
    return folder


def lengths(run, *arguments):
    """Episode lengths per evaluation seed. Greedy players always play the same way from a given start."""
    results = [evaluate(run, "--greedy", "--episodes", 30, "--seed", seed, *arguments) for seed in range(1, 6)]
    (starts,) = {result["starts"] for result in results}
    return starts, [result["length"] for result in results]


@pytest.mark.parametrize("settings", [["env.reset=fixed"], ["env.reset=pool", "env.reset_pool_size=1"]], ids=["fixed", "pool"])
def test_a_run_on_one_start_is_played_on_that_start(tmp_path, settings):
    run = trained_on(tmp_path / "run", *(word for setting in settings for word in ("--set", setting)))
    (tmp_path / "script.json").write_text('{"actions": []}')
    traced = json.loads(output("trace", "--env", "cartpole", "--seed", 5, "--set", "env.reset=fixed", "--script", tmp_path / "script.json", "--out", "-"))
    (tmp_path / "start.json").write_text(json.dumps([traced["steps"][0]["state"]]))
    known = evaluate(run, "--greedy", "--episodes", 30, "--set", "env.reset=given", "--set", f"env.starts={tmp_path / 'start.json'}")
    assert known["starts"] == "training" and known["length"]["std"] == 0
    assert lengths(run) == ("training", [known["length"]] * 5)
    assert lengths(run, "--starts", "training") == lengths(run)
    starts, others = lengths(run, "--starts", "fresh")
    assert starts == "fresh" and all(other["std"] == 0 for other in others), "one other start for each seed"
    assert len({other["mean"] for other in others}) > 1
    sampled = [evaluate(run, "--episodes", 30, "--seed", seed)["length"] for seed in (1, 2)]
    assert sampled[0] != sampled[1], "only the start is that of the training"
    done = wdtrain("eval", "--run", run, "--set", "env.reset=given", "--set", f"env.starts={tmp_path / 'start.json'}", "--starts", "fresh")
    assert (done.returncode, "there are no others" in done.stderr) == (2, True), done.stderr


def test_a_pool_is_that_of_the_training(tmp_path):
    run = trained_on(tmp_path / "run", "--set", "env.reset=pool", "--set", "env.reset_pool_size=2")
    starts, pool = lengths(run)
    assert starts == "training"
    one = evaluate(run, "--greedy", "--episodes", 30, "--set", "env.reset=fixed")["length"]
    assert one["std"] == 0, "the pool's first start is the fixed one"
    # If all values are a or b, (mean - a) (b - mean) is their variance: every seed must lead to the same b.
    a, mixed = one["mean"], [length for length in pool if length["mean"] != one["mean"]]
    others = {round(length["mean"] + length["std"] ** 2 * 29 / 30 / (length["mean"] - a), 3) for length in mixed}
    assert len({length["mean"] for length in mixed}) > 1 and len(others) == 1


def test_fresh_starts_are_usual_where_training_drew_them(cartpole_run):
    starts, fresh = lengths(cartpole_run)
    assert starts == "fresh" and len({(length["mean"], length["std"]) for length in fresh}) == 5
    starts, first = lengths(cartpole_run, "--starts", "training")
    assert starts == "training" and all(length == first[0] for length in first), "the first starts of the training, whatever the seed"


def test_greedy_differs_from_sampling(cartpole_run):
    assert evaluate(cartpole_run, "--episodes", 20, "--greedy")["length"] != evaluate(cartpole_run, "--episodes", 20)["length"]


def test_statistics_of_tag(tag_run):
    result = evaluate(tag_run, "--episodes", 30)
    assert set(result["returns"]) == {"tagger", "runner"}
    assert set(result["statistics"]) == {"tags", "survival"}
    tags, survival = (result["statistics"][name]["mean"] for name in ("tags", "survival"))
    assert 0 < tags < 5 and 0 < survival < result["length"]["mean"] <= 40
    # The rules, as means over episodes: a tag pays 10 and costs 10, and each runner left at the end gets 1.
    assert result["returns"]["runner"]["mean"] == pytest.approx((-10 * tags + (5 - tags)) / 5, abs=1e-4)
    assert result["returns"]["tagger"]["mean"] == pytest.approx(10 * tags / 2, abs=1e-4)


def test_scripted_taggers_tag_more_than_random_ones(tag_run):
    scripted = evaluate(tag_run, "--episodes", 60, "--policy", "tagger=scripted", "--policy", "runner=random")
    plain = evaluate(tag_run, "--episodes", 60, "--policy", "tagger=random", "--policy", "runner=random")
    assert scripted["statistics"]["tags"]["low"] > plain["statistics"]["tags"]["high"]


def test_scripted_runners_survive_longer_than_random_ones(tag_run):
    scripted = evaluate(tag_run, "--episodes", 200, "--policy", "tagger=scripted", "--policy", "runner=scripted")
    plain = evaluate(tag_run, "--episodes", 200, "--policy", "tagger=scripted", "--policy", "runner=random")
    assert scripted["statistics"]["survival"]["low"] > plain["statistics"]["survival"]["high"]


@pytest.mark.parametrize("opponent", ["random", "scripted"])
def test_opponents(tag_run, opponent):
    result = evaluate(tag_run, "--episodes", 10, "--opponent", opponent)
    assert result["opponent"] == opponent
    assert result["roles"]["tagger"]["trained"]["players"] == {"tagger": "trained", "runner": opponent}
    assert result["roles"]["tagger"]["random"]["players"] == {"tagger": "random", "runner": opponent}
    assert result["roles"]["runner"]["trained"]["players"] == {"tagger": opponent, "runner": "trained"}
    assert result["roles"]["runner"]["trained"]["statistics"]["survival"]["mean"] > 0


def test_another_run_is_an_opponent_too(tag_run):
    result, plain = evaluate(tag_run, "--episodes", 10, "--opponent", tag_run), evaluate(tag_run, "--episodes", 10, "--policy", "tagger=self")
    assert result["roles"]["tagger"]["trained"]["players"] == {"tagger": "trained", "runner": str(tag_run)}
    for role in ("tagger", "runner"):  # it plays as it plays with itself
        assert result["roles"][role]["trained"]["returns"] == plain["returns"]


def test_networks_over_agents_play_with_other_numbers_of_them(tag_run):
    assert evaluate(tag_run, "--episodes", 2, "--set", "env.num_runners=9")["statistics"]["survival"]["mean"] > 0


def test_one_episode_has_no_interval(tag_run):
    result = evaluate(tag_run, "--episodes", 1)
    assert result["length"]["low"] is None and result["length"]["std"] is None
    assert result["length"]["mean"] > 0


def test_text_for_people(tag_run):
    text = output("eval", "--run", tag_run, "--episodes", 5)
    title, heading, length, *rows = text.splitlines()
    assert title == "5 episodes of tag_continuous, fresh starts"
    assert heading.split() == ["MEAN", "95", "%", "INTERVAL", "STD"]
    result = evaluate(tag_run, "--episodes", 5)
    mean, low, high, std = (float(cell) for cell in length.replace("[", "").replace(",", "").replace("]", "").split()[1:])
    assert {"mean": mean, "low": low, "high": high, "std": std} == pytest.approx(result["length"], rel=1e-4)
    assert [row.rsplit("  ", 3)[0].split()[0] for row in rows] == ["return", "return", "tags", "survival"]


@pytest.mark.parametrize("arguments, message", [
    (["--policy", "tager=random"], 'did you mean "tagger"?'),
    (["--policy", "tagger"], "must be NAME=PLAYER"),
    (["--policy", "tagger=scriptd"], 'did you mean "scripted"?'),
    (["--opponent", "scriptd"], 'did you mean "scripted"?'),
    (["--opponent", "random", "--policy", "tagger=random"], "both choose the players"),
    (["--episodes", "0"], "--episodes 0: must be"),
    (["--seed", "-1"], "--seed -1: must be"),
    (["--set", "env.num_turn_levels=7"], "weights of another network"),
    (["--starts", "trainig"], 'must be one of training, fresh; did you mean "training"?'),
    (["--set", "trainer.seed=1"], "--set trainer.seed=1: has no effect on an evaluation; its own option is --seed"),
    (["--set", "trainer.device=cpu"], "its own option is --device"),
    (["--set", "policy.tagger.gamma=0.5"], "has no effect on an evaluation; it takes env.KEY, trainer.precision and trainer.observations"),
    (["--set", "env.reset=given", "--starts", "fresh"], "env.starts"),
    (["base"], "eval plays one run: give base or --run "),
    (["--policy", "tagger=x"], "is none of self, random, scripted, and no folder of a run or a checkpoint\n"),
])
def test_wrong_input(tag_run, arguments, message):
    done = wdtrain("eval", "--run", tag_run, *arguments)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_a_bare_run_is_the_run(cartpole_run):
    arguments = ["--json", "--device", "cpu", "--episodes", 3]
    assert output("eval", cartpole_run, *arguments) == output("eval", *arguments, "--run", cartpole_run)


def test_a_run_of_another_program_is_named(cartpole_run, tmp_path):
    for name, old, new, thing in (("env", 'name: "cartpole"', 'name: "traffic"', "environment traffic"),
                                  ("net", "type: fully_connected", "type: attention", "network attention")):
        run = shutil.copytree(cartpole_run, tmp_path / name)
        text = (run / "config.yaml").read_text()
        assert old in text
        (run / "config.yaml").write_text(text.replace(old, new))
        for command in (["eval", run], ["--resume", run]):
            done = wdtrain(*command)
            assert done.returncode == 2 and f"made by another program ({os.environ['WDTRAIN']}), which has {thing}" in done.stderr, done.stderr


def test_an_environment_without_opponents(cartpole_run):
    done = wdtrain("eval", "--run", cartpole_run, "--opponent", "random")
    assert (done.returncode, "here cart is alone" in done.stderr, "give --policy cart=random" in done.stderr) == (2, True, True), done.stderr
    done = wdtrain("eval", "--run", cartpole_run, "--policy", "cart=scripted")
    assert (done.returncode, "has no scripted player" in done.stderr) == (2, True)


def test_one_command_compares_with_other_players_in_its_place(cartpole_run, tag_run):
    result = evaluate(cartpole_run, "--episodes", 10, "--compare")
    assert set(result["compared"]) == {"trained", "random"} and "length" not in result, "cartpole has no script"
    for player, match in result["compared"].items():
        alone = evaluate(cartpole_run, "--episodes", 10, "--policy", f"cart={player}")
        assert match == {key: alone[key] for key in match} and match["players"] == {"cart": player}
    result = evaluate(tag_run, "--episodes", 4, "--compare")["compared"]
    assert {player: match["players"] for player, match in result.items()} == \
        {player: {"tagger": player, "runner": player} for player in ("trained", "random", "scripted")}
    heading, *rows = output("eval", cartpole_run, "--episodes", 10, "--compare").splitlines()[1:]
    assert [row.split()[0] for row in rows] == ["trained", "trained", "random", "random"]
    for other in (["--opponent", "random"], ["--policy", "cart=random"]):
        done = wdtrain("eval", cartpole_run, "--compare", *other)
        assert (done.returncode, "--compare chooses the players" in done.stderr) == (2, True), done.stderr


@pytest.fixture(scope="module")
def folder_of_runs(cartpole_run, tmp_path_factory):
    """Two runs below runs/, of which `new` wrote a checkpoint last."""
    place = tmp_path_factory.mktemp("several")
    for name in ("old", "new"):
        shutil.copytree(cartpole_run, place / "runs" / "deeper" / name, symlinks=True)
        seconds = {"old": 1e9, "new": 2e9}[name]
        os.utime(place / "runs" / "deeper" / name / "checkpoints", (seconds, seconds))
    return place


@pytest.mark.parametrize("command", [["eval", "{}"], ["eval", "--run", "{}"], ["play", "{}"], ["record", "{}", "--out", "x", "--steps", "64"], ["status", "{}"],
                                     ["reproduce", "{}"], ["--resume", "{}"], ["train", "cartpole", "--warm_start", "{}", "--quiet"], ["eval", "runs/deeper/old", "--policy", "cart={}"]], ids=" ".join)
def test_a_folder_of_several_runs_is_refused_everywhere(folder_of_runs, command):
    before = sorted(folder_of_runs.rglob("*"))
    for folder in ("runs", "runs/deeper"):
        done = wdtrain(*(word.format(folder) for word in command), cwd=folder_of_runs)
        assert (done.returncode, done.stdout) == (2, ""), done
        assert re.fullmatch(rf"error: {folder}: holds 2 runs: name one of them \(\S+ list {folder} lists them\)\n", done.stderr), done.stderr
    assert sorted(folder_of_runs.rglob("*")) == before


def test_latest_is_the_run_that_wrote_a_checkpoint_last(folder_of_runs):
    def ask(*command):
        return output(*command, cwd=folder_of_runs)
    assert json.loads(ask("eval", "latest", "--json", "--episodes", 2))["run"] == "runs/deeper/new"
    assert json.loads(ask("status", "latest", "--json"))["folder"] == str(folder_of_runs / "runs/deeper/new")
    assert "runs/deeper/new-again" in ask("reproduce", "latest", "--print")
    assert "runs/deeper/new/rollout.html (" in ask("play", "--run", "latest")
    assert "below recorded" in ask("record", "latest", "--out", "recorded", "--steps", 64)
    assert ask("report", "latest", "--out", "one.html").startswith("1 run in 1 group")
    ask("train", "cartpole", "--warm_start", "latest", "--quiet", "--total_steps", 1024, "--run_dir", "warm", "--device", "cpu")
    done = wdtrain("--resume", "latest", cwd=folder_of_runs)
    assert (done.returncode, "run runs/deeper/new has finished" in done.stderr + done.stdout) == (0, True), done


def test_latest_of_nothing(tmp_path):
    for command in (["eval", "latest"], ["play", "latest"], ["status", "latest"], ["report", "latest"], ["reproduce", "latest"], ["record", "latest", "--out", "x", "--steps", "1"]):
        done = wdtrain(*command, cwd=tmp_path)
        assert (done.returncode, "latest: there is no run with checkpoints below the folder runs" in done.stderr) == (2, True), done.stderr


def test_the_only_run_of_a_folder(cartpole_run):
    arguments = ["--json", "--device", "cpu", "--episodes", 3]
    assert output("eval", cartpole_run.parent, *arguments) == output("eval", cartpole_run, *arguments)
