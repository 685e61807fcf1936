"""reads_test.py: policies that read more than observations compute in Python, and in exported files, what the program
computes."""

import json
import os
import pathlib
import re
import sys

import numpy
import onnxruntime
import pytest
import torch

from cli.program import OnDemand, output

ROOT = pathlib.Path(os.environ["WD_SOURCE_DIR"])
sys.path.insert(0, str(ROOT / "python"))

import wdtrain as package  # noqa: E402
from wdtrain.export import export, main  # noqa: E402
from wdtrain.policy import Policy  # noqa: E402
from wdtrain.reads import Inputs, Part, side_by_side  # noqa: E402

MEMORY = "batch_size: 32, replay_ratio: 1, buffer_size: 4000, learning_starts: 64"
SHARED = {  # policy.shared, which acts for all three agents of simple_spread
    "critic": "algorithm: PPO, normalize_value: true, model: {separate_value: true, critic_reads: [observation, state, agent_id]}",
    "actor": "algorithm: A2C, model: {separate_value: false, critic_reads: [], reads: [observation, agent_id]}",
    "all": "algorithm: PPO, model: {separate_value: false, layer_norm: true, reads: [observation, agent_id, state]}",
    "linear": "algorithm: PPO, normalize_value: true, model: {fc_dims: [], separate_value: false, reads: [observation, state, agent_id]}",
    "linear_critic": "algorithm: PPO, model: {fc_dims: [], separate_value: true, critic_reads: [state, agent_id]}",
    "linear_state": "algorithm: PPO, model: {fc_dims: [], separate_value: true, reads: [observation, agent_id], critic_reads: [state]}",
    "gru": "algorithm: PPO, model: {type: gru, width: 16, separate_value: false, reads: [observation, agent_id, state]}",
    "gru_critic": "algorithm: PPO, model: {type: gru, width: 16, separate_value: true, critic_reads: [observation, state, agent_id]}",
    "lstm_critic": "algorithm: PPO, model: {type: lstm, width: 16, fc_dims: [20], layer_norm: true, separate_value: true,"
                   " reads: [observation, agent_id], critic_reads: [state, agent_id]}",
    "qmix_mingru": "algorithm: QMIX, %s, mixer_dim: 5, model: {type: mingru, width: 16, sequence_length: 4, reads: [observation, agent_id],"
                   " critic_reads: [state]}" % MEMORY,
    "sac_gru": "algorithm: SAC, %s, model: {type: gru, width: 16, sequence_length: 4, reads: [observation, agent_id],"
               " critic_reads: [observation, state, agent_id]}" % MEMORY,
    "entities": "algorithm: PPO, model: {input: entities, pool: mean, normalize_input: true, separate_value: true,"
                " critic_reads: [observation, state]}",
    "values": "algorithm: PQN, model: {dueling: true, separate_value: false, reads: [observation, state, agent_id]}",
    "qmix": "algorithm: QMIX, %s, mixer_dim: 5, model: {separate_value: false, critic_reads: [state]}" % MEMORY,
    "pqn_vdn": "algorithm: PQN-VDN, model: {separate_value: false, reads: [observation, agent_id]}",
    "sac": "algorithm: SAC, %s, model: {separate_value: false, critic_reads: [observation, state, agent_id], critic_dims: [32]}" % MEMORY,
    "sac_linear": "algorithm: SAC, %s, model: {fc_dims: [], separate_value: false, critic_reads: [state, agent_id]}" % MEMORY,
}
SPLIT = ("policy={pair: {algorithm: PPO, agents: [agent 0-1], model: {reads: [observation, agent_id], separate_value: false}},"
         " single: {algorithm: PPO, agents: [agent 2], model: {separate_value: true, critic_reads: [state]}}}")
TRAININGS = {name: f"policy={{shared: {{{settings}}}}}" for name, settings in SHARED.items()} | {"split": SPLIT}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    def train(name, run):
        if name == "td3":
            game = ["--env", "pendulum", "--train_batch_size", 64, "--total_steps", 1024]
            policy = "policy={shared: {algorithm: TD3, %s, model: {separate_value: false, critic_reads: [observation, agent_id]}}}" % MEMORY
        else:
            game, policy = ["--env", "simple_spread", "--train_batch_size", 80, "--total_steps", 800], TRAININGS[name]
        output(*game, "--num_envs", 4, "--set", policy, "--device", "cpu", "--quiet", "--run_dir", run)

    return OnDemand(tmp_path_factory.mktemp("runs"), train)


