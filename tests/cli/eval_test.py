"""`wdtrain eval` plays as many episodes as it was told to, of a run or of other players, and repeats to the byte."""

import json
import shutil

import pytest
from safetensors.numpy import load_file

from cli.program import output, wdtrain


@pytest.fixture(scope="module")
def tag_run(tmp_path_factory):
    """A short training of a small game of tag."""
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
    assert length == returns  # a reward of 1 a step
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
    """Random play lasts 22.3 steps on average: the first 300 episodes to end would be far shorter."""
    result = evaluate(cartpole_run, "--episodes", 1500, "--policy", "cart=random")
    assert result["players"] == {"cart": "random"}
    assert 21.0 < result["length"]["mean"] < 23.5


def test_greedy_differs_from_sampling(cartpole_run):
    assert evaluate(cartpole_run, "--episodes", 20, "--greedy")["length"] != evaluate(cartpole_run, "--episodes", 20)["length"]


def test_statistics_of_tag(tag_run):
    result = evaluate(tag_run, "--episodes", 30)
    assert set(result["returns"]) == {"tagger", "runner"}
    assert set(result["statistics"]) == {"tags", "survival"}
    assert 0 <= result["statistics"]["tags"]["mean"] <= 5
    assert 0 < result["statistics"]["survival"]["mean"] <= result["length"]["mean"]


def test_scripted_taggers_tag_more_than_random_ones(tag_run):
    scripted = evaluate(tag_run, "--episodes", 60, "--policy", "tagger=scripted", "--policy", "runner=random")
    plain = evaluate(tag_run, "--episodes", 60, "--policy", "tagger=random", "--policy", "runner=random")
    assert scripted["statistics"]["tags"]["low"] > plain["statistics"]["tags"]["high"]


def test_scripted_runners_survive_longer_than_random_ones(tag_run):
    scripted = evaluate(tag_run, "--episodes", 60, "--policy", "tagger=scripted", "--policy", "runner=scripted")
    plain = evaluate(tag_run, "--episodes", 60, "--policy", "tagger=scripted", "--policy", "runner=random")
    assert scripted["statistics"]["survival"]["mean"] > plain["statistics"]["survival"]["mean"]


@pytest.mark.parametrize("opponent", ["random", "scripted"])
def test_opponents(tag_run, opponent):
    result = evaluate(tag_run, "--episodes", 10, "--opponent", opponent)
    assert result["opponent"] == opponent
    assert result["roles"]["tagger"]["trained"]["players"] == {"tagger": "trained", "runner": opponent}
    assert result["roles"]["tagger"]["random"]["players"] == {"tagger": "random", "runner": opponent}
    assert result["roles"]["runner"]["trained"]["players"] == {"tagger": opponent, "runner": "trained"}
    assert result["roles"]["runner"]["trained"]["statistics"]["survival"]["mean"] > 0


def test_one_episode_has_no_interval(tag_run):
    result = evaluate(tag_run, "--episodes", 1)
    assert result["length"]["low"] is None


def test_text_for_people(tag_run):
    text = output("eval", "--run", tag_run, "--episodes", 5)
    assert text.startswith("5 episodes of tag_continuous\n")
    assert "return of tagger" in text


@pytest.mark.parametrize("arguments, message", [
    (["--policy", "tager=random"], 'did you mean "tagger"?'),
    (["--policy", "tagger"], "must be ROLE=PLAYER"),
    (["--policy", "tagger=scriptd"], 'did you mean "scripted"?'),
    (["--opponent", "trained"], "must be one of random, scripted"),
    (["--opponent", "random", "--policy", "tagger=random"], "both choose the players"),
    (["--episodes", "0"], "--episodes 0: must be"),
    (["--seed", "-1"], "--seed -1: must be"),
    (["--set", "env.num_runners=7"], "weights"),
])
def test_wrong_input(tag_run, arguments, message):
    done = wdtrain("eval", "--run", tag_run, *arguments)
    assert done.returncode != 0
    assert message in done.stderr


def test_an_environment_without_opponents(cartpole_run):
    done = wdtrain("eval", "--run", cartpole_run, "--opponent", "random")
    assert (done.returncode, "has cart alone" in done.stderr) == (2, True)
    done = wdtrain("eval", "--run", cartpole_run, "--policy", "cart=scripted")
    assert (done.returncode, "has no scripted player" in done.stderr) == (2, True)
