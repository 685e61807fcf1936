"""untidy_test.py: games in Python that are less tidy than mpe2's train rightly, or are refused."""

import importlib.util
import itertools
import json
import math
import os
import pathlib
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

ROOT = pathlib.Path(os.environ["WD_SOURCE_DIR"])
sys.path[:0] = [str(ROOT / "tests/cli"), str(ROOT / "tests/outside"), str(pathlib.Path(os.environ["WD_BUILD_DIR"]) / "python")]

from program import output, wdtrain  # noqa: E402

import wdtrain as package  # noqa: E402

SHORT = ["--total_steps", 512, "--num_envs", 4, "--train_batch_size", 128, "-s", "env.processes=1"]


def beside_it(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / f"python/wdtrain/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


worker = beside_it("worker")


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "untidy_games.py").symlink_to(ROOT / "tests/outside/untidy_games.py")


def metrics(folder):
    return [json.loads(line) for line in pathlib.Path(folder, "metrics.jsonl").read_text().splitlines()]


def refused(*arguments):
    done = wdtrain("train", *SHORT, *arguments)
    assert done.returncode == 2, done.stderr
    return done.stderr


class Room:
    """Games that are stepped by the code of training, in arrays of their own."""

    def __init__(self, envs, statistics=(), one_role=False):
        made = [worker.Single(env) if isinstance(env, gymnasium.Env) else worker.Several(env, one_role) for env in envs]
        widths, n = worker.widths_of(made[0], statistics), len(envs)
        offsets, at = {}, 0
        for name, (dtype, several) in worker.ARRAYS.items():
            offsets[name] = at
            at += (np.dtype(dtype).itemsize * n * (widths[name] if several else 1) + 63) // 64 * 64
        self.arrays = worker.Arrays(bytearray(at), offsets, n, widths)
        self.made, self.room = made, worker.room_of(made, 0, self.arrays, statistics)

    def reset(self, seed):
        self.arrays.deeds[:], self.arrays.seeds[:] = worker.SEEDED_RESET, seed
        self.room.step()

    def step(self):
        self.arrays.deeds[:] = worker.STEP
        self.room.step()


# --- arguments ------------------------------------------------------------------------------------------------------------------------

GIVEN = [{"goal": None}, {"version": "1"}, {"flag": "true"}, {"name": "null"}, {"name": "x, y"}, {"path": ""}, {"name": "a: b"}, {"color": "#x"},
         {"words": ["1", "2"]}, {"deep": {"k": None, "l": [True, 1.0, 1]}}, {"a": False, "b": True}, {"a": 0.5, "b": 10_000, "c": 1e-7},
         {"a": math.inf, "b": -math.inf}, {"big": 2**70}, {"text": "ä \n'\"\\ {}", "True": "False"}]


def arrived(stderr):
    line = next(line for line in stderr.splitlines() if "KWARGS" in line)
    return eval(line.partition("KWARGS ")[2], {"inf": math.inf})


def same(a, b):
    return repr(a) == repr(b)


def test_arguments_keep_their_types(capfd):
    for given in GIVEN:
        package.train("untidy_games:arguments", env_params={"kwargs": given}, total_steps=4, num_envs=1, train_batch_size=4, progress=False)
        assert same(arrived(capfd.readouterr().err), given)
        for text in (f"env.kwargs={json.dumps(given)}", f"env.kwargs={json.dumps(json.dumps(given))}"):
            assert same(arrived(wdtrain("train", "--env", "untidy_games:arguments", "-s", text, "--print_config").stderr), given)
        pathlib.Path("own.yaml").write_text(f"name: untidy_games:arguments\nenv:\n  kwargs: {json.dumps(given)}\n")
        assert same(arrived(wdtrain("train", "--config", "own.yaml", "--print_config").stderr), given)
        package.make("untidy_games:arguments", kwargs=given).close()
        assert same(arrived(capfd.readouterr().err), given)
    run = max(pathlib.Path("runs").glob("*/**/config.yaml"), key=os.path.getmtime).parent
    assert same(arrived(wdtrain("eval", run, "--episodes", 1, "--json").stderr), given), "as config.yaml says them"