def test_the_value_of_a_team(folder):
    """The mixer against loops over agents and units (Rashid et al. 2018, figure 2)."""
    run = package.Run(folder / "qmix")
    mixer, weights = run.policy().mixer, run.weights()
    generator = numpy.random.default_rng(1)
    values, state = generator.normal(size=(7, 3)).astype("f"), generator.normal(size=(7, 18)).astype("f")
    in_game = generator.integers(0, 2, size=(7, 3))
    in_game[0] = 0
    found = mixer(values, {"state": state}, in_game).detach().numpy()
    for row in range(7):
        hidden = numpy.maximum(weights["mixer.layers.0.weight"] @ state[row] + weights["mixer.layers.0.bias"], 0)
        numbers = weights["mixer.head.weight"] @ hidden + weights["mixer.head.bias"]
        total = numbers[25]
        for k in range(5):
            x = numbers[15 + k] + sum(values[row, i] * in_game[row, i] * abs(numbers[5 * i + k]) for i in range(3))
            total += abs(numbers[20 + k]) * (x if x > 0 else numpy.exp(x) - 1)
        assert found[row] == pytest.approx(total if in_game[row].any() else 0, rel=1e-4, abs=1e-5), row
    sums = package.Run(folder / "pqn_vdn").policy().mixer
    assert sums(values).numpy() == pytest.approx(values.sum(1), rel=1e-5)
    assert package.Run(folder / "values").policy().mixer is None
    with pytest.raises(package.RunError, match="3 agents"):
        mixer(values[:, :2], {"state": state})
    with pytest.raises(package.RunError, match="'state' is missing"):
        mixer(values)


def relative(values, own):
    return values - own[:, None]


def spread(state, t):
    """What the agents of simple_spread see, [agents, 14], and the stream `state`, [18]."""
    x, y, vx, vy, landmark_x, landmark_y = (numpy.array(state[n][t], numpy.float32)
                                            for n in ("x", "y", "vx", "vy", "landmark_x", "landmark_y"))
    n = len(x)
    others = ~numpy.eye(n, dtype=bool)
    landmarks = numpy.stack([relative(landmark_x, x), relative(landmark_y, y)], -1).reshape(n, -1)
    seen = numpy.stack([relative(x, x)[others], relative(y, y)[others]], -1).reshape(n, -1)
    observation = numpy.concatenate([numpy.stack([vx, vy, x, y], 1), landmarks, seen], 1)
    return observation, numpy.concatenate([x, y, vx, vy, landmark_x, landmark_y])


def played(run):
    """Observations [steps, agents, 14], states [steps, 18], and what the program computed, [steps, agents, ...]."""
    record = json.loads(output("play", "--run", run.folder, "--out", "-", "--greedy"))
    episode = record["episodes"][0]
    (role,) = episode["roles"].values()
    observation, state = zip(*(spread(episode["state"], t) for t in range(len(role["action"]))))
    results = {name: numpy.array(role[name], numpy.float32).reshape(len(role[name]), 3, -1)
               for name in ("action", "value", "probability")}
    return torch.tensor(numpy.stack(observation)), torch.tensor(numpy.stack(state)), results


def given(policy, state):
    """The streams, without agent_id."""
    return {"state": state} if "state" in policy.reads else {}


def test_the_metadata_say_what_is_read(folder):
    metadata = package.Run(folder / "critic").metadata()
    assert json.loads(metadata["streams"]) == [{"name": "state", "of": "replica", "shape": [18]}]
    assert metadata["agent_ids"] == "3" and "agents" not in metadata and "reads" not in metadata
    pair, single = (package.Run(folder / "split").metadata(name) for name in ("pair", "single"))
    assert (pair["agents"], pair["agent_ids"]) == ("agent 0-1", "2") and "streams" not in pair
    assert single["agents"] == "agent 2" and "agent_ids" not in single


