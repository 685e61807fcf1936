"""package_test.py: the Python package reads runs, and its policies compute what the program computes."""

import json
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import tomllib

import gymnasium
import numpy
import pandas
import pytest
import torch

from cli.program import OnDemand, output, wdtrain

ROOT = pathlib.Path(os.environ["WD_SOURCE_DIR"])
sys.path.insert(0, str(ROOT / "python"))

import wdtrain as package  # noqa: E402

TAG = ["--env", "tag_continuous", "--num_envs", 8, "--train_batch_size", 160, "--total_steps", 1600, "--set", "env.num_runners=4",
       "--set", "env.episode_length=30", "--set", "env.tagging_distance=0.1", "--set", "trainer.observations=rows",
       "--set", "env.observe_self=false"]


def crowd(model, *options):
    return [*TAG, *options, "--set", f"policy={{shared: {{algorithm: A2C, normalize_value: false, model: {{input: entities, {model}}}}}}}"]


SEES_ITSELF = ["--set", "env.observe_self=true"]
OFF_POLICY = ["--num_envs", 8, "--train_batch_size", 64, "--total_steps", 2048]
MEMORY = "batch_size: 32, replay_ratio: 1, buffer_size: 4000, learning_starts: 64"
TRAININGS = {
    "mlp": ["--env", "cartpole", "--total_steps", 20480],
    "shared_trunk": ["--env", "cartpole", "--total_steps", 4096, "--set", "policy.shared.model.separate_value=false"],
    "gru": ["--env", "cartpole", "--total_steps", 8192, "--set", "policy.shared.model={type: gru, width: 16}"],
    "gru_one": ["--env", "cartpole", "--total_steps", 4096, "--set",
                "policy.shared.model={type: gru, width: 16, separate_value: false}"],
    "mingru": ["--env", "cartpole", "--total_steps", 8192, "--set",
               "policy.shared.model={type: mingru, width: 16, fc_dims: [20, 24], activation: relu, separate_value: true}"],
    "lstm": ["--env", "pendulum", "--total_steps", 8192, "--set",
             "policy.shared.model={type: lstm, width: 16, fc_dims: [20], layer_norm: true, normalize_input: true, separate_value: true}"],
    "dqn_gru": ["--env", "cartpole", *OFF_POLICY, "--set",
                "policy={shared: {algorithm: DQN, burn_in: 2, %s, model: {type: gru, width: 16, dueling: true, sequence_length: 4}}}" % MEMORY],
    "sac_lstm": ["--env", "pendulum", *OFF_POLICY, "--set",
                 "policy={shared: {algorithm: SAC, burn_in: 2, %s, model: {type: lstm, width: 16, fc_dims: [20], layer_norm: true, sequence_length: 4}}}" % MEMORY],
    "td3_mingru": ["--env", "pendulum", *OFF_POLICY, "--set",
                   "policy={shared: {algorithm: TD3, %s, model: {type: mingru, width: 16, quantiles: 3, sequence_length: 4}}}" % MEMORY],
    "sac_choices_gru": [*TAG, "--set", "policy={shared: {algorithm: SAC, %s, model: {type: gru, width: 16, sequence_length: 4}}}" % MEMORY],
    "layer_norm": ["--env", "cartpole", "--total_steps", 8192, "--set", "policy.shared.model.layer_norm=true"],
    "gaussian": ["--env", "pendulum", "--total_steps", 8192],
    "normalized": ["--env", "pendulum", "--total_steps", 8192, "--set", "policy.shared.normalize_value=true"],
    "normalized_trunk": ["--env", "cartpole", "--total_steps", 4096, "--set", "policy.shared.normalize_value=true",
                         "--set", "policy.shared.model.separate_value=false"],
    "normalized_gru": ["--env", "cartpole", "--total_steps", 4096, "--set", "policy.shared.normalize_value=true", "--set",
                       "policy.shared.model={type: gru, width: 16, separate_value: false}"],
    "squashed": ["--env", "pendulum", "--total_steps", 8192, "--set", "policy.shared.model.distribution=squashed_gaussian"],
    "gsde": ["--env", "pendulum", "--total_steps", 8192, "--set", "policy.shared.model.distribution=gsde", "--set",
             "policy.shared.model.normalize_input=true"],
    "sac": ["--env", "pendulum", *OFF_POLICY, "--set", "policy={shared: {algorithm: SAC, %s, model: {separate_value: false, quantiles: 3, critic_dims: [32], normalize_input: true}}}" % MEMORY],
    "td3": ["--env", "pendulum", *OFF_POLICY, "--set", "policy={shared: {algorithm: TD3, %s, model: {separate_value: false, activation: tanh, layer_norm: true}}}" % MEMORY],
    "ddpg": ["--env", "pendulum", *OFF_POLICY, "--set", "policy={shared: {algorithm: DDPG, %s, model: {separate_value: false, fc_dims: []}}}" % MEMORY],
    "sac_choices": [*TAG, "--set", "policy={shared: {algorithm: SAC, %s}}" % MEMORY],
    "sac_entities": [*TAG, *SEES_ITSELF, "--set", "policy={shared: {algorithm: SAC, %s, model: {input: entities, attention: 1}}}" % MEMORY],
    "entities": crowd("nearest: 2, half_distance: 0.3, fc_dims: [32]"),
    "entities_pooled": crowd("pool: mean_max, attention: 2, separate_value: true, activation: tanh, layer_norm: true", *SEES_ITSELF),
    # With seed 1 two agents are equally far from a third up to rounding in step 22, and the order is of no account.
    "entities_table": crowd("nearest: 9, pool: max, embedding: 5", *SEES_ITSELF, "--set", "trainer.observations=table", "--seed", "2"),
    "entities_few": crowd("attention: 1", "--set", "env.use_full_observation=false", "--set", "env.num_other_agents_observed=4"),
    "standardized": ["--env", "cartpole", "--total_steps", 8192, "--set", "policy.shared.model.normalize_input=true"],
    "entities_standardized": crowd("pool: mean, normalize_input: true", *SEES_ITSELF, "--set", "trainer.observations=table"),
    "entities_gru": crowd("type: gru, width: 16, pool: mean, separate_value: true", *SEES_ITSELF),
    "entities_values": [*TAG, *SEES_ITSELF, "--set", "policy={shared: {algorithm: PQN, model: {layer_norm: false, input: entities, attention: 1}}}"],
    "dueling": [*TAG, "--set", "policy={shared: {algorithm: PQN, model: {layer_norm: false, dueling: true}}}"],
    "choices": ["--env", "tag_gridworld", "--total_steps", 8192, "--set", "policy={shared: {algorithm: PQN, model: {input: choices}}}"],
    "dueling_gru": ["--env", "cartpole", "--total_steps", 8192, "--set",
                    "policy={shared: {algorithm: PQN, model: {type: gru, width: 16, dueling: true, separate_value: false}}}"],
    "dueling_entities": [*TAG, *SEES_ITSELF, "--set",
                         "policy={shared: {algorithm: PQN, model: {dueling: true, input: entities, normalize_input: true}}}"],
    "entities_lists": ["--env", "simple_tag", "--total_steps", 8192, "--set", "env.num_adversaries=1", "--set", "env.num_good_agents=3",
                       "--set", "policy.adversary.model={input: entities, pool: mean, attention: 1}"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return OnDemand(tmp_path_factory.mktemp("runs"), lambda name, run: output(*TRAININGS[name], "--device", "cpu", "--quiet", "--run_dir", run))


@pytest.fixture(params=TRAININGS)
def run(request, folder):
    return package.Run(folder / request.param)


# --- policies -------------------------------------------------------------------------------------------------


def relative(values):
    """[agents, agents - 1]: what each agent sees of the others, in order."""
    n = len(values)
    return (values[None, :] - values[:, None])[~numpy.eye(n, dtype=bool)].reshape(n, n - 1)


def tag_observation(s, t, env):
    """What each agent of tag_continuous sees: [agents, observation_size]."""
    length, seen = env["grid_length"], s["seen"] != 0
    top, taggers = env["max_speed"], numpy.arange(len(seen)) < env["num_taggers"]
    scaled = [s["x"] / (length * 2**0.5), s["y"] / (length * 2**0.5), s["speed"] / top, s["acceleration"] / top,
              s["direction"] / (2 * math.pi)]
    others = numpy.broadcast_to(numpy.arange(len(seen)), (len(seen),) * 2)[~numpy.eye(len(seen), dtype=bool)].reshape(len(seen), -1)
    features = [relative(values) for values in scaled] + [taggers[others] * 1.0, seen[others] * 1.0]
    if not env["use_full_observation"]:
        distance = numpy.where(seen[others], numpy.hypot(relative(s["x"]), relative(s["y"])), numpy.inf)
        order = numpy.argsort(distance, 1, kind="stable")[:, : env["num_other_agents_observed"]]
        exists = numpy.isfinite(numpy.take_along_axis(distance, order, 1))
        features = [numpy.take_along_axis(values, order, 1) * exists for values in features]
    own = [numpy.full(len(seen), t / env["episode_length"])]
    if env["observe_self"]:
        own += [numpy.cos(s["direction"]), numpy.sin(s["direction"]), s["speed"] / top, 2 * s["x"] / length - 1, 2 * s["y"] / length - 1]
    return numpy.concatenate([*features, numpy.stack(own, 1)], 1) * seen[:, None]


def adversary_observation(s, env):
    """What the only adversary of simple_tag sees."""
    places = [(s["landmark_x"], s["landmark_y"]), (s["x"][1:], s["y"][1:])]
    return numpy.concatenate([[s["vx"][0], s["vy"][0], s["x"][0], s["y"][0]],
                              *(numpy.stack([x - s["x"][0], y - s["y"][0]], 1).ravel() for x, y in places),
                              [s["vx"][-1], s["vy"][-1]]])


def grid_observation(s, t, env):
    """What each agent of tag_gridworld sees of all."""
    n = len(s["x"])
    of_all = [numpy.tile(values, (n, 1)) for values in (s["x"] / env["grid_length"], s["y"] / env["grid_length"], numpy.arange(n) == n - 1)]
    return numpy.concatenate([*of_all, numpy.eye(n), numpy.full((n, 1), t / env["episode_length"])], 1)


def observations(game, state, env):
    """[steps, agents, observation_size]"""
    if game == "cartpole":
        return numpy.stack([state[name] for name in ("x", "x_dot", "theta", "theta_dot")], -1)
    if game == "pendulum":
        return numpy.stack([numpy.cos(state["theta"]), numpy.sin(state["theta"]), state["theta_dot"]], -1)
    steps = [{name: values[t] for name, values in state.items()} for t in range(len(state["x"]))]
    if game == "simple_tag":
        return numpy.stack([adversary_observation(s, env)[None] for s in steps])
    seen = grid_observation if game == "tag_gridworld" else tag_observation
    return numpy.stack([seen(s, t, env) for t, s in enumerate(steps)])


def recorded(run, *options):
    """Observations, actions, values and probabilities of one episode that the program played: [steps, agents, ...]."""
    record = json.loads(output("play", "--run", run.folder, "--out", "-", "--max_steps", 150, *options))
    episode = record["episodes"][0]
    state = {name: numpy.array(values, numpy.float64) for name, values in episode["state"].items()}
    observation = observations(record["env"], state, run.config["env"])
    agents = observation.shape[1]
    played = {name: [] for name in ("action", "value", "probability", "in_game")}
    for role in list(episode["roles"].values())[: 1 if record["env"] == "simple_tag" else None]:
        of_role = len(role["in_game"][0])
        for name, all_of in played.items():
            if name in role:
                values = numpy.array(role[name], numpy.float64)
                all_of.append(values.reshape(len(values), of_role, -1))
    return observation.astype(numpy.float32), {name: numpy.concatenate(parts, 1) for name, parts in played.items() if parts}, agents


def test_policies_compute_what_the_program_computes(run):
    observation, played, agents = recorded(run, "--greedy")
    policy = run.policy(run.policies[0])
    steps = len(played["action"])
    assert steps >= 8 and observation.shape[1:] == (agents, policy.observation_size)
    state = policy.first_state(agents)
    for t in range(steps):
        rows = torch.tensor(observation[t])
        in_game = played["in_game"][t, :, 0] != 0
        out = policy(rows, state)
        assert out.value.detach().numpy()[in_game] == pytest.approx(played["value"][t, in_game, 0], abs=2e-5, rel=1e-6, nan_ok=True)
        if policy.heads:
            ours = torch.cat(policy.probabilities(out.output), -1).detach().numpy()
            assert ours[in_game] == pytest.approx(played["probability"][t, in_game], abs=1e-5)
        action, state = policy.step(rows, state)
        theirs = played["action"][t]
        if policy.heads:  # choices that are equally likely up to rounding may change places
            of_head = [(p.gather(-1, action[:, k:k + 1]) - p.gather(-1, torch.tensor(theirs[:, k:k + 1], dtype=torch.int64)))[:, 0]
                       for k, p in enumerate(policy.probabilities(out.output))]
            assert torch.stack(of_head)[:, in_game].abs().max() < 1e-5
        else:
            assert action.numpy()[in_game] == pytest.approx(theirs[in_game], abs=1e-5)


def test_the_first_of_equally_near_things_is_read():
    things = {"count": 4, "kinds": 1, "x": [0, 2], "y": [1, 2], "heading": None, "kind": None, "presence": [8, 1], "features": [[12, 1]]}
    settings = {"own": [], "lists": [things], "nearest": 2, "half_distance": 1.0, "mean": False, "max": False, "attention": 0, "embedding": 1}
    reader = package.entities.Entities(settings, 16)
    row = torch.tensor([3.0, 4.0, 0.0, -1.0, -3.0, 4.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.1, 0.2, 0.3, 0.4])
    assert reader(row).tolist() == pytest.approx([0, 0.5, 0.4, 1, 0.6 / 6, 0.8 / 6, 0.1, 1], abs=1e-6), "thing 1 is not there"
    row[8:] = 0
    assert reader(row).tolist() == [0] * 8


def test_any_number_of_rows_at_once(run):
    policy = run.policy(run.policies[0])
    rows = torch.randn(3, 5, policy.observation_size, generator=torch.Generator().manual_seed(1))
    state = torch.randn(3, 5, policy.state_size, generator=torch.Generator().manual_seed(2))
    together = policy(rows, state)
    for i in range(3):
        for k in range(5):
            alone = policy(rows[i, k].unsqueeze(0), state[i, k].unsqueeze(0))
            for part, whole in zip(alone, together):
                assert torch.allclose(part[0], whole[i, k], atol=1e-6, equal_nan=True)


def test_masked_choices_are_never_taken(folder):
    policy = package.Run(folder / "mlp").policy()
    observation = torch.randn(500, 4)
    for legal in ([1, 0], [0, 1]):
        for greedy in (True, False):
            assert (policy.act(observation, mask=[legal], greedy=greedy) == legal.index(1)).all()


def test_sampled_actions_follow_the_distribution(folder):
    policy = package.Run(folder / "mlp").policy()
    observation = torch.tensor([0.01, 0.2, -0.03, 0.1])
    probability = policy.probabilities(policy(observation).output)[0][1].item()
    torch.manual_seed(5)
    drawn = policy.act(observation.expand(20000, 4), greedy=False).double().mean().item()
    assert abs(drawn - probability) < 4 * math.sqrt(probability * (1 - probability) / 20000)
    pendulum = package.Run(folder / "gaussian").policy()
    row = torch.tensor([1.0, 0.0, 0.0])
    actions = pendulum.act(row.expand(20000, 3), greedy=False)
    assert actions.min() >= -2 and actions.max() <= 2
    inside = (actions.abs() < 2).double().mean().item()
    mean, deviation = pendulum(row).output.item(), pendulum.log_std.exp().item()
    normal = torch.distributions.Normal(mean, deviation)
    expected = (normal.cdf(torch.tensor(1.0)) - normal.cdf(torch.tensor(-1.0))).item()
    assert abs(inside - expected) < 0.02


def test_noise_of_the_state_has_the_variance_of_the_state(folder):
    policy, weights = package.Run(folder / "gsde").policy(), package.Run(folder / "gsde").weights("shared")
    policy.low.fill_(-torch.inf)  # nothing is clipped
    deviations = []
    average = torch.tensor(weights["observation_norm"][:, 0])  # where hidden layers are nearly 0
    for row in (average, torch.tensor([-0.6, 0.8, 3.0])):
        hidden = policy.network.latent(row).detach().numpy()
        deviations.append(float(numpy.sqrt(((hidden * numpy.exp(weights["log_std"])) ** 2).sum() + 1e-6)))
        torch.manual_seed(5)
        actions = policy.act(row.expand(20000, 3), greedy=False)
        assert actions.mean().item() == pytest.approx(policy(row).output.item(), abs=0.03 * deviations[-1])
        assert actions.std().item() == pytest.approx(deviations[-1], rel=0.02)  # 4 standard deviations
    assert abs(deviations[0] / deviations[1] - 1) > 0.05, "the states have the same noise: the test shows less than it says"


def test_critics_that_remember_have_no_value_and_their_actor_draws(folder):
    policy = package.Run(folder / "sac_lstm").policy()
    assert package.Run(folder / "sac_lstm").weights()["critics.1.layers.head.0.action.weight"].shape[1] == 1
    random = torch.Generator().manual_seed(1)
    row, state = torch.randn(3, generator=random).expand(20000, 3), torch.randn(policy.state_size, generator=random).expand(20000, -1)
    out = policy(row, state)
    assert out.value.isnan().all()
    torch.manual_seed(5)
    actions, after = policy.step(row, state, greedy=False)
    drawn = (actions.double() / 2).clamp(-1 + 1e-7, 1 - 1e-7).atanh()
    deviation = policy.network.head(row[:1], state[:1])[0][0, 1].exp().item()
    assert policy.deviation(row, state=state)[0].item() == pytest.approx(deviation)
    assert drawn.std().item() == pytest.approx(deviation, rel=0.02)  # 4 standard deviations
    assert drawn.mean().item() == pytest.approx(out.output[0].item(), abs=0.03 * deviation)
    assert torch.equal(after, out.state)


def test_files_of_before_there_were_layers_around_a_memory():
    """Those of a gru had one layer of tanh before it, and did not say so."""
    cell, before, head = torch.nn.GRUCell(5, 5), torch.nn.Linear(4, 5), torch.nn.Linear(5, 3)
    parts = {"layers.input.": before, "layers.cell.": cell, "layers.head.": head}
    weights = {prefix + name: tensor.detach().numpy() for prefix, part in parts.items() for name, tensor in part.state_dict().items()}
    policy = package.policy.Policy.from_weights(weights, {"model": "gru", "observation_size": "4", "distribution": "categorical",
                                                          "action_heads": "2", "action_mask": "false", "state_size": "5"})
    rows, state = torch.randn(7, 4), torch.randn(7, 5)
    out, after = policy(rows, state), cell(before(rows).tanh(), state)
    assert torch.allclose(out.state, after, atol=1e-6)
    assert torch.allclose(torch.cat([out.output, out.value.unsqueeze(-1)], -1), head(after), atol=1e-6)


def test_the_example(folder):
    command = [sys.executable, str(ROOT / "examples" / "python" / "play_cartpole.py"), str(folder / "mlp"), "3"]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, PYTHONPATH=str(ROOT / "python")))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("3 episodes: mean return ")


