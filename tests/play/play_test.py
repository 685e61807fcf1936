"""`wdtrain play`: what is recorded is what `trace` computes from the recorded actions, what `eval` counts, and
what numpy computes from the weights."""

import json
import os
import subprocess

import numpy as np
import pytest
from safetensors.numpy import load_file

from cli.program import output, wdtrain
from run_report.folders import content

TAG = ["--env", "tag_continuous", "--device", "cpu", "--quiet", "--set", "env.num_taggers=2", "--set", "env.num_runners=5",
       "--set", "env.episode_length=40", "--set", "env.tagging_distance=0.1", "--num_envs", 8, "--train_batch_size", 160,
       "--total_steps", 160]


def trained(folder, *arguments):
    output(*arguments, "--run_dir", folder)
    return folder


@pytest.fixture(scope="module")
def tag_run(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("runs") / "tag", *TAG)


@pytest.fixture(scope="module")
def cartpole_run(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("runs") / "cartpole", "--env", "cartpole", "--total_steps", 1024, "--device", "cpu", "--quiet")


def play(run, *arguments):
    return json.loads(output("play", "--run", run, "--device", "cpu", "--out", "-", *arguments))


def trace(folder, run, script):
    (folder / "script.json").write_text(json.dumps(script))
    output("trace", "--config", run / "config.yaml", "--device", "cpu", "--script", folder / "script.json", "--out", folder / "out.json")
    return json.loads((folder / "out.json").read_text())["steps"]


def by_agent(rollout, episode, name, step, per_agent=1):
    """Values of all agents, role after role."""
    values = [episode["roles"][role["name"]][name][step] for role in rollout["roles"]]
    return np.concatenate([np.reshape(v, (-1, per_agent)) for v in values])


@pytest.mark.parametrize("players", [[], ["--policy", "runner=scripted"], ["--opponent", "random"]])
def test_recorded_actions_lead_to_the_recorded_states_and_rewards(tag_run, tmp_path, players):
    rollout = play(tag_run, "--episodes", 2, *players)
    for episode in rollout["episodes"]:
        script = {"state": {name: frames[0] for name, frames in episode["state"].items()},
                  "actions": [by_agent(rollout, episode, "action", t, 2).astype(int).tolist() for t in range(episode["steps"])]}
        steps = trace(tmp_path, tag_run, script)
        assert len(steps) == episode["steps"] + 1 and episode["whole"]
        for t, step in enumerate(steps):
            for name, values in step["state"].items():
                assert np.array_equal(np.float32(values), np.float32(episode["state"][name][t])), (t, name)
            if t > 0:
                assert np.array_equal(np.float32(step["rewards"]), np.float32(by_agent(rollout, episode, "reward", t - 1)[:, 0]))
                assert step["active"] == (by_agent(rollout, episode, "in_game", t)[:, 0] == 1).tolist()


@pytest.mark.parametrize("landmarks", [0, 6])
def test_arrays_are_recorded_and_drawn_as_often_as_they_have_values(landmarks, tmp_path):
    run = trained(tmp_path / "run", "--env", "simple_tag", "--device", "cpu", "--quiet", "--total_steps", 1, "--set", f"env.num_landmarks={landmarks}")
    rollout = play(run, "--max_steps", 5)
    fields = {field["name"]: field for field in rollout["fields"]}
    assert fields["landmark_x"] == {"name": "landmark_x", "per_agent": False, "array": True}
    assert [fields[name]["array"] for name in ("x", "tags")] == [False, False] and "force_x" not in fields
    assert [shape["objects"] for shape in rollout["drawing"]["shapes"]] == [landmarks, -1, -1]
    (episode,) = rollout["episodes"]
    assert np.shape(episode["state"]["landmark_x"]) == (6, landmarks) and np.shape(episode["state"]["x"]) == (6, 4)
    assert episode["state"]["landmark_x"][0] == episode["state"]["landmark_x"][5]
    assert len(set(episode["state"]["landmark_x"][0])) == landmarks