@pytest.mark.parametrize("name", SHARED)
def test_policies_compute_what_the_program_computes(folder, name):
    run = package.Run(folder / name)
    policy = run.policy()
    observation, stream, results = played(run)
    assert len(observation) == 25
    state = policy.first_state(3)
    for t, rows in enumerate(observation):
        reads = given(policy, stream[t])
        out = policy(rows, state, reads=reads)
        assert out.value.detach().numpy() == pytest.approx(results["value"][t, :, 0], abs=2e-5, rel=1e-5, nan_ok=True)
        assert policy.probabilities(out.output)[0].detach().numpy() == pytest.approx(results["probability"][t], abs=1e-5)
        action, state = policy.step(rows, state, reads=reads)
        assert (action.numpy() == results["action"][t]).all()
    if not policy.state_size:  # all steps at once, of which each is like a replica
        out = policy(observation, reads=given(policy, stream))
        assert out.value.detach().numpy() == pytest.approx(results["value"][..., 0], abs=2e-5, rel=1e-5)


def test_each_policy_of_a_role_acts_for_its_agents(folder):
    run = package.Run(folder / "split")
    observation, stream, results = played(run)
    for name, agents in (("pair", slice(0, 2)), ("single", slice(2, 3))):
        policy = run.policy(name)
        out = policy(observation[:, agents], reads=given(policy, stream))
        ours = policy.probabilities(out.output)[0].detach().numpy()
        assert ours == pytest.approx(results["probability"][:, agents], abs=1e-5)
        assert out.value.detach().numpy() == pytest.approx(results["value"][:, agents, 0], abs=2e-5, rel=1e-5)
    assert run.policy("pair").reads == {"agent_id": 2} and run.policy("single").reads == {"state": 18}


def test_critics_of_continuous_actions(folder):
    run = package.Run(folder / "td3")
    record = json.loads(output("play", "--run", run.folder, "--out", "-", "--greedy", "--max_steps", 50))["episodes"][0]
    (role,) = record["roles"].values()
    theta, speed = (numpy.array(record["state"][name]).reshape(-1, 1)[: len(role["value"])] for name in ("theta", "theta_dot"))
    observation = torch.tensor(numpy.stack([numpy.cos(theta), numpy.sin(theta), speed], -1), dtype=torch.float32)
    policy = run.policy()
    assert policy.reads == {"agent_id": 1}
    value = policy(observation).value.detach().numpy()
    assert len(value) == 50 and value == pytest.approx(numpy.array(role["value"]).reshape(-1, 1), abs=2e-5, rel=1e-5)


def test_ids_follow_from_the_places_of_all_agents_only(folder):
    policy = package.Run(folder / "actor").policy()
    rows = torch.randn(5, 3, 14, generator=torch.Generator().manual_seed(1))
    together = policy.outputs(rows)
    for agent in range(3):
        alone = policy.outputs(rows[:, agent], reads={"agent_id": agent})
        assert torch.allclose(alone, together[:, agent], atol=1e-6)
    assert torch.equal(policy.outputs(rows, reads={"agent_id": [0, 1, 2]}), together)
    assert not torch.allclose(policy.outputs(rows, reads={"agent_id": [0, 2, 1]}), together, atol=1e-3)


def test_actions_need_only_what_the_actor_reads(folder):
    policy = package.Run(folder / "critic").policy()
    rows = torch.randn(5, 3, 14, generator=torch.Generator().manual_seed(1))
    output_ = policy(rows, reads={"state": torch.zeros(5, 18)}).output
    assert torch.equal(policy.outputs(rows), output_)
    assert torch.allclose(policy.outputs(rows[0, 0]), output_[0, 0], atol=1e-6)
    assert torch.equal(policy.act(rows)[..., 0], output_.argmax(-1))


def test_without_what_the_value_reads_its_memory_stays(folder):
    policy = package.Run(folder / "gru_critic").policy()
    rows = torch.randn(5, 3, 14, generator=torch.Generator().manual_seed(1))
    before = torch.randn(5, 3, policy.state_size, generator=torch.Generator().manual_seed(2))
    action, after = policy.step(rows, before)
    both, changed = policy.step(rows, before, reads={"state": torch.ones(5, 18)})
    assert torch.equal(action, both) and torch.equal(after[..., :16], changed[..., :16])
    assert torch.equal(after[..., 16:], before[..., 16:]) and not torch.allclose(changed[..., 16:], before[..., 16:], atol=1e-2)
    assert torch.equal(policy.step(rows)[1][..., 16:], torch.zeros(5, 3, 16))


