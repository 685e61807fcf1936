"""Teams, opponents and matches between runs, through the program."""

import json
import shutil

import numpy
import pytest
import yaml
from safetensors import safe_open
from safetensors.numpy import load_file

from cli.program import output, wdtrain

SMALL = ["--env", "tag_gridworld", "--device", "cpu", "--quiet", "--num_envs", 8, "--train_batch_size", 64, "--set", "env.num_taggers=4",
         "--set", "env.episode_length=12", "--set", "saving.checkpoint_freq=2", "--set", "saving.keep_last=100"]
TEAMS = ["--set", 'policy={a: {agents: ["tagger 0", "tagger 2-3"], algorithm: PPO, model: {fc_dims: [12]}}, '
                  'b: {agents: ["tagger 1"], algorithm: A2C, model: {fc_dims: [8]}}, runner: {algorithm: PPO}}']
ROLES = ["--set", "policy={tagger: {algorithm: PPO, model: {fc_dims: [12]}}, runner: {algorithm: A2C, model: {fc_dims: [8]}}}"]


def train(folder, *arguments, steps=512):
    output(*SMALL, *arguments, "--run_dir", folder, "--total_steps", steps)
    return folder


@pytest.fixture(scope="module")
def teams(tmp_path_factory):
    return train(tmp_path_factory.mktemp("runs") / "teams", *TEAMS)


@pytest.fixture(scope="module")
def recurrent(tmp_path_factory):
    return train(tmp_path_factory.mktemp("runs") / "recurrent", "--set",
                 "policy={tagger: {}, runner: {algorithm: PPO, num_minibatches: 1, model: {type: gru, separate_value: true}}}")


def evaluate(run, *arguments):
    return json.loads(output("eval", run, "--json", "--device", "cpu", "--episodes", 20, *arguments))


def weights(folder):
    return {path.name: path.read_bytes() for path in sorted((folder / "weights").iterdir())}


def test_two_teams_of_one_role_have_results_of_their_own(teams):
    result = evaluate(teams)
    assert result["players"] == {"a": "trained", "b": "trained", "runner": "trained"}
    assert set(result["returns"]) == {"a", "b", "runner"}
    assert set(weights(teams)) == {"a.safetensors", "b.safetensors", "runner.safetensors"}
    mixed = evaluate(teams, "--policy", "b=random")
    assert mixed["players"] == {"a": "trained", "b": "random", "runner": "trained"}
    against = evaluate(teams, "--opponent", "random")
    assert set(against["roles"]) == {"a", "b", "runner"}


def test_an_episode_shows_all_agents_of_a_divided_role(teams):
    episode = json.loads(output("play", teams, "-o", "-", "--device", "cpu", "--policy", "b=random"))["episodes"][0]
    assert episode["players"] == {"tagger": "a trained, b random", "runner": "trained"}
    tagger = episode["roles"]["tagger"]
    assert len(tagger["action"][0]) == 4 and len(tagger["probability"][0]) == 20
    values = tagger["value"][0]
    assert values[1] is None and all(value is not None for k, value in enumerate(values) if k != 1)
    page = output("play", teams, "-o", teams / "page.html", "--device", "cpu")
    assert "a trained, b trained" in page


def test_evaluations_in_training_are_called_by_team(tmp_path):
    folder = train(tmp_path / "run", *TEAMS, "--set", "eval.every=4", "--set", "eval.episodes=8")
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    evaluated = [row for row in rows if any(name.startswith("eval/") for name in row)]
    assert {"eval/a/return", "eval/b/return", "eval/runner/return"} <= set(evaluated[-1])


@pytest.mark.parametrize("game", ["teams", "opponents", "[random, self]", "[scripted]"])
def test_training_goes_on_to_the_same_bits(game, teams, recurrent, tmp_path):
    other = train(tmp_path / "other", *ROLES)
    listed = game if game[0] == "[" else f"[{other}, {recurrent}, '{teams}:runner', {other}/checkpoints/best, self]"
    policies = TEAMS if game == "teams" else [*ROLES, "--set", f"opponents.runner={listed}"]
    whole = train(tmp_path / "whole", *policies, steps=640)
    half = tmp_path / "half"
    shutil.copytree(whole, half, symlinks=True)
    for late in ("00000006", "00000008", "00000010"):
        shutil.rmtree(half / "checkpoints" / late)
    shutil.rmtree(half / "weights")
    if game == "opponents":  # the other run learns more: this one goes on with the weights that it began with
        output("--resume", other, "--set", "trainer.total_steps=1024", "--allow_drift", "--quiet")
    output("--resume", half / "checkpoints" / "00000004", "--quiet")
    assert weights(half) == weights(whole)
    newest = [load_file(run / "checkpoints" / "00000010" / "replicas.safetensors") for run in (half, whole)]
    assert {name: value.tobytes() for name, value in newest[0].items()} == {name: value.tobytes() for name, value in newest[1].items()}