@pytest.mark.parametrize(("word", "value"), [("False", False), ("TRUE", True), ("None", None), ("~", None), (".5", 0.5), ("10k", 10_000), ("1_000", 1000), (".inf", math.inf),
                                             ("8m", "8m"), ("007", "007"), ("none", "none"), ("-3", -3), ("1e3", 1000.0), ("1.5k", 1500.0)])
def test_words_are_what_they_are_elsewhere_in_a_file(word, value):
    assert same(arrived(wdtrain("train", "--env", "untidy_games:arguments", "-s", f"env.kwargs={{a: {word}}}", "--print_config").stderr), {"a": value})


# --- actions --------------------------------------------------------------------------------------------------------------------------

BOXES = [spaces.Box(-bound, bound, (1,), np.float64) for bound in (0.1, 0.2, 0.3, math.pi, 9.81, 100.1, 1e30)] + [
    spaces.Box(0, np.inf, (2,), np.float32), spaces.Box(-np.inf, -1, (2, 2), np.float64), spaces.Box(np.array([-1, -np.inf]), np.array([np.inf, 0.7]), dtype=np.float64),
    spaces.Box(-0.1, 0.1, (3,), np.float16), spaces.Box(-3, 4, (2,), np.int8)]


def test_actions_lie_in_their_boxes():
    random = np.random.default_rng(1)
    for space in BOXES:
        actor = worker.Actor(space)
        if actor.heads:
            words = random.integers(0, actor.heads, (10_000, actor.width)).astype(np.int32)
        else:  # as wd::detail::within_bounds gives them: bounds are rounded to float32
            low, high = (np.array([np.inf * sign if one is None else one for one in side], np.float32) for side, sign in zip(zip(*actor.bounds, strict=True), (-1, 1), strict=True))
            scale = np.where(np.isfinite(high) & np.isfinite(low), high, 1)
            words = np.clip((3 * random.normal(size=(10_000, actor.width)) * scale).astype(np.float32), low, high).view(np.int32)
        actions = actor.read(words)
        assert len(actions) == 10_000 and all(space.contains(action) for action in actions), space


@pytest.mark.parametrize("box", ["half", "double", "huge"])
def test_what_the_program_sends_lies_in_the_space(box):
    """The game asserts that its space holds the action."""
    output("train", "--env", "untidy_games:strict", "-s", f"env.kwargs={{box: {box}}}", *SHORT, "--run_dir", "run")


def test_choices_of_dictionaries_tuples_and_whole_numbers():
    inner = {"a": spaces.Discrete(3, start=2), "b": spaces.Tuple([spaces.MultiDiscrete([2, 4]), spaces.Box(-1, 1, (2,), np.int64)]), "c": spaces.MultiBinary(2)}
    space = spaces.Dict(inner)
    actor = worker.Actor(space)
    assert actor.heads == [3, 2, 4, 3, 3, 2, 2] and not actor.bounds
    seen = set()
    for words in itertools.product(*(range(n) for n in actor.heads)):
        action = actor.read(np.array(words, np.int32))
        assert space.contains(action)
        seen.add(repr(action))
    assert len(seen) == math.prod(actor.heads)
    assert worker.Actor(spaces.Dict({"a": spaces.Box(-1, 1, (2,)), "b": spaces.Box(0, 3, (1,))})).bounds == [[-1, 1], [-1, 1], [0, 3]]
    for wrong, why in ((spaces.Tuple([spaces.Discrete(2), spaces.Box(0, 1, (1,))]), "choices and numbers at once"), (spaces.Discrete(2**32 + 2), "may have"),
                       (spaces.Box(-(2**62), 2**62, (1,), np.int64), "smaller bounds"), (spaces.Text(3), "is a Text")):
        with pytest.raises(worker.RefusedError, match=why):
            worker.Actor(wrong)
    output("train", "--env", "untidy_games:strict", "-s", "env.kwargs={box: parts}", *SHORT, "--run_dir", "run")


# --- ends, states, masks --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stay", ["all", "one"])
def test_agents_that_have_ended_and_stay(stay):
    """Ten steps an episode; an agent that ends in step 4 and stays in `agents` does not come back."""
    output("train", "--env", "untidy_games:trio", "-s", f"env.kwargs={{stay: {stay}}}", *SHORT, "--run_dir", "run")
    last = metrics("run")[-1]
    assert last["a/recent_return"] == pytest.approx(10 if stay == "all" else (10 + 10 + 4) / 3) and last["a/episode_length"] == 10


