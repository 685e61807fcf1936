"""`wdtrain trace` plays a script until the episode ends, and rejects invalid scripts."""

import json

import numpy as np
import pytest

from cli.program import output, wdtrain

SMALL = ["--set", "env.num_taggers=1", "--set", "env.num_runners=2", "--set", "env.episode_length=5", "--set", "env.grid_length=20"]


def trace(tmp_path, script, *arguments):
    (tmp_path / "in.json").write_text(json.dumps(script))
    output("trace", "--script", tmp_path / "in.json", "--out", tmp_path / "out.json", *arguments)
    return json.loads((tmp_path / "out.json").read_text())


def error(tmp_path, text, *arguments):
    (tmp_path / "in.json").write_text(text)
    done = wdtrain("trace", "--script", tmp_path / "in.json", "--out", tmp_path / "out.json", *arguments)
    assert done.returncode == 2, done
    assert not (tmp_path / "out.json").exists()
    return done.stderr


def test_given_state_actions_and_rows(tmp_path):
    state = {"x": [1, 10.1, 5], "y": [1, 10, 5], "speed": [0, 1, 0.5], "direction": [0, 0, 0]}
    played = trace(tmp_path, {"state": state, "actions": [[[0, 0], [0, 0], [0, 0]]] * 2}, "--env", "tag_continuous", *SMALL)
    assert played["environment"] == "tag_continuous"
    assert played["agents"] == [{"id": 0, "role": "tagger"}, {"id": 1, "role": "runner"}, {"id": 2, "role": "runner"}]
    start, first, second = played["steps"]
    assert [step["t"] for step in played["steps"]] == [0, 1, 2]
    assert start["state"]["x"] == [1, 10.1, 5]
    assert "rewards" not in start
    assert np.float32(first["state"]["x"][1]) == np.float32(10.1) + np.float32(1)
    assert first["state"]["x"][2] == 5.5
    assert first["active"] == [True, True, True]
    assert np.shape(first["observations"]) == (3, 7 * 2 + 1)
    assert not second["terminated"] and not second["truncated"]


def test_it_ends_with_the_episode(tmp_path):
    played = trace(tmp_path, {"actions": [[[0, 0]] * 3] * 9}, "--env", "tag_continuous", *SMALL)
    assert len(played["steps"]) == 6
    assert [step["terminated"] for step in played["steps"][1:]] == [False] * 4 + [True]
    assert played["steps"][-1]["observations"][0][-1] == 1  # t / T


def test_a_tagged_runner_is_out_after_the_step(tmp_path):
    state = {"x": [1, 1.01, 9], "y": [1, 1, 9]}
    played = trace(tmp_path, {"state": state, "actions": [[[0, 0]] * 3]}, "--env", "tag_continuous", *SMALL)
    assert played["steps"][1]["active"] == [True, False, True]
    assert played["steps"][1]["rewards"][1] < 0 < played["steps"][1]["rewards"][0]


@pytest.mark.parametrize("landmarks", [0, 1, 9])
def test_an_array_has_its_own_count(landmarks, tmp_path):
    given = {"landmark_x": [i / 8 for i in range(landmarks)], "landmark_y": [i / 4 for i in range(landmarks)]}
    for state in ({}, given):
        steps = trace(tmp_path, {"state": state, "actions": [[0] * 4] * 2}, "--env", "simple_tag", "--set", f"env.num_landmarks={landmarks}")["steps"]
        for step in steps:
            assert len(step["state"]["landmark_x"]) == landmarks and len(step["state"]["x"]) == 4
            assert {name: step["state"][name] for name in state} == state
            assert len(step["observations"][3]) == 4 + 2 * landmarks + 6


def test_without_a_state_the_seed_decides(tmp_path):
    starts = [trace(tmp_path, {"actions": []}, "--env", "cartpole", "--seed", seed)["steps"][0] for seed in (1, 1, 2)]
    assert starts[0] == starts[1] != starts[2]