def test_any_number_of_workers_draws_the_same_opponents(recurrent, tmp_path):
    def players(workers):
        folder = train(tmp_path / str(workers), *ROLES, "--set", f"opponents.runner=[{recurrent}]", "--num_workers", workers, steps=640)
        return [load_file(folder / "checkpoints" / name / "replicas.safetensors")["runner/opponent"] for name in ("00000002", "00000006", "00000010")]

    one, two, four = players(1), players(2), players(4)
    assert len(numpy.unique(numpy.stack(one))) == 2
    for other in (two, four):
        assert all((a == b).all() for a, b in zip(one, other))


@pytest.mark.parametrize("listed", ["random", "scripted"])
def test_any_number_of_workers_plays_the_same_first_rollout(listed, tmp_path):
    def state(workers):
        folder = train(tmp_path / str(workers), *ROLES, "--set", f"opponents.runner=[{listed}]", "--set", "policy.runner.to_train=false",
                       "--num_workers", workers, steps=64)
        return load_file(folder / "checkpoints" / "latest" / "replicas.safetensors")["blocks"]

    one = state(1)
    assert (one == state(2)).all() and (one == state(4)).all()


def test_a_run_plays_against_another(teams, recurrent, tmp_path):
    result = evaluate(teams, "--policy", f"runner={recurrent}")
    assert result["players"]["runner"] == str(recurrent)
    best = evaluate(teams, "--policy", f"runner={recurrent}/checkpoints/best")
    assert best["returns"].keys() == result["returns"].keys()
    # A run plays against itself as it plays: the same policies on the same starts.
    assert evaluate(teams, "--policy", f"a={teams}:a", "--policy", f"runner={teams}")["returns"] == evaluate(teams)["returns"]
    played = json.loads(output("play", teams, "-o", "-", "--device", "cpu", "--policy", f"runner={recurrent}"))["episodes"][0]
    assert played["players"]["runner"] == str(recurrent) and len(played["roles"]["runner"]["value"]) > 0


def test_players_that_cannot_be_are_refused(teams, tmp_path):
    cartpole = tmp_path / "cartpole"
    output("--env", "cartpole", "--run_dir", cartpole, "--total_steps", 1024, "--device", "cpu", "--quiet")

    def refusal(*arguments):
        done = wdtrain("eval", teams, "--device", "cpu", *arguments)
        assert done.returncode == 2
        return done.stderr.strip()

    assert refusal("--policy", "runner=runs/nowhere") == \
        "error: --policy runner=runs/nowhere: is none of self, random, scripted, and no folder of a run or a checkpoint"
    assert refusal("--policy", "runer=random") == "error: --policy runer=random: no role or policy 'runer'; did you mean \"runner\"?"
    assert refusal("--policy", f"runner={cartpole}") == f"error: --policy runner={cartpole}: is a run of cartpole, and this game is tag_gridworld"
    assert refusal("--policy", f"runner={teams}:c") == f"error: --policy runner={teams}:c: there is no policy 'c', but a, b, runner"


LISTED = [*ROLES, "--set", "saving.checkpoint_freq=4"]


def kept(run, number=1):
    """Weights and origin of an opponent in the newest checkpoint."""
    with safe_open(run / "checkpoints" / "latest" / "opponents" / f"runner.{number}.safetensors", "numpy") as file:
        return file.get_tensor(f"{number}/layers.0.weight").tobytes(), file.metadata()


def first_layer(run):
    return load_file(run / "weights" / "runner.safetensors")["layers.0.weight"].tobytes()