ROWS = torch.zeros(4, 3, 14)
STATE = torch.zeros(4, 18)


@pytest.mark.parametrize("observation, reads, message", [
    (ROWS, {}, "reads: 'state' is missing: give reads={'state': ...}, which is [4, 18], a row for each replica, or [4, 3, 18], a row for each"),
    (ROWS, {"state": STATE[:3]}, "reads: 'state' is [3, 18], and must be [4, 18], a row for each replica, or [4, 3, 18]"),
    (ROWS, {"state": STATE[:, :7]}, "reads: 'state' is [4, 7], and must be [4, 18]"),
    (ROWS[0, 0], {"state": STATE[:2], "agent_id": 0}, "reads: 'state' is [2, 18], and must be [18], a row for each observation"),
    (ROWS, {"state": STATE, "map": 1}, "reads: this policy does not read 'map'; besides the observation, it reads state, agent_id"),
    (ROWS[:, 0], {"state": STATE}, "reads: 'agent_id' is missing, and a row's agent follows from its place only in observations of"
                                   " [..., 3 agents, numbers], and not of [4, 'numbers']: give reads={'agent_id': ...}, 0 to 2"),
    (ROWS, {"state": STATE, "agent_id": 3}, "reads: 'agent_id' has 3 to 3, and must be 0 to 2"),
    (ROWS, {"state": STATE, "agent_id": [-1, 0, 1]}, "reads: 'agent_id' has -1 to 1, and must be 0 to 2"),
    (ROWS, {"state": STATE, "agent_id": [0.0, 1.0, 2.0]}, "reads: 'agent_id' must be whole numbers from 0 to 2"),
    (ROWS, {"state": STATE, "agent_id": [0, 1]}, "reads: 'agent_id' is [2], and must be one number, or [4, 3]"),
    (ROWS[..., :13], {"state": STATE}, "observation: is [4, 3, 13], and must be [..., 14]"),
])
def test_what_does_not_fit(folder, observation, reads, message):
    with pytest.raises((package.RunError, package.UsageError), match=re.escape(message)):
        package.Run(folder / "critic").policy()(observation, reads=reads)


def test_a_policy_of_observations_alone_takes_nothing_else(folder):
    run = package.Run(folder / "split")
    weights, metadata = run.weights("single"), run.metadata("single")
    plain = {name: metadata[name] for name in metadata if name not in ("critic_reads", "streams")}
    without = {name: value for name, value in weights.items() if not name.startswith("value_layers.")}
    policy = Policy.from_weights(without, plain)
    assert policy.reads == {}
    with pytest.raises(package.RunError, match="reads: this policy reads the observation alone, and not agent_id"):
        policy.act(ROWS, reads={"agent_id": 0})


@pytest.mark.parametrize("key", ["reads", "critic_reads"])
def test_files_that_do_not_say_the_sizes_are_refused(folder, key):
    run = package.Run(folder / "split")
    with pytest.raises(package.RunError, match="its networks read board, agent_id, whose size the file does not say"):
        Policy.from_weights(run.weights("single"), run.metadata("single") | {key: "observation,board,agent_id"})


def test_streams_of_agents_and_of_any_shape():
    metadata = {"observation_size": "2", "reads": "observation,image,weight", "agent_ids": "0",
                "streams": json.dumps([{"name": "image", "shape": [2, 3], "of": "agent"}, {"name": "weight", "shape": [], "of": "replica"}])}
    inputs = Inputs(metadata)
    observation, image = torch.rand(4, 5, 2), torch.rand(4, 5, 2, 3)
    weight = torch.rand(4)
    rows = inputs.rows(observation, {"image": image, "weight": weight})
    assert torch.equal(rows[..., 2:8], image.flatten(2)) and torch.equal(rows[..., 8], weight.unsqueeze(1).expand(4, 5))
    assert torch.equal(inputs.rows(observation, {"image": image.flatten(2), "weight": weight.unsqueeze(1)}), rows)
    with pytest.raises(package.RunError, match=re.escape("'image' is [4, 2, 3], and must be [4, 5, 6], a row for each observation")):
        inputs.rows(observation, {"image": image[:, 0], "weight": weight})
    part = Part(inputs, ["weight", "observation"], torch.nn.Identity())
    assert torch.equal(part(rows), torch.cat([observation, rows[..., 8:]], -1))


