"""`wdtrain envs` lists the environments and prints their own descriptions."""

import json

from cli.program import output


def test_the_list_names_every_environment():
    names = [line.split()[0] for line in output("envs").splitlines()[1:]]
    assert sorted(names) == ["acrobot", "cartpole", "continuous_mountain_car", "foraging", "memory_chain", "mountain_car", "pendulum", "simple_adversary",
                             "simple_reference", "simple_speaker_listener", "simple_spread", "simple_tag", "t_maze", "tag_continuous",
                             "tag_gridworld"]
    assert [entry["name"] for entry in json.loads(output("envs", "--json"))] == names


def test_observation_layout_covers_the_row():
    for env in json.loads(output("envs", "--json")):
        for role in env["roles"]:
            ends = [0] + [part["end"] for part in role["observation"]]
            assert [part["begin"] for part in role["observation"]] == ends[:-1]
            assert ends[-1] == role["observation_size"]


def test_tag_continuous_with_parameters():
    env = json.loads(output("envs", "tag_continuous", "--json", "--set", "env.num_taggers=3", "--set", "env.num_runners=4",
                            "--set", "env.num_turn_levels=6"))
    tagger, runner = env["roles"]
    assert (tagger["first_agent"], tagger["agents"]) == (0, 3)
    assert (runner["first_agent"], runner["agents"]) == (3, 4)
    assert tagger["observation_size"] == 7 * 6 + 1 + 5  # env.observe_self
    assert tagger["action"]["heads"] == [21, 7]
    assert env["at_time_limit"] == "terminates"
    table = env["table"]
    assert table["features"] * 6 + table["own"] == tagger["observation_size"]
    nearest = "env.use_full_observation=false"
    assert json.loads(output("envs", "tag_continuous", "--json", "--set", nearest))["table"] is None
    assert ["trainer.observations=table" in output("envs", "tag_continuous", *more) for more in ([], ["--set", nearest])] == [True, False]
    parameters = {parameter["name"]: parameter for parameter in env["parameters"]}
    assert parameters["num_taggers"]["value"] == 3
    assert parameters["num_taggers"]["default"] == 1
    assert parameters["num_taggers"]["from"] == "--set"
    assert parameters["num_taggers"]["range"] == "[1, 16384]"
    assert parameters["use_full_observation"]["value"] is True
    assert {"tags", "survival"} <= {statistic["field"] for statistic in env["statistics"]}
    assert {"x", "y", "in_game"} <= {field["name"] for field in env["state"]}


def test_arrays_have_a_count_of_their_own():
    state = {field["name"]: field for field in json.loads(output("envs", "simple_tag", "--json", "--set", "env.num_landmarks=7"))["state"]}
    assert state["landmark_x"] == {"name": "landmark_x", "type": "float", "count": 7, "per": "array"}
    assert (state["x"]["count"], state["x"]["per"]) == (4, "agent") and "force_x" not in state
    assert "landmark_x  float  array of 7" in output("envs", "simple_tag", "--set", "env.num_landmarks=7")


def test_pendulum_is_continuous_and_truncates():
    env = json.loads(output("envs", "pendulum", "--json"))
    assert env["roles"][0]["action"] == {"continuous": 1, "low": [-2.0], "high": [2.0], "names": ["torque"]}
    assert env["at_time_limit"] == "truncates"


def test_the_classic_tasks_have_the_time_limits_of_gymnasium():
    found = {env["name"]: env for env in json.loads(output("envs", "--json"))}
    limits = {name: found[name]["time_limit"] for name in ("acrobot", "mountain_car", "continuous_mountain_car")}
    assert limits == {"acrobot": 500, "mountain_car": 200, "continuous_mountain_car": 999}
    assert all(found[name]["at_time_limit"] == "truncates" for name in limits)
    assert [found[name]["roles"][0]["action"].get("heads") for name in limits] == [[3], [3], None]
    assert found["continuous_mountain_car"]["roles"][0]["action"] == {"continuous": 1, "low": [-1.0], "high": [1.0], "names": ["force"]}


def test_text_for_people():
    text = output("envs", "cartpole")
    assert "an episode truncates after 500 steps" in text
    assert "parameters (--set env.NAME=VALUE)" in text