def test_a_list_that_changes_plays_whom_it_names(tmp_path):
    one, two = (train(tmp_path / str(seed), *ROLES, "--set", f"trainer.seed={seed}") for seed in (1, 2))
    run = train(tmp_path / "run", *LISTED, "--set", f"opponents.runner=[self, {one}]")
    weights_of_one, origin = kept(run)
    assert weights_of_one == first_layer(one)
    assert {name: origin[name] for name in ("path", "source", "policy")} == {"path": str(one), "source": str(one), "policy": "runner"}

    def go_on(listed, steps):
        output("--resume", run, "--allow_drift", "--quiet", "--total_steps", steps, "--set", f"opponents.runner={listed}")
        return load_file(run / "checkpoints" / "latest" / "replicas.safetensors")["runner/opponent"]

    assert set(go_on(f"[{two}, {one}]", 768)) <= {0, 1, 2}
    assert kept(run)[0] == first_layer(two) and kept(run, 2) == (weights_of_one, origin)
    assert set(go_on(f"[self, {two}]", 1024)) <= {0, 1}
    assert kept(run)[0] == first_layer(two) and not (run / "checkpoints/latest/opponents/runner.2.safetensors").exists()


def test_a_run_goes_on_without_the_folders_of_its_opponents(tmp_path):
    other = train(tmp_path / "other", *ROLES)
    run = train(tmp_path / "run", *LISTED, "--set", f"opponents.runner=[{other}]", "--num_workers", 2)
    before = kept(run)
    other.rename(tmp_path / "moved")
    output("--resume", run, "--quiet", "--total_steps", 768, cwd=tmp_path / "moved")
    assert kept(run) == before
    done = wdtrain("--resume", run, "--quiet", "--allow_drift", "--total_steps", 1024, "--set", f"opponents.runner=[{other}, {tmp_path}/nowhere]")
    assert done.returncode == 2 and f"{tmp_path}/nowhere: is none of self, random, scripted, and no folder" in done.stderr


def test_a_list_with_memory_and_a_list_that_begins_or_ends_are_refused(recurrent, tmp_path):
    other = train(tmp_path / "other", *ROLES)
    run = train(tmp_path / "run", *LISTED, "--set", f"opponents.runner=[self, {recurrent}]")

    def refusal(folder, setting):
        done = wdtrain("--resume", folder, "--quiet", "--allow_drift", "--total_steps", 1024, "--set", setting)
        assert done.returncode == 2 and "(--warm_start)" in done.stderr
        return done.stderr

    assert f"{recurrent}: remembers what it saw" in refusal(run, f"opponents.runner=[self, {other}]")
    assert "made with opponents cannot go on without" in refusal(run, "opponents.runner=[self]")
    assert "made without opponents cannot go on with some" in refusal(other, f"opponents.runner=[{run}]")


def test_an_opponent_may_have_played_another_role_with_the_same_spaces(tmp_path):
    game = ["--env", "simple_adversary", "--device", "cpu", "--quiet", "--num_envs", 4, "--train_batch_size", 64, "--total_steps", 128]
    output(*game, "--set", "policy={a: {agents: [agent 0]}, b: {agents: [agent 1]}, adversary: {}}", "--run_dir", tmp_path / "one")
    for listed, code in ((f"opponents.b=['{tmp_path}/one:a']", 0), (f"opponents.adversary=['{tmp_path}/one:a']", 2)):
        done = wdtrain(*game, "--set", "policy={a: {agents: [agent 0]}, b: {agents: [agent 1]}, adversary: {}}", "--set", listed, "--run_dir", tmp_path / str(code))
        assert done.returncode == code, done.stderr


def test_one_policy_for_two_roles_keeps_one_unless_it_learns_a_value_of_all(teams):
    for algorithm, code in (("PQN", 0), ("PQN-VDN", 2)):
        done = wdtrain(*SMALL, "--set", f"policy={{both: {{roles: [tagger, runner], algorithm: {algorithm}}}}}", "--set", f"opponents.both=['{teams}:a']", "--print_config")
        assert done.returncode == code, done.stderr
    assert "acts for tagger and runner" in done.stderr and "give each role a policy of its own" in done.stderr