def test_one_agent_needs_no_list(tmp_path):
    plain = trace(tmp_path, {"state": {"theta": 0.1, "theta_dot": [0]}, "actions": [0.5, -3]}, "--env", "pendulum")
    nested = trace(tmp_path, {"state": {"theta": [0.1], "theta_dot": 0}, "actions": [[0.5], [[-3.0]]]}, "--env", "pendulum")
    assert plain == nested
    assert len(plain["steps"]) == 3


def test_numbers_read_back_to_the_same_bits(tmp_path):
    played = trace(tmp_path, {"actions": [[0]]}, "--env", "cartpole")
    for step in played["steps"]:
        assert [np.float32(value) for value in step["observations"][0]] == [
            np.float32(step["state"][name][0]) for name in ("x", "x_dot", "theta", "theta_dot")]


def test_rows_are_shown_as_they_are_stored(tmp_path):
    script = {"actions": [[0]] * 3}
    exact, stored = (trace(tmp_path, script, "--env", "cartpole", "--set", f"trainer.precision={p}")["steps"] for p in ("fp32", "bf16"))
    assert [step["state"] for step in stored] == [step["state"] for step in exact]
    bits = np.array([step["observations"] for step in exact], np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)
    assert np.array_equal(np.array([step["observations"] for step in stored], np.float32), rounded)
    assert not np.array_equal(bits.view(np.float32), rounded)


def test_stdout(tmp_path):
    (tmp_path / "in.json").write_text('{"actions": [1]}')
    text = output("trace", "--env", "cartpole", "--script", tmp_path / "in.json", "--out", "-")
    assert len(json.loads(text)["steps"]) == 2


TAG = ["--env", "tag_continuous", *SMALL]
WRONG = {
    "not JSON": ("{", ["--env", "cartpole"], "in.json: is not JSON: parse error at line 1, column 2"),
    "not an object": ("[]", ["--env", "cartpole"], "must be an object"),
    "unknown key": ('{"action": []}', ["--env", "cartpole"], 'did you mean "actions"?'),
    "no actions": ("{}", ["--env", "cartpole"], '"actions" must be a list'),
    "unknown field": ('{"state": {"teta": 1}, "actions": []}', ["--env", "cartpole"], 'did you mean "theta"?'),
    "field of wrong size": ('{"state": {"x": [1, 2]}, "actions": []}', TAG, "in.json: state: state field 'x' has 2 values, but the environment has 3 agents"),
    "array of wrong size": ('{"state": {"landmark_x": [1, 2, 3, 4]}, "actions": []}', ["--env", "simple_tag"],
                            "in.json: state: state field 'landmark_x' is given 4 values, but its array has 2"),
    "number instead of an array": ('{"state": {"landmark_x": 1}, "actions": []}', ["--env", "simple_tag"], "is given 1 values, but its array has 2"),
    "values of an empty array": ('{"state": {"landmark_x": [1]}, "actions": []}', ["--env", "simple_tag", "--set", "env.num_landmarks=0"], "its array has 0"),
    "action out of range": ('{"actions": [[0], [2]]}', ["--env", "cartpole"], "step 2, agent 0 (cart): 2 must be a whole number in [0, 1]"),
    "fraction": ('{"actions": [[0.5]]}', ["--env", "cartpole"], "step 1, agent 0 (cart): 0.5 must be a whole number in [0, 1]"),
    "one head missing": ('{"actions": [[[0, 0], [0], [0, 0]]]}', TAG, "step 1, agent 1 (runner): [0] must be a list of 2 numbers"),
    "one agent missing": ('{"actions": [[[0, 0], [0, 0]]]}', TAG, "step 1: must be a list of 3 actions, one an agent, not 2 of them"),
    "second head": ('{"actions": [[[0, 0], [0, 0], [0, 99]]]}', TAG, "step 1, agent 2 (runner), number 1: 99 must be"),
    "text": ('{"actions": [["left"]]}', ["--env", "pendulum"], 'step 1, agent 0 (pendulum): "left" must be a finite number'),
    "too large": ('{"actions": [[1e39]]}', ["--env", "pendulum"], "must be a finite number"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_scripts_are_refused(case, tmp_path):
    text, arguments, message = WRONG[case]
    assert message in error(tmp_path, text, *arguments)