def test_gymnasium_plays_it_to_the_same_return(folder):
    run = package.Run(folder / "mlp")
    policy, returns = run.policy(), []
    games = [gymnasium.make("CartPole-v1") for _ in range(60)]
    observation = numpy.stack([game.reset(seed=k)[0] for k, game in enumerate(games)])
    lengths, alive = numpy.zeros(60), numpy.ones(60, bool)
    torch.manual_seed(1)
    while alive.any():
        actions = policy.act(observation, greedy=False)[:, 0].numpy()
        for k in numpy.flatnonzero(alive):
            observation[k], reward, terminated, truncated, _ = games[k].step(int(actions[k]))
            lengths[k] += reward
            alive[k] = not (terminated or truncated)
    result = json.loads(output("eval", "--run", run.folder, "--episodes", 300, "--starts", "fresh", "--json"))
    (ours,) = result["returns"].values()
    error = math.sqrt(lengths.var() / 60 + ours["std"] ** 2 / 300)
    assert abs(lengths.mean() - ours["mean"]) < 3.5 * error


# --- runs -----------------------------------------------------------------------------------------------------


def test_metrics_are_those_of_the_file(folder):
    run = package.Run(folder / "mlp")
    metrics = run.metrics()
    expected = pandas.read_json(run.folder / "metrics.jsonl", lines=True)
    pandas.testing.assert_frame_equal(metrics, expected, check_dtype=False, rtol=1e-12)
    assert (metrics["iteration"] == range(1, len(metrics) + 1)).all()
    assert run.summary["env_steps"] == metrics["env_steps"].iloc[-1] and run.status == "finished"
    assert run.config["trainer"]["num_envs"] == 32
    assert run.policies == ["shared"] and run.metadata()["environment"] == "cartpole"


