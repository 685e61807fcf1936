"""export_test.py: exported policies compute what the package's policies compute, which package_test.py compares with
the program."""

import json
import os
import pathlib
import sys

import onnx
import onnxruntime
import pytest
import torch

from cli.program import OnDemand, output

ROOT = pathlib.Path(os.environ["WD_SOURCE_DIR"])
sys.path.insert(0, str(ROOT / "python"))

import wdtrain as package  # noqa: E402
from wdtrain.export import export, exported, main  # noqa: E402
from wdtrain.policy import Policy  # noqa: E402

ROWS = 10_000
CROWD = ["--env", "tag_continuous", "--num_envs", 4, "--train_batch_size", 40, "--set", "env.num_runners=4", "--set", "env.observe_self=true",
         "--set", "trainer.observations=rows"]
MEMORY = ["--num_envs", 4, "--train_batch_size", 40]
WINDOWS, REPLAY = ["--num_envs", 2, "--train_batch_size", 40], "batch_size: 16, replay_ratio: 1, learning_starts: 0, buffer_size: 400"
TRAININGS = {
    "mlp": ["--env", "cartpole"],
    "heads": ["--env", "tag_continuous", "--num_envs", 4, "--train_batch_size", 40, "--set", "env.num_runners=4"],
    "values": ["--env", "tag_continuous", "--num_envs", 4, "--train_batch_size", 40, "--set", "env.num_runners=4",
               "--set", "policy={tagger: {algorithm: PQN, model: {layer_norm: false}}, runner: {algorithm: PQN, model: {layer_norm: false}}}"],
    "dueling": ["--env", "tag_continuous", "--num_envs", 4, "--train_batch_size", 40, "--set", "env.num_runners=4", "--set",
                "policy={tagger: {algorithm: PQN, model: {layer_norm: false, dueling: true}}, runner: {algorithm: PQN, model: {layer_norm: false, dueling: true}}}"],
    "dueling_gru": ["--env", "cartpole", "--set", "policy={shared: {algorithm: PQN, model: {type: gru, width: 16, dueling: true, separate_value: false}}}"],
    "choices": ["--env", "tag_gridworld", "--num_envs", 4, "--train_batch_size", 40, "--set",
                "policy={shared: {algorithm: PQN, model: {layer_norm: false, input: choices, fc_dims: [16]}}}"],
    "gru": ["--env", "cartpole", "--set", "policy.shared.model={type: gru, width: 16}"],
    "mingru": ["--env", "cartpole", "--set", "policy.shared.model={type: mingru, width: 16, separate_value: true}"],
    "lstm": ["--env", "cartpole", "--set", "policy.shared.model={type: lstm, width: 16, fc_dims: [24, 20], layer_norm: true}"],
    "lstm_one": ["--env", "pendulum", "--set", "policy.shared.model={type: lstm, width: 16, layer_norm: true, separate_value: false}"],
    "dqn_gru": ["--env", "cartpole", *WINDOWS, "--set", "policy={shared: {algorithm: DQN, burn_in: 2, %s, model: {type: gru, width: 16, sequence_length: 4}}}" % REPLAY],
    "sac_lstm": ["--env", "pendulum", *WINDOWS, "--set", "policy={shared: {algorithm: SAC, %s, model: {type: lstm, width: 16, fc_dims: [20], sequence_length: 4}}}" % REPLAY],
    "td3_mingru": ["--env", "pendulum", *WINDOWS, "--set", "policy={shared: {algorithm: TD3, %s, model: {type: mingru, width: 16, sequence_length: 4}}}" % REPLAY],
    "sac_choices_gru": ["--env", "tag_gridworld", *WINDOWS, "--set", "policy={shared: {algorithm: SAC, %s, model: {type: gru, width: 16, sequence_length: 4}}}" % REPLAY],
    "layer_norm": ["--env", "cartpole", "--set", "policy.shared.model.layer_norm=true"],
    "standardized": ["--env", "cartpole", "--set", "policy.shared.model.normalize_input=true"],
    "entities_standardized": [*CROWD, "--set", "policy={shared: {model: {input: entities, pool: mean, normalize_input: true}}}"],
    "gaussian": ["--env", "pendulum"],
    "squashed": ["--env", "pendulum", "--set", "policy.shared.model.distribution=squashed_gaussian"],
    "sac": ["--env", "pendulum", *MEMORY, "--set", "policy={shared: {algorithm: SAC, batch_size: 8, replay_ratio: 1, learning_starts: 0, buffer_size: 400, model: {separate_value: false}}}"],
    "td3": ["--env", "pendulum", *MEMORY, "--set", "policy={shared: {algorithm: TD3, batch_size: 8, replay_ratio: 1, learning_starts: 0, buffer_size: 400, model: {separate_value: false}}}"],
    "sac_choices": ["--env", "tag_gridworld", *MEMORY, "--set", "policy={shared: {algorithm: SAC, batch_size: 8, replay_ratio: 1, learning_starts: 0, buffer_size: 400}}"],
    "gsde": ["--env", "pendulum", "--set", "policy.shared.model.distribution=gsde"],
    "entities": [*CROWD, "--set", "policy={shared: {model: {input: entities, pool: mean_max, attention: 2, separate_value: true}}}"],
    "entities_table": [*CROWD, "--set", "trainer.observations=table", "--set", "policy={shared: {model: {input: entities, nearest: 9}}}"],
    "entities_gru": [*CROWD, "--set", "policy={shared: {model: {type: gru, width: 16, input: entities, attention: 1}}}"],
    "entities_lists": ["--env", "simple_tag", "--set", "env.num_adversaries=1", "--set", "env.num_good_agents=3",
                       "--set", "policy.adversary.model={input: entities, pool: mean, attention: 1}"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return OnDemand(tmp_path_factory.mktemp("runs"), lambda name, run: output(*TRAININGS[name], "--total_steps", 40, "--device", "cpu", "--quiet", "--run_dir", run))


def policy_of(folder, name):
    run = package.Run(folder / name.removeprefix("masked_").removeprefix("observed_").removeprefix("quantiles_"))
    policy = run.policy(run.policies[0])
    if name.startswith("observed_"):  # the same weights, of an observation in which entries 2 to 11 describe the moves
        size, first = int(policy.metadata["observation_size"]), 2
        observed = {"observation_size": str(size + 10), "choices": json.dumps({"size": 2, "first": first})}
        policy = Policy.from_weights(run.weights(run.policies[0]), policy.metadata | observed)
    if name.startswith("quantiles_"):  # three of each value, around it
        weights = dict(run.weights(run.policies[0]))
        for part in ("weight", "bias"):
            three = weights[f"layers.head.{part}"].repeat(3, 0)
            three[::3] -= 0.5
            three[2::3] += 0.5
            weights[f"layers.head.{part}"] = three
        policy = Policy.from_weights(weights, policy.metadata | {"quantiles": "3"})
    if name.startswith("masked_"):  # an environment that masks its actions has the same weights
        policy = Policy.from_weights(run.weights(run.policies[0]), dict(policy.metadata, action_mask="true"))
    return policy


def numbers(policy):
    random = torch.Generator().manual_seed(7)
    inputs = {"observation": torch.randn(ROWS, policy.observation_size, generator=random)}
    for things in json.loads(policy.metadata.get("entities", '{"lists": []}'))["lists"]:
        for first, step in filter(None, (things["kind"], things["presence"])):  # 0 and 1
            column = inputs["observation"][:, first : first + (things["count"] - 1) * step + 1 : step]
            column.copy_((column > 0).float())
        for first, step in (things["x"], things["y"]) if things["count"] > 1 else ():  # the first two are equally near
            inputs["observation"][::2, first + step] = inputs["observation"][::2, first]
    if policy.metadata["action_mask"] == "true":
        mask = torch.rand(ROWS, sum(policy.heads), generator=random) < 0.5
        first = 0
        for n in policy.heads:  # at least one choice of every head is legal
            mask[torch.arange(ROWS), first + torch.randint(n, (ROWS,), generator=random)] = True
            first += n
        inputs["mask"] = mask.float()
    if policy.state_size:
        inputs["state"] = torch.randn(ROWS, policy.state_size, generator=random)
    return inputs


def expected_of(policy, inputs):
    out = policy(inputs["observation"], inputs.get("state"), inputs.get("mask"))
    action, after = policy.step(inputs["observation"], inputs.get("state"), inputs.get("mask"))
    return action, out, after


def check(policy, results, inputs):
    action, out, after = expected_of(policy, inputs)
    exported_action, numbers_, value = results[:3]
    legal = inputs["mask"] != 0 if "mask" in inputs else torch.ones_like(out.output, dtype=torch.bool)
    assert torch.allclose(numbers_[legal], out.output[legal], atol=1e-5)
    assert (numbers_[~legal] == -torch.inf).all()
    assert torch.allclose(value, out.value, atol=1e-5, equal_nan=True)
    if policy.heads:
        assert torch.equal(exported_action, action)
        chosen = torch.nn.functional.one_hot(exported_action + torch.tensor([0, *policy.heads[:-1]]).cumsum(0), sum(policy.heads))
        assert legal[chosen.sum(1) > 0].all()
    else:
        assert torch.allclose(exported_action, action, atol=1e-5)
    if policy.state_size:
        assert torch.allclose(results[3], after, atol=1e-5)


NAMES = [*TRAININGS, "masked_heads", "masked_values", "masked_dueling", "masked_gru", "masked_choices", "masked_sac_choices", "masked_sac_choices_gru", "observed_choices", "quantiles_dueling"]


def test_a_policy_that_was_trained_with_masks_needs_one(folder):
    policy = policy_of(folder, "masked_heads")
    inputs = numbers(policy)
    with pytest.raises(package.RunError, match="trained with masks of legal choices: pass mask"):
        policy.act(inputs["observation"])
    assert policy.act(inputs["observation"], inputs["mask"]).shape == (ROWS, len(policy.heads))


def test_a_head_without_a_legal_choice_is_worth_0(folder):
    policy = policy_of(folder, "masked_values")
    inputs = numbers(policy)
    first = policy.heads[0]
    inputs["mask"][:, :first] = 0
    module, *_ = exported(policy)
    value = module(inputs["observation"], inputs["mask"])[2]
    output, ours, _ = policy(inputs["observation"], None, inputs["mask"])
    rest = output.masked_fill(inputs["mask"] == 0, -torch.inf)[:, first:].split(policy.heads[1:], -1)
    expected = sum(head.amax(-1) for head in rest)
    assert torch.allclose(value, expected, atol=1e-5) and torch.allclose(ours, expected, atol=1e-5)


def test_observed_choices_have_the_values_of_fixed_ones(folder):
    fixed, observed = policy_of(folder, "choices"), policy_of(folder, "observed_choices")
    rows = numbers(fixed)["observation"]
    moves = torch.tensor(json.loads(fixed.metadata["choices"])["fixed"]).expand(len(rows), -1)
    with_moves = torch.cat([rows[:, :2], moves, rows[:, 2:]], 1)
    assert torch.allclose(observed(with_moves).output, fixed(rows).output, atol=1e-6)


def test_values_are_the_means_of_quantiles(folder):
    plain, quantiles = policy_of(folder, "dueling"), policy_of(folder, "quantiles_dueling")
    rows = numbers(plain)["observation"]
    assert torch.allclose(quantiles(rows).output, plain(rows).output, atol=1e-5)


def test_choices_that_do_not_fit(folder):
    run = package.Run(folder / "choices")
    weights, metadata = run.weights(run.policies[0]), run.metadata(run.policies[0])
    for numbers_ in ({"size": 2, "first": 12}, {"size": 2, "fixed": [0.0]}, {"size": 0, "fixed": []}):
        with pytest.raises(package.RunError, match="5 choices with . numbers each do not fit an observation of"):
            Policy.from_weights(weights, metadata | {"choices": json.dumps(numbers_)})


@pytest.mark.parametrize("name", NAMES)
def test_torchscript(folder, name, tmp_path):
    policy = policy_of(folder, name)
    inputs = numbers(policy)
    names, _ = export(policy, tmp_path / "policy.pt", "torchscript")
    assert set(names) == set(inputs)
    results = torch.jit.load(str(tmp_path / "policy.pt"))(*[inputs[n] for n in names])
    check(policy, results, inputs)
    assert not any(result.requires_grad for result in results), "numpy() would refuse it"
    assert all(parameter.requires_grad for parameter in policy.parameters()), "the policy may still be trained"


def run_onnx(path, inputs):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert {node.name for node in session.get_inputs()} == set(inputs)
    results = session.run(None, {name: tensor.numpy() for name, tensor in inputs.items()})
    return [torch.tensor(result) for result in results], [node.name for node in session.get_outputs()]


@pytest.mark.parametrize("name", NAMES)
def test_onnx(folder, name, tmp_path):
    policy = policy_of(folder, name)
    inputs = numbers(policy)
    _, outputs = export(policy, tmp_path / "policy.onnx", "onnx")
    onnx.checker.check_model(str(tmp_path / "policy.onnx"), full_check=True)
    results, names = run_onnx(tmp_path / "policy.onnx", inputs)
    assert names == outputs
    check(policy, results, inputs)


@pytest.mark.parametrize("format", ["torchscript", "onnx"])
def test_sampled_actions_follow_the_distribution(folder, format, tmp_path):
    policy = policy_of(folder, "mlp")
    observation = torch.tensor([[0.5, 2.0, -0.1, -1.0]]).repeat(ROWS, 1)
    export(policy, tmp_path / "policy", format, greedy=False)
    if format == "onnx":
        (action, *_), _ = run_onnx(tmp_path / "policy", {"observation": observation})
    else:
        torch.manual_seed(3)
        action = torch.jit.load(str(tmp_path / "policy"))(observation)[0]
    probability = policy.probabilities(policy(observation[:1]).output)[0][0, 1].item()
    assert 0.02 < probability < 0.98
    assert abs(action.double().mean().item() - probability) < 5 * (probability * (1 - probability) / ROWS) ** 0.5


def test_the_command(folder, tmp_path, capsys):
    run = folder / "mlp"
    main(["--run", str(run), "--format", "onnx"])
    assert capsys.readouterr().out.startswith(f"{run}/export/shared.onnx: (observation) -> (action, logits, value), ")
    with pytest.raises(SystemExit, match="exists: name another file with --out, or give --force"):
        main(["--run", str(run), "--format", "onnx"])
    main(["--run", str(run), "--format", "onnx", "--force"])
    checkpoint = run / "checkpoints" / "latest"
    main(["--run", str(checkpoint), "--format", "safetensors", "--out", str(tmp_path / "w.safetensors")])
    assert (tmp_path / "w.safetensors").read_bytes() == (run / "weights/shared.safetensors").read_bytes()


@pytest.mark.parametrize("arguments, message", [
    (["--run", "{folder}/none", "--format", "onnx"], "not a run's folder"),
    (["--run", "{folder}/heads", "--format", "onnx"], "name a policy: runner, tagger"),
    (["{folder}/heads", "--format", "onnx"], "name a policy: runner, tagger"),
    (["--run", "{folder}/mlp", "--format", "torchscript", "--out", "/proc/x.pt"], "/proc/x.pt: cannot be written"),
    (["--run", "{folder}/mlp", "--format", "onnx", "--out", "/proc/x.onnx"], "/proc/x.onnx: cannot be written"),
    (["--run", "{folder}/mlp", "--format", "safetensors", "--sample"], "has weights only"),
])
def test_what_cannot_be_exported(folder, arguments, message):
    assert (folder / "heads").exists() and (folder / "mlp").exists()
    with pytest.raises(SystemExit, match=message):
        main([argument.format(folder=folder.place) for argument in arguments])


def test_the_choice_of_greedy_actions_is_inside(folder):
    module, inputs, outputs = exported(policy_of(folder, "heads"))
    assert (inputs, outputs) == (["observation"], ["action", "logits", "value"])