def test_a_state_is_asked_for_where_it_exists_and_is_read():
    name = ["--env", "untidy_games:trio", "-s", "env.kwargs={state: living}", *SHORT]
    output("train", *name, "--run_dir", "unread")
    done = wdtrain("train", *name, "-s", "env.kwargs={state: never}", "--run_dir", "never")
    assert done.returncode == 0, "nobody reads it"
    output("train", *name, "--algorithm", "MAPPO", "--run_dir", "read")
    assert package.Run("read").config["policy"]["a"]["model"]["critic_reads"] == ["observation", "state", "agent_id"]
    broken = wdtrain("train", *name, "-s", "env.kwargs={state: never}", "--algorithm", "MAPPO", "--run_dir", "broken")
    assert broken.returncode == 1 and "there is no state" in broken.stderr
    output("eval", "read", "--episodes", 4)
    large = wdtrain("train", "--env", "untidy_games:trio", "-s", "env.kwargs={state: large}", *SHORT, "--algorithm", "IPPO", "--run_dir", "large")
    assert large.returncode == 0, large.stderr
    needed = wdtrain("train", "--env", "untidy_games:trio", "-s", "env.kwargs={state: large}", *SHORT, "--algorithm", "IPPO", "--dry_run")
    assert needed.returncode != 0 or "GiB" not in needed.stdout


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_method_action_masks_is_used(wrapped):
    """The game raises if the choice is illegal."""
    more = ["-s", "env.wrappers=[gymnasium.wrappers.RecordEpisodeStatistics, untidy_games.Plain]"] if wrapped else []
    output("train", "--env", "untidy_games:masks", *SHORT, *more, "--run_dir", "run")
    assert "each with a legal choice" in output("check", "--env", "untidy_games:masks")


# --- spaces and agents that do not fit ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("how", "why"), [
    ("other_action", "has other spaces than the environment that was made first"),
    ("other_observation", "has other spaces than the environment that was made first"),
    ("one_object", "an environment that it has returned before"),
    ("huge", "4,294,967,298 choices"),
    ("huge_observation", "has 1,099,511,627,776 numbers"),
    ("twice", "possible_agents names an agent twice"),
    ("unknown", "is in `agents`, and not in possible_agents"),
    ("only_observation", "reset() returns a ndarray, and must return 2 values"),
])
def test_what_does_not_fit_is_refused(how, why):
    assert why in refused("--env", "untidy_games:unfit", "-s", f"env.kwargs={{how: {how}}}")


def test_another_process_with_other_spaces_is_refused():
    assert "has other spaces" in refused("--env", "untidy_games:unfit", "-s", "env.kwargs={how: by_process}", "-s", "env.processes=2")


@pytest.mark.parametrize(("how", "why"), [
    ("later", "agent 'stranger' is in `agents`, and not in possible_agents"),
    ("rllib", "terminations have '__all__', which is RLlib's form"),
    ("no_reward", "rewards lack 'a_1': give every agent that plays its entry"),
    ("text_reward", "the reward is '1'"),
    ("endless_reward", "raised in replica 0, agent a_1: ValueError: the reward is 1000"),
    ("four", "step() returns 4 values, and must return 5 values"),
    ("texts", "an array of <U3, and must be one of numbers"),
])
def test_what_a_step_returns_wrongly_is_named(how, why):
    done = wdtrain("train", "--env", "untidy_games:unfit", "-s", f"env.kwargs={{how: {how}}}", *SHORT)
    assert done.returncode == 1 and why in done.stderr, done.stderr


def test_a_long_limit_is_none():
    assert "time_limit" in output("train", "--env", "untidy_games:unfit", "-s", "env.kwargs={how: limit}", *SHORT, "--print_config")


# --- info, wrappers, other forms ------------------------------------------------------------------------------------------------------