def test_reproduce_names_the_opponent_that_changed(tmp_path):
    other = train(tmp_path / "other", *ROLES)
    run = train(tmp_path / "run", *LISTED, "--set", f"opponents.runner=[self, {other}/checkpoints/latest]")
    output("reproduce", run)
    output("--resume", other, "--quiet", "--total_steps", 768)
    shutil.rmtree(tmp_path / "run-again")
    done = wdtrain("reproduce", run)
    assert done.returncode == 1 and f"opponents.runner: {other}/checkpoints/latest: then " in done.stderr and "please report it" not in done.stderr


def printed(*arguments):
    return yaml.safe_load(output(*SMALL, *arguments, "--print_config"))


def test_warpdrives_map_of_agents_is_read(tmp_path):
    (tmp_path / "run.yaml").write_text(
        "name: tag_gridworld\nenv: {num_taggers: 4}\n"
        "policy_tag_to_agent_id_map: {odd: [1, 3], even: [0, 2], runner: [4]}\n"
        "policy: {odd: {algorithm: PPO}, even: {algorithm: A2C}, runner: {}}\n")
    policies = yaml.safe_load(output("--config", tmp_path / "run.yaml", "--print_config"))["policy"]
    assert {name: (policy["agents"], policy["roles"]) for name, policy in policies.items()} == \
        {"odd": (["1", "3"], ["tagger"]), "even": (["0", "2"], ["tagger"]), "runner": (["4"], ["runner"])}
    output("--config", tmp_path / "run.yaml", "--run_dir", tmp_path / "run", "--total_steps", 100, "--num_envs", 4, "--train_batch_size", 40,
           "--device", "cpu", "--quiet")
    assert set(weights(tmp_path / "run")) == {"odd.safetensors", "even.safetensors", "runner.safetensors"}


def test_a_printed_configuration_reads_back(teams):
    once = output(*SMALL, *TEAMS, "--set", f"opponents.runner=[self, random, {{run: {teams}, share: 0.2}}]", "--print_config")
    again = yaml.safe_load(once)
    assert again["opponents"] == {"a": [], "b": [], "runner": ["self", "random", {"player": str(teams), "share": 0.2}]}
    assert again["policy"]["a"]["agents"] == ["tagger 0", "tagger 2-3"]
    file = teams / "printed.yaml"
    file.write_text(once)
    assert yaml.safe_load(output("--config", file, "--print_config")) == again


def test_opponents_that_cannot_be_are_refused_before_training(teams, tmp_path):
    def refusal(setting, *more):
        done = wdtrain(*SMALL, *TEAMS, "--set", setting, *more, "--print_config")
        assert done.returncode == 2
        return done.stderr.strip()

    assert refusal("opponents.runner=[runs/nowhere]") == \
        "error: --set: opponents.runner = [runs/nowhere]: runs/nowhere: is none of self, random, scripted, and no folder of a run or a checkpoint"
    assert refusal("opponents.runner=[scriptd]").endswith('did you mean "scripted"?')
    assert refusal("opponents.runner=[{player: random, share: 1.5}]") == "error: --set: opponents.runner.share = 1.5: must be in (0, 1]"
    assert "the shares add up to 1, which leaves nothing for players without a share" in refusal("opponents.runner=[{player: random, share: 1}]")
    assert "the shares add up to 0.5, and not to 1" in refusal("opponents.runner=[{player: random, share: 0.5}]", "--set", "policy.runner.to_train=false")
    assert 'opponents.runner.shar: unknown key; did you mean "share"?' in refusal("opponents.runner=[{player: random, shar: 1}]")
    assert "must name a player" in refusal("opponents.runner=[{share: 0.5}]")
    done = wdtrain("--env", "cartpole", "--set", "opponents.shared=[scripted]", "--print_config")
    assert "opponents.shared = [scripted]: environment cartpole has no scripted player" in done.stderr
    unsaved = shutil.copytree(teams, tmp_path / "unsaved", symlinks=True)
    shutil.rmtree(unsaved / "weights")
    assert refusal(f"opponents.runner=[{unsaved}]").endswith(f"has not saved weights: name {unsaved}/checkpoints/latest")
    (unsaved / "weights").mkdir()
    (unsaved / "weights" / "runner.safetensors").write_bytes(b"\x00" * 300)
    assert f"{unsaved}/weights/runner.safetensors: " in refusal(f"opponents.runner=[{unsaved}]")
    assert 'opponents.tagger: unknown key' in refusal(f"opponents.tagger=[{teams}]")
    assert "must be a list of players" in refusal(f"opponents.runner={teams}")