def test_first_layers_that_do_not_fit():
    inputs = Inputs({"observation_size": "2", "reads": "observation,agent_id", "agent_ids": "2"})
    weights = {"policy_head.weight": numpy.zeros((3, 2), "f"), "layers.0.agent_id.weight": numpy.zeros((4, 2), "f")}
    with pytest.raises(package.RunError, match="the weights layers.0 have 4 rows, and the layer has 3"):
        side_by_side(weights, inputs)
    weights["layers.0.agent_id.weight"] = numpy.zeros((3, 5), "f")
    with pytest.raises(package.RunError, match=r"the weights layers.0 have \[5\] columns, and the metadata say \[2\]"):
        side_by_side(weights, inputs)


# --- export ---------------------------------------------------------------------------------------------------


def run_file(path, names, inputs):
    if path.suffix == ".pt":
        return torch.jit.load(str(path))(*[inputs[name] for name in names])
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert [node.name for node in session.get_inputs()] == names
    return [torch.tensor(result) for result in session.run(None, {name: inputs[name].numpy() for name in names})]


@pytest.mark.parametrize("suffix", [".pt", ".onnx"])
@pytest.mark.parametrize("name", SHARED)
def test_exported_files_have_an_input_for_each(folder, name, suffix, tmp_path):
    policy, random = package.Run(folder / name).policy(), torch.Generator().manual_seed(3)
    observation, stream = torch.randn(500, 3, 14, generator=random), torch.randn(500, 18, generator=random)
    state = torch.randn(500, 3, policy.state_size, generator=random)
    out = policy(observation, state, reads=given(policy, stream))
    remembers = ["state"] * (policy.state_size > 0)
    stream_name = "stream_state" if remembers else "state"
    reads = {"observation": observation.flatten(0, 1), stream_name: stream.repeat_interleave(3, 0), "agent_id": torch.arange(3).repeat(500)}
    inputs = reads | ({"state": state.flatten(0, 1)} if remembers else {})
    format = {".pt": "torchscript", ".onnx": "onnx"}[suffix]

    names, outputs = export(policy, tmp_path / f"all{suffix}", format)
    assert names == ["observation", *remembers, *(stream_name if n == "state" else n for n in policy.reads)]
    action, logits, value, *after = run_file(tmp_path / f"all{suffix}", names, inputs)
    assert torch.equal(action, policy.step(observation, state, reads=given(policy, stream))[0].flatten(0, 1))
    assert torch.allclose(logits, out.output.flatten(0, 1), atol=1e-5) and torch.allclose(value, out.value.flatten(), atol=1e-5, equal_nan=True)
    if remembers:
        assert torch.allclose(after[0], out.state.flatten(0, 1), atol=1e-5)

    names, outputs = export(policy, tmp_path / f"actor{suffix}", format, value=False)
    assert outputs == ["action", "logits", *["state_after"] * len(remembers)]
    assert (stream_name in names) == ("state" in policy.inputs.actor) and ("agent_id" in names) == ("agent_id" in policy.inputs.actor)
    again, logits, *after = run_file(tmp_path / f"actor{suffix}", names, inputs)
    assert torch.equal(again, action) and torch.allclose(logits, out.output.flatten(0, 1), atol=1e-5)
    if name == "gru_critic":
        assert torch.allclose(after[0][:, :16], out.state.flatten(0, 1)[:, :16], atol=1e-5)
        assert torch.equal(after[0][:, 16:], state.flatten(0, 1)[:, 16:])


def test_names_of_inputs_that_formats_cannot_have(folder):
    from wdtrain.export import _input_name

    assert [_input_name(name, ["observation", "a_b"]) for name in ("a-b", "a.c", "2d", "class", "none", "value")] == [
        "stream_a_b", "a_c", "stream_2d", "stream_class", "stream_none", "stream_value"]


def test_the_command(folder, capsys):
    run = folder / "critic"
    main(["--run", str(run), "--format", "torchscript"])
    assert "(observation, state, agent_id) -> (action, logits, value), " in capsys.readouterr().out
    main(["--run", str(run), "--format", "torchscript", "--actor", "--force"])
    assert "(observation) -> (action, logits), " in capsys.readouterr().out
    with pytest.raises(SystemExit, match="--actor: a safetensors file has weights only"):
        main(["--run", str(run), "--format", "safetensors", "--actor"])