def test_an_opponent_is_met_by_each_role_in_turn(tag_run):
    rollout = play(tag_run, "--opponent", "scripted")
    assert [episode["players"] for episode in rollout["episodes"]] == [
        {"tagger": "trained", "runner": "scripted"}, {"tagger": "scripted", "runner": "trained"}]
    assert "probability" not in rollout["episodes"][0]["roles"]["runner"]


@pytest.mark.parametrize("seed", [1, 7])
def test_episodes_are_those_of_eval(tag_run, seed):
    rollout = play(tag_run, "--episodes", 20, "--seed", seed)
    counted = json.loads(output("eval", "--run", tag_run, "--json", "--device", "cpu", "--episodes", 20, "--seed", seed))
    assert counted["length"]["mean"] == pytest.approx(np.mean([episode["steps"] for episode in rollout["episodes"]]))
    for role in ("tagger", "runner"):
        returns = [np.sum(np.mean(episode["roles"][role]["reward"], 1)) for episode in rollout["episodes"]]
        assert counted["returns"][role]["mean"] == pytest.approx(np.mean(returns), abs=1e-6)


def test_probabilities_and_values_follow_from_the_weights(cartpole_run):
    rollout = play(cartpole_run, "--greedy")
    episode, weights = rollout["episodes"][0], load_file(cartpole_run / "weights" / "shared.safetensors")
    cart, state = episode["roles"]["cart"], episode["state"]
    rows = np.array([[state[name][t][0] for name in ("x", "x_dot", "theta", "theta_dot")] for t in range(episode["steps"])])
    layer = lambda x, name: x @ weights[f"{name}.weight"].T.astype(float) + weights[f"{name}.bias"]
    separate = any(name.startswith("value_layers") for name in weights)
    hidden, of_value = rows, rows
    for k in range(sum(name.startswith("layers.") for name in weights) // 2):
        hidden = np.tanh(layer(hidden, f"layers.{k}"))
        of_value = np.tanh(layer(of_value, f"value_layers.{k}")) if separate else hidden
    logits = layer(hidden, "policy_head")
    expected = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    assert np.allclose(cart["probability"], expected, atol=1e-5)
    assert np.allclose(np.ravel(cart["value"]), layer(of_value, "value_head")[:, 0], atol=1e-4)
    assert np.array_equal(np.ravel(cart["action"]), np.argmax(expected, 1))


def test_actions_of_a_box_are_those_that_the_environment_receives(tmp_path):
    run = trained(tmp_path / "pendulum", "--env", "pendulum", "--total_steps", 3200, "--device", "cpu", "--quiet")
    rollout = play(run)
    torque = np.ravel(rollout["episodes"][0]["roles"]["pendulum"]["action"])
    assert rollout["roles"][0]["actions"] == [{"name": "torque", "low": -2, "high": 2}]
    assert np.abs(torque).max() <= 2 and np.abs(torque).max() > 1
    pendulum, weights = rollout["episodes"][0]["roles"]["pendulum"], load_file(run / "weights" / "shared.safetensors")
    mean, below, above = (np.ravel(pendulum[name]) for name in ("mean", "below", "above"))
    inside = (below > -2) & (above < 2)
    assert inside.any() and np.allclose((above - below)[inside], 2 * 2 * np.exp(weights["log_std"][0]), atol=1e-5)  # in half widths of 2
    assert np.allclose((above + below)[inside], 2 * mean[inside], atol=1e-5)
    assert np.array_equal(np.ravel(play(run, "--greedy")["episodes"][0]["roles"]["pendulum"]["action"])[:1], mean[:1])
    steps = trace(tmp_path, run, {"state": {name: frames[0] for name, frames in rollout["episodes"][0]["state"].items()},
                                  "actions": [[[t]] for t in torque.tolist()]})
    assert [step["state"]["theta"][0] for step in steps] == [frame[0] for frame in rollout["episodes"][0]["state"]["theta"]]


def test_the_replica_decides_the_start(cartpole_run):
    first, second = (play(cartpole_run, "--replica", 5), play(cartpole_run, "--replica", 4, "--episodes", 2))
    assert first["episodes"][0]["state"] == second["episodes"][1]["state"]


def test_a_long_episode_can_be_cut(tag_run):
    (episode,) = play(tag_run, "--max_steps", 3)["episodes"]
    assert (episode["steps"], episode["whole"], len(episode["state"]["x"])) == (3, False, 4)


def test_a_page_is_written_into_the_run(cartpole_run, tmp_path):
    told = output("play", "--run", cartpole_run, "--device", "cpu")
    assert f"{cartpole_run}/rollout.html" in told and "browser" in told
    assert content(cartpole_run / "report.html")["runs"][0]["rollouts"] == [{"name": "rollout", "href": "rollout.html"}]
    checkpoint = cartpole_run / "checkpoints" / "latest"
    before = sorted(path.name for path in checkpoint.iterdir())
    output("play", "--run", checkpoint, "--device", "cpu", cwd=tmp_path)
    assert (tmp_path / "rollout.html").exists() and sorted(path.name for path in checkpoint.iterdir()) == before


def test_a_folder_may_have_a_name_that_is_no_utf8(cartpole_run, tmp_path):
    folder = tmp_path / os.fsdecode(b"r\xff\x1b[31m")
    folder.symlink_to(cartpole_run)
    done = subprocess.run([os.environ["WDTRAIN"], "play", "--run", folder, "--device", "cpu", "--max_steps", "3"], capture_output=True)
    assert done.returncode == 0 and b"\x1b" not in done.stdout, done.stderr
    subprocess.run([os.environ["WDTRAIN"], "eval", "--run", folder, "--device", "cpu", "--episodes", "2", "--json"], stdout=subprocess.DEVNULL, check=True)


def test_the_page_of_a_large_game_is_small(tmp_path):
    run = trained(tmp_path / "large", "--env", "tag_continuous", "--device", "cpu", "--quiet", "--set", "env.num_taggers=5", "--set",
                  "env.num_runners=100", "--set", "env.grid_length=20", "--set", "env.episode_length=500", "--num_envs", 2,
                  "--train_batch_size", 20, "--total_steps", 20)
    output("play", "--run", run, "--device", "cpu")
    assert (run / "rollout.html").stat().st_size < 3_000_000


@pytest.mark.parametrize("arguments, message", [
    (["--out", "a.avi"], "must end in .html, .gif, .mp4 or .json"),
    (["--out", "a.html", "--fps", 5], "--fps belongs to a movie"),
    (["--episodes", 0], "--episodes"),
    (["--out", "/nosuch/x.html"], "--out /nosuch/x.html: there is no folder /nosuch"),
    (["--policy", "chaser=random"], "no role or policy 'chaser'"),
])
def test_wrong_options_are_refused(tag_run, arguments, message):
    done = wdtrain("play", "--run", tag_run, "--device", "cpu", *arguments)
    assert done.returncode == 2 and message in done.stderr


def test_an_early_checkpoint_plays_beside_the_run(cartpole_run, tag_run):
    early = cartpole_run / "checkpoints" / "00000000"
    both, alone, other = (play(cartpole_run, *arguments) for arguments in (["--beside", early], [], ["--policy", f"cart={early}"]))
    assert both["beside"] is True and "beside" not in alone
    assert [both["episodes"][0]] == alone["episodes"] and [both["episodes"][1]] == other["episodes"]
    assert both["episodes"][0]["state"]["x"][0] == both["episodes"][1]["state"]["x"][0], "the same start"
    both, other = (play(tag_run, "--episodes", 2, *arguments) for arguments in (["--beside", "scripted"], ["--policy", "tagger=scripted", "--policy", "runner=scripted"]))
    assert both["episodes"][2:] == other["episodes"] and len(both["episodes"]) == 4
