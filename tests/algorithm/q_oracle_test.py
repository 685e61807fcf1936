"""q_oracle_test.py: recomputes the updates recorded by q_record_test.cpp with Python's torch and its autograd, in
double, from the paper's definitions (Gallici et al. 2024, algorithm 1)."""

import pytest
import torch
from algorithm.memory import Memory
from algorithm.recording import Recording, recorded

NAMES = ["gru", "heads_and_masks", "lstm", "mingru", "one_head"]
TOLERANCE = {"rtol": 1e-5, "atol": 2e-6}  # float against double


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    files = recorded("q_record_test.cpp", tmp_path_factory.mktemp("records"), NAMES)
    return {name: Recording(file, {"activation"}) for name, file in files.items()}


@pytest.fixture(params=NAMES)
def record(request, recordings):
    return recordings[request.param]


def remembered(record, weights, every):
    """Values of all choices in all steps of a rollout, whose states are those that were stored at every so many steps."""
    network, state, outputs = Memory(weights, "layers."), None, []
    for t in range(len(record["observation"])):
        state = record["state"][t] if t % every == 0 else state
        state = network.step({"observation": record["observation"][t]}, state * (record["restarted"][t] == 0).unsqueeze(-1))
        outputs.append(network.output(state))
    return torch.stack(outputs)


def values_of_rollout(record, weights, every=10**9):
    """Of all steps and the observation behind them; with memory, from the first state, or the states at every so many steps."""
    if record.sequence_length < 0:
        return q_values(record, weights, record["observation"])
    return remembered(record, weights, every).split(record.heads, -1)


def q_values(record, weights, observation):
    """Values of all choices, a list of one tensor per head."""
    x, layer = observation, 0
    while f"layers.{layer}.weight" in weights:
        x = x @ weights[f"layers.{layer}.weight"].T + weights[f"layers.{layer}.bias"]
        x = torch.relu(x) if record.activation == "relu" else torch.tanh(x)
        layer += 1
    return (x @ weights["policy_head.weight"].T + weights["policy_head.bias"]).split(record.heads, -1)


def legal_of(record):
    if "action_mask" not in record.tensors:
        return [torch.ones(*record["value"].shape, n, dtype=torch.bool) for n in record.heads]
    return (record["action_mask"] != 0).split(record.heads, -1)


def state_values(record):
    values = values_of_rollout(record, record.prefixed("before."))
    return sum(q.masked_fill(~legal, -torch.inf).amax(-1) for q, legal in zip(values, legal_of(record)))


def test_values_of_all_rows(record):
    torch.testing.assert_close(record["value"], state_values(record), **TOLERANCE)


def test_actions_are_greedy_or_uniform(record):
    steps = record["action"].shape[0]
    values = [q[:steps] for q in values_of_rollout(record, record.prefixed("before."))]
    greedy = torch.ones(record["action"].shape[:3], dtype=torch.bool)
    by_chance = torch.ones_like(greedy, dtype=torch.double)
    for h, (q, legal) in enumerate(zip(values, legal_of(record))):
        legal, action = legal[:steps], record["action"][..., h].long()
        assert legal.gather(-1, action.unsqueeze(-1)).all()
        greedy &= q.masked_fill(~legal, -torch.inf).argmax(-1) == action
        by_chance /= legal.sum(-1)
        choices = torch.bincount(action.flatten(), minlength=q.shape[-1])
        assert (choices > 0).all()
    n = greedy.numel()
    expected = (1 - record.epsilon + record.epsilon * by_chance).mean().item()
    assert abs(greedy.double().mean().item() - expected) < 4 * (expected * (1 - expected) / n) ** 0.5
    assert (record["log_prob"] == 0).all()
    assert record["metric.epsilon"].item() == pytest.approx(record.epsilon, rel=1e-12)


def test_targets_are_the_lambda_returns_of_the_paper(record):
    value, reward = state_values(record), record["reward"] * record.reward_scale
    steps, envs, agents = reward.shape
    over = record["terminated"].bool().unsqueeze(-1) | record["agent_terminated"].bool()
    valid = record["active"][:steps].bool() & ~record["reset_step"].bool().unsqueeze(-1)

    def target(t, e, a):
        if over[t, e, a]:
            return reward[t, e, a]
        later = value[t + 1, e, a]
        if not record["truncated"][t, e] and t + 1 < steps:
            later = (1 - record.decay) * later + record.decay * target(t + 1, e, a)
        return reward[t, e, a] + record.gamma * later

    expected = torch.zeros_like(reward)
    for t, e, a in valid.nonzero().tolist():
        expected[t, e, a] = target(t, e, a)
    assert record["truncated"].sum() > 2 and over.sum() > 5
    torch.testing.assert_close(record["mask"].bool(), valid)
    torch.testing.assert_close(record["target"], expected, **TOLERANCE)
    learned, values = expected[valid], value[:steps][valid]
    unexplained = (learned - values).var(correction=0) / learned.var(correction=0)
    for name, number in {
        "value_mean": values.mean(),
        "return_mean": learned.mean(),
        "return_std": learned.std(correction=0),
        "explained_variance": 1 - unexplained,
    }.items():
        assert record[f"metric.{name}"].item() == pytest.approx(number.item(), rel=1e-5, abs=1e-6), name


def test_one_update(record):
    weights = {name: tensor.clone().requires_grad_() for name, tensor in record.prefixed("before.").items()}
    steps = record["reward"].shape[0]
    rows = {name: record[name][:steps].flatten(0, 2) for name in ("observation", "action", "target", "mask")}
    adam = torch.optim.Adam(weights.values(), lr=record.lr, eps=record.adam_epsilon)
    orders = record.orders()
    losses, norms, count = 0.0, [], 0.0
    for order in orders:
        batch = {key: tensor[order] for key, tensor in rows.items()}
        if record.sequence_length < 0:
            values = q_values(record, weights, batch["observation"])
        else:
            every = int(record.sequence_length) or steps
            values = [q[:steps].flatten(0, 2)[order] for q in values_of_rollout(record, weights, every)]
        chosen = sum(q.gather(-1, batch["action"][:, h : h + 1].long()).squeeze(-1) for h, q in enumerate(values))
        counts = batch["mask"] > 0
        loss = 0.5 * ((chosen - batch["target"])[counts] ** 2).sum()
        losses, count = losses + loss.item(), count + counts.sum().item()
        adam.zero_grad()
        (loss / counts.sum()).backward()
        norms.append(torch.nn.utils.clip_grad_norm_(weights.values(), record.max_grad_norm).item())
        adam.step()
    assert len(orders) == 6 and (record.sequence_length >= 0 or max(norms) > record.max_grad_norm)
    for name, expected in weights.items():
        assert (record[f"after.{name}"] - record[f"before.{name}"]).abs().max() > 0, name
        torch.testing.assert_close(record[f"after.{name}"], expected.detach(), rtol=0, atol=1e-5)
    assert record["metric.total_loss"].item() == pytest.approx(losses / count, rel=1e-5)
    assert record["metric.grad_norm"].item() == pytest.approx(sum(norms) / len(norms), rel=1e-5)
    assert record["metric.updates"].item() == 6