def test_checkpoints_have_their_own_weights(folder):
    run = package.Run(folder / "mlp")
    first, *_, last = run.checkpoints.values()
    assert list(run.checkpoints) == sorted(run.checkpoints)
    for name, tensor in run.weights().items():
        assert numpy.array_equal(last.weights()[name], tensor)
    assert not numpy.array_equal(first.weights()["policy_head.weight"], run.weights()["policy_head.weight"])
    assert first.policy().distribution == "categorical" and first.metadata()["iteration"] == "0"


def test_plot(folder):
    import matplotlib

    matplotlib.use("Agg")
    axes = package.Run(folder / "mlp").plot()
    (line,) = axes.get_lines()
    assert line.get_label() == "shared/recent_return" and len(line.get_xdata()) > 3
    with pytest.raises(package.RunError, match="no metric 'x'; there are: iteration, "):
        package.Run(folder / "mlp").plot("x")


def begin(folder, *options):
    command = [os.environ["WDTRAIN"], "--env", "cartpole", "--quiet", "--total_steps", "1G", "--stop_return", "none",
               "--max_seconds", "100", "--run_dir", str(folder), *options]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_a_run_that_is_killed_and_resumed_has_no_gap_and_no_repeat(tmp_path):
    folder = tmp_path / "run"
    options = ["--set", "saving.checkpoint_freq=5"]
    training = begin(folder, *options)
    while not (folder / "summary.json").exists() or len(package.Run(folder).rows()) < 13:
        assert training.poll() is None
    training.kill()
    training.wait()
    run = package.Run(folder)
    assert run.status == "killed"
    with open(folder / "metrics.jsonl", "a") as file:
        file.write('{"iteration": 99')
    assert run.rows()[-1]["iteration"] < 99, "a line that is being written"
    resumed = subprocess.Popen([os.environ["WDTRAIN"], "--resume", str(folder), "--quiet"], stderr=subprocess.DEVNULL)
    seen = []
    while len(seen) < 3:
        assert resumed.poll() is None
        if run.status == "running":
            for row in run.watch(interval=0.05):
                seen.append(row["iteration"])
                if len(seen) == 30:
                    resumed.send_signal(signal.SIGINT)
    resumed.wait()
    assert run.status == "stopped"
    assert seen == list(range(1, len(seen) + 1)) and len(seen) >= 30
    assert list(run.metrics()["iteration"]) == seen