def test_numbers_of_info_are_statistics():
    """The game says in every step how often action 1 was chosen, and at its end whether it was often."""
    room = Room([worker_game() for _ in range(3)], ["ones", "is_success", "text"])
    random = np.random.default_rng(3)
    room.reset(range(3))
    counts = np.zeros(3)
    for t in range(1, 11):
        room.arrays.actions[:, 0] = random.integers(0, 2, 3)
        counts += room.arrays.actions[:, 0]
        room.step()
        assert np.array_equal(room.arrays.statistics[:, 0], counts.astype(np.float32)) and np.isnan(room.arrays.statistics[:, 2]).all()
        assert np.array_equal(room.arrays.statistics[:, 1], counts > 5) if t == 10 else np.isnan(room.arrays.statistics[:, 1]).all()
    wrapped = ["-s", "env.wrappers=[gymnasium.wrappers.RecordEpisodeStatistics]"]
    output("train", "--env", "untidy_games:counts", *SHORT, *wrapped, "-s", "eval.every=1", "-s", "eval.episodes=8", "-s", "trainer.staggered_resets=false", "--run_dir", "run")
    lines = metrics("run")
    assert all(0 <= line["env/ones"] <= 10 and 0 <= line["env/is_success"] <= 1 for line in lines if line["env/ones"] is not None)
    assert lines[-1]["env/ones"] == pytest.approx(lines[-1]["agent/mean_return"]), "it pays 1 for action 1"
    assert not any("episode" in name and name.startswith("env/") for name in lines[-1] if name != "env/episodes")
    assert "eval/env/is_success" in lines[-1]
    found = json.loads(output("eval", "run", "--episodes", 20, "--json"))
    assert found["statistics"]["ones"]["mean"] == pytest.approx(found["returns"]["agent"]["mean"]) and found["statistics"]["is_success"]["mean"] is not None
    output("train", "--env", "untidy_games:counts", *SHORT, "-s", "env.statistics=[is_success]", "--run_dir", "chosen")
    assert "env/ones" not in metrics("chosen")[-1] and "env/is_success" in metrics("chosen")[-1]


def worker_game():
    sys.path.insert(0, str(ROOT / "tests/outside"))
    import untidy_games

    return untidy_games.counts()


def test_statistics_of_agents_are_of_their_last_steps():
    """Agent a_2 leaves in step 4; each says the step of its info."""
    output("train", "--env", "untidy_games:trio", "-s", "env.kwargs={stay: gone}", *SHORT, "-s", "trainer.staggered_resets=false", "--run_dir", "run")
    assert metrics("run")[-1]["env/step"] == pytest.approx((10 + 10 + 4) / 3)


def test_an_agent_without_info_says_nothing():
    output("train", "--env", "untidy_games:trio", "-s", "env.kwargs={silent: true}", *SHORT, "-s", "trainer.staggered_resets=false", "--run_dir", "run")
    assert metrics("run")[-1]["env/step"] == 10, "the mean of the two that say it"


def test_games_in_tuples_are_games_of_agents():
    run = ["--env", "untidy_games:listed", *SHORT, "--run_dir", "run"]
    output("train", *run, "--algorithm", "VDN")
    config = package.Run("run").config
    assert list(config["policy"]) == ["agent"] and metrics("run")[-1]["agent/recent_return"] == pytest.approx(7), "each is paid its number and 1 a step"
    assert "2 agents" in output("envs", "untidy_games:listed")


def test_wrappers_by_name():
    assert "3 numbers" not in output("envs", "untidy_games:counts")
    shown = output("envs", "untidy_games:counts", "-s", "env.wrappers=[untidy_games.Plain, untidy_games.Longer]")
    assert "3" in shown
    assert "env.wrappers: 'untidy_games.Nothing' is not found" in refused("--env", "untidy_games:counts", "-s", "env.wrappers=[untidy_games.Nothing]")


@pytest.mark.parametrize(("name", "hint"), [("CartPole-v1", "Gymnasium's is gym:CartPole-v1"), ("gym:Warehouse-v0", "gym:MODULE:ID")])
def test_names_of_gymnasium_are_explained(name, hint):
    assert hint in refused("--env", name)


def test_rollouts_have_the_usual_shape_of_their_algorithm():
    for algorithm, envs, steps in (("PPO", 16, 128), ("A2C", 64, 8), ("PQN", 64, 32), ("DQN", 8, 8)):
        lines = 5000 if algorithm == "DQN" else 1
        text = output("train", "--env", "gym:CartPole-v1", "--algorithm", algorithm, "--print_config")
        assert f"metrics_log_freq: {lines} " in text
        assert f"num_envs: {envs} " in text.replace("\n", " ") and f"train_batch_size: {envs * steps} " in text.replace("\n", " "), (algorithm, text)