def test_finding_runs(folder):
    assert (folder / "mlp").exists() and (folder / "gru").exists()
    assert [run.folder for run in package.runs(folder.place)] == sorted(folder.place.iterdir())


@pytest.mark.parametrize("use, message", [
    (lambda folder: package.Run(folder.place), "not a run's folder"),
    (lambda folder: package.Run(folder / "mlp").weights("tagger"), "name a policy: shared"),
    (lambda folder: package.Run(folder / "gru").policy().act(torch.zeros(1, 4)), "this policy remembers"),
])
def test_what_is_not_there(folder, use, message):
    with pytest.raises(package.RunError, match=message):
        use(folder)


def test_the_extras_that_the_documentation_installs():
    extras = tomllib.loads((ROOT / "python" / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {"torch>=2.6", "onnx"} <= set(extras["export"])
    for document in ("docs/tour.md", "docs/python.md"):
        (named,) = re.findall(r"pip install './python\[(.*)\]'", (ROOT / document).read_text())
        assert {"export"} <= set(named.split(",")) <= set(extras)


def test_it_can_be_installed(tmp_path):
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index",
                    "--target", str(tmp_path / "site"), str(ROOT / "python")], check=True, cwd=tmp_path)
    code = "import wdtrain; print(wdtrain.__file__)"
    said = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True,
                          env=dict(os.environ, PYTHONPATH=str(tmp_path / "site"))).stdout
    assert said.startswith(str(tmp_path / "site")) and (tmp_path / "site/wdtrain/py.typed").exists()
    for command in (tmp_path / "site/bin/wdtrain", os.environ["WDTRAIN"]):  # the script becomes the program
        done = subprocess.run([command, "--version"], cwd=tmp_path, capture_output=True, text=True, env=dict(os.environ, PYTHONPATH=str(tmp_path / "site")))
        assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("wd"), done