def test_a_mixer_says_which_teams_it_makes():
    done = wdtrain("train", "--env", "untidy_games:mixed", "--algorithm", "QMIX", *SHORT, "--run_dir", "run")
    assert done.returncode == 0 and "QMIX mixes the agents of one policy, and here drone (2 agents), truck (1 agent) are teams by themselves" in done.stderr, done.stderr
    one = wdtrain("train", "--env", "untidy_games:mixed", "--algorithm", "QMIX", *SHORT, "-s", "env.one_role=true", "--run_dir", "one")
    assert one.returncode == 0 and "teams" not in one.stderr, one.stderr
    assert list(package.Run("one").config["policy"]) == ["agent"]


# --- one role of agents that differ ---------------------------------------------------------------------------------------------------


def games_of_one_role():
    from mpe2 import simple_adversary_v3, simple_reference_v3, simple_speaker_listener_v4, simple_tag_v3, simple_world_comm_v3

    import untidy_games

    return {"adversary": simple_adversary_v3.parallel_env, "reference": simple_reference_v3.parallel_env, "speaker": simple_speaker_listener_v4.parallel_env,
            "tag": simple_tag_v3.parallel_env, "world": simple_world_comm_v3.parallel_env, "mixed": untidy_games.mixed}


@pytest.mark.parametrize("name", ["adversary", "reference", "speaker", "tag", "world", "mixed"])
def test_one_role_is_what_supersuit_makes(name):
    supersuit = pytest.importorskip("supersuit")
    make = games_of_one_role()[name]
    theirs = supersuit.agent_indicator_v0(supersuit.pad_action_space_v0(supersuit.pad_observations_v0(make())), type_only=False)
    room, random = Room([make()], one_role=True), np.random.default_rng(5)
    ((role, members),) = room.made[0].roles
    agents, n = [agent for agent, *_ in members], theirs.action_space(theirs.possible_agents[0]).n
    assert role == "agent" and agents == theirs.possible_agents
    rows, masks = room.arrays.observations.reshape(len(agents), -1), room.arrays.masks.reshape(len(agents), -1)
    own = make()
    steps = 0
    for episode in range(1000):
        observations, _ = theirs.reset(seed=episode)
        room.reset(episode)
        while theirs.agents and steps < 1000:
            for k, agent in enumerate(agents):
                assert np.array_equal(rows[k], observations[agent]), (steps, agent)
                assert masks[k].tolist() == [int(choice < own.action_space(agent).n) for choice in range(n)]
            actions = {agent: int(random.integers(0, own.action_space(agent).n)) for agent in agents}
            room.arrays.actions[0] = [actions[agent] for agent in agents]
            observations, rewards, terminations, truncations, _ = theirs.step(actions)
            room.step()
            steps += 1
            assert np.allclose(room.arrays.rewards[0], [rewards[agent] for agent in agents])
            assert bool(room.arrays.terminated[0]) == all(terminations.values()) and bool(room.arrays.truncated[0]) == (not all(terminations.values()) and any(truncations.values()))
        if steps >= 1000:
            return


def test_choices_that_pad_are_never_made():
    """The game raises if an agent makes a choice that it does not have."""
    for algorithm in ("MAPPO", "VDN", "PPO"):
        output("train", "--env", "untidy_games:mixed", "--algorithm", algorithm, *SHORT, "-s", "env.one_role=true", "--run_dir", algorithm)
        output("eval", algorithm, "--episodes", 8)
    assert "are one policy" not in output("check", "--env", "untidy_games:mixed", "-s", "env.one_role=true")


@pytest.mark.parametrize(("how", "why"), [("other_action", "two environments have different spaces"), ("one_object", "returns the same environment twice"),
                                          ("rllib", "missing in terminations"), ("unknown", "is in `agents`, and not in possible_agents"), ("huge", "4,294,967,298 choices")])
def test_check_finds_it_too(how, why):
    done = wdtrain("check", "--env", "untidy_games:unfit", "-s", f"env.kwargs={{how: {how}}}")
    assert done.returncode == 1 and why in done.stdout, done.stdout
