"""team_oracle_test.py: recomputes the updates recorded by team_record_test.cpp with Python's torch and its autograd, in
double: values of teams are sums (Sunehag et al. 2018), or what QMIX's mixing network makes of them (Rashid et al. 2018,
figure 2), with torch's own abs and elu."""

import pytest
import torch
from algorithm.dqn_oracle_test import Replay
from algorithm.recording import Recording, recorded

ROLLOUTS = ["pqn_qmix", "pqn_vdn"]
REPLAYS = ["qmix", "qmix_blocks", "qmix_n_step", "vdn", "vdn_dueling"]
TOLERANCE = {"rtol": 1e-5, "atol": 3e-6}  # float against double


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    files = recorded("team_record_test.cpp", tmp_path_factory.mktemp("records"), sorted(ROLLOUTS + REPLAYS))
    return {name: Recording(file, set()) for name, file in files.items()}


@pytest.fixture
def record(request, recordings):
    return recordings[request.param]


def q_values(record, weights, observation):
    """Values of all choices, a list of one tensor [..., choices] per head."""
    x, layer = observation, 0
    while f"layers.{layer}.weight" in weights:
        x = torch.tanh(x @ weights[f"layers.{layer}.weight"].T + weights[f"layers.{layer}.bias"])
        layer += 1
    head = "layers.head" if record.dueling else "policy_head"
    x = x @ weights[f"{head}.weight"].T + weights[f"{head}.bias"]
    if not record.dueling:
        return x.split(record.heads, -1)
    values = x[..., 1:].split(record.heads, -1)
    return [advantage - advantage.mean(-1, keepdim=True) + x[..., :1] / len(values) for advantage in values]


def mixed(record, weights, q, in_game, state):
    """The value of one team: q, in_game [agents], state [numbers]."""
    if not in_game.any():
        return torch.zeros((), dtype=torch.double)
    q = torch.where(in_game, q, torch.zeros_like(q))
    if "mixer.head.weight" not in weights:
        return q.sum()
    agents, units = len(q), int(record.units)
    x = torch.relu(weights["mixer.layers.0.weight"] @ state + weights["mixer.layers.0.bias"])
    x = weights["mixer.head.weight"] @ x + weights["mixer.head.bias"]
    first, bias, second, last = x.split([agents * units, units, units, 1])
    hidden = torch.nn.functional.elu(q @ first.view(agents, units).abs() + bias)
    return (hidden * second.abs()).sum() + last.squeeze()


def state_of(states, *at):
    return None if states is None else states[at]


def legal_of(record, mask, shape):
    if mask is None:
        return [torch.ones(*shape, n, dtype=torch.bool) for n in record.heads]
    return (mask != 0).split(record.heads, -1)


def optional(record, name):
    return record[name] if name in record.tensors else None


# --- rollouts


def team_values(record, weights):
    """[T + 1, E]: with every agent's best legal choices."""
    values = q_values(record, weights, record["observation"])
    legal = legal_of(record, optional(record, "action_mask"), record["value"].shape)
    best = sum(q.masked_fill(~allowed, -torch.inf).amax(-1) for q, allowed in zip(values, legal))
    torch.testing.assert_close(record["value"], best, **TOLERANCE)
    steps, envs, _ = best.shape
    states = optional(record, "state")
    in_game = record["active"].bool()
    return torch.stack([torch.stack([mixed(record, weights, best[t, e], in_game[t, e], state_of(states, t, e)) for e in range(envs)]) for t in range(steps)])


@pytest.mark.parametrize("record", ROLLOUTS, indirect=True)
def test_targets_are_the_lambda_returns_of_the_team(record):
    value = team_values(record, record.prefixed("before."))
    steps, envs, agents = record["reward"].shape
    played = record["active"][:steps].bool() & ~record["reset_step"].bool().unsqueeze(-1)
    reward = (record["reward"] * played).sum(-1) * record.reward_scale

    def target(t, e):
        if record["terminated"][t, e]:
            return reward[t, e]
        later = value[t + 1, e]
        if not record["truncated"][t, e] and t + 1 < steps and played[t + 1, e].any():
            later = (1 - record.decay) * later + record.decay * target(t + 1, e)
        elif not record["truncated"][t, e] and t + 1 < steps:
            later = (1 - record.decay) * later  # nobody is in the game, and its value is 0
        return reward[t, e] + record.gamma * later

    partly = played.any(-1) & ~played.all(-1)
    assert record["truncated"].sum() > 2 and record["agent_terminated"].sum() > 5 and partly.sum() > 5
    for t, e in played.any(-1).nonzero().tolist():
        torch.testing.assert_close(record["target"][t, e], target(t, e).expand(agents), **TOLERANCE)


@pytest.mark.parametrize("record", ROLLOUTS, indirect=True)
def test_one_update(record):
    weights = {name: tensor.clone().requires_grad_() for name, tensor in record.prefixed("before.").items()}
    steps, _, agents = record["reward"].shape
    rows = {name: record[name][:steps].flatten(0, 2) for name in ("observation", "action", "target", "mask")}
    states = record["state"][:steps].flatten(0, 1) if "state" in record.tensors else None
    adam = torch.optim.Adam(weights.values(), lr=record.lr, eps=record.adam_epsilon)
    losses, norms, count = 0.0, [], 0
    for order in record.orders():
        teams = order.view(-1, agents)
        assert torch.equal(teams[:, 0] % agents, torch.zeros_like(teams[:, 0]))
        loss, teams_that_count = 0.0, 0
        for team in teams:
            in_game = rows["mask"][team] > 0
            if not in_game.any():
                continue
            values = q_values(record, weights, rows["observation"][team])
            chosen = sum(q.gather(-1, rows["action"][team][:, h : h + 1].long()).squeeze(-1) for h, q in enumerate(values))
            value = mixed(record, weights, chosen, in_game, state_of(states, team[0] // agents))
            loss = loss + 0.5 * (value - rows["target"][team[0]]) ** 2
            teams_that_count += 1
        losses, count = losses + loss.item(), count + teams_that_count
        adam.zero_grad()
        (loss / teams_that_count).backward()
        norms.append(torch.nn.utils.clip_grad_norm_(weights.values(), record.max_grad_norm).item())
        adam.step()
    assert len(norms) == 6 and max(norms) > record.max_grad_norm
    for name, expected in weights.items():
        assert (record[f"after.{name}"] - record[f"before.{name}"]).abs().max() > 0, name
        torch.testing.assert_close(record[f"after.{name}"], expected.detach(), rtol=0, atol=1e-5)
    assert record["metric.total_loss"].item() == pytest.approx(losses / count, rel=1e-5)
    assert record["metric.grad_norm"].item() == pytest.approx(sum(norms) / len(norms), rel=1e-5)


# --- replay memories


class TeamReplay(Replay):
    def append(self, iteration):
        record = self.record
        if f"{iteration}.state" in record.tensors:
            rows = record[f"{iteration}.state"][: self.steps]
            self.rows["state"] = torch.cat([self.rows["state"], rows]) if "state" in self.rows else rows
        super().append(iteration)

    def transition(self, g, e):
        """Of the team: discounted rewards, discount, the entry that follows, and who is in the game there."""
        record, rows = self.record, self.rows
        total, discount = 0.0, 1.0
        for k in range(g, g + self.n):
            total += discount * record.reward_scale * rows["reward"][k, e][self.played(k, e)].sum().item()
            discount *= record.gamma
            if rows["terminated"][k, e]:
                return total, 0.0, None, None
            if rows["truncated"][k, e]:
                return total, discount, k + 1, self.played(k, e) & (rows["agent_terminated"][k, e] == 0)
        return total, discount, k + 1, self.played(k + 1, e)


def huber(error, h):
    return 0.5 * error**2 if h == 0 or error.abs() <= h else h * (error.abs() - h / 2)


def best_values(record, weights, target, replay, after, e):
    """[agents]: what the target network says of the best legal choices."""
    seen = replay.rows["observation"][after, e]
    by_target, by_network = q_values(record, target, seen), q_values(record, {n: w.detach() for n, w in weights.items()}, seen)
    legal = legal_of(record, replay.rows["action_mask"][after, e] if "action_mask" in replay.rows else None, seen.shape[:1])
    total = torch.zeros(len(seen), dtype=torch.double)
    for q, chosen, allowed in zip(by_target, by_network if record.double_q else by_target, legal):
        total += q.gather(-1, chosen.masked_fill(~allowed, -torch.inf).argmax(-1, keepdim=True)).squeeze(-1)
    return total


def learn(record):
    weights = {name: tensor.clone().requires_grad_() for name, tensor in record.prefixed("before.").items()}
    target = {name: tensor.detach().clone() for name, tensor in weights.items()}
    adam = torch.optim.Adam(weights.values(), lr=record.lr, eps=record.adam_epsilon)
    replay = TeamReplay(record)
    played, every = replay.steps * replay.envs, int(record.target_every)
    updates = round(record.replay_ratio * played / record.batch_size)
    for iteration in range(6):
        replay.append(iteration)
        losses, count, kinds = 0.0, 0.0, {"truncated": 0, "terminated": 0, "partly": 0, "left": 0}
        first, last = iteration * played, (iteration + 1) * played
        for update in range(updates if last >= record.learning_starts else 0):
            if update == 0 and first // every < last // every:
                target = {name: (1 - record.tau) * target[name] + record.tau * weights[name].detach() for name in weights}
            loss, weight_sum, errors = 0.0, 0.0, {}
            states = replay.rows.get("state")
            for g, e, weight in replay.draw(iteration, update):
                in_game = replay.played(g, e)
                if not in_game.any():
                    continue
                aim, discount, after, follow = replay.transition(g, e)
                if discount:
                    q = best_values(record, weights, target, replay, after, e)
                    aim = aim + discount * mixed(record, target, q, follow, state_of(states, after, e)).detach()
                    kinds["truncated"] += int(replay.rows["truncated"][after - 1, e])
                    kinds["left"] += int((in_game & ~follow).any())
                values = q_values(record, weights, replay.rows["observation"][g, e])
                chosen = sum(q.gather(-1, replay.rows["action"][g, e][:, h : h + 1].long()).squeeze(-1) for h, q in enumerate(values))
                error = aim - mixed(record, weights, chosen, in_game, state_of(states, g, e))
                loss, weight_sum = loss + weight * huber(error, record.huber), weight_sum + weight
                errors.setdefault((e, g), []).extend([error.abs().item()] * int(in_game.sum()))
                kinds["terminated"] += int(not discount)
                kinds["partly"] += int(not in_game.all())
            losses, count = losses + float(torch.as_tensor(loss).detach()), count + weight_sum
            replay.prioritize(errors)
            adam.zero_grad()
            (loss / weight_sum).backward()
            torch.nn.utils.clip_grad_norm_(weights.values(), record.max_grad_norm)
            adam.step()
        yield {"weights": {n: w.detach().clone() for n, w in weights.items()}, "priority": replay.priorities(), "loss": losses / count if count else None, "kinds": kinds}


@pytest.mark.parametrize("record", REPLAYS, indirect=True)
def test_every_iteration(record):
    seen = {"truncated": 0, "terminated": 0, "partly": 0, "left": 0}
    for i, expected in enumerate(learn(record)):
        for name, tensor in expected["weights"].items():
            torch.testing.assert_close(record[f"{i}.after.{name}"], tensor, rtol=0, atol=1e-5, msg=lambda m: f"{i} {name}: {m}")
        if expected["loss"] is None:
            assert i == 0
        else:
            assert record[f"{i}.metric.total_loss"].item() == pytest.approx(expected["loss"], rel=1e-4)
        for kind, count in expected["kinds"].items():
            seen[kind] += count
        if record.prioritized:
            torch.testing.assert_close(record[f"{i}.priorities"], expected["priority"], rtol=1e-4, atol=1e-5)
    assert min(seen.values()) > 0, seen


@pytest.mark.parametrize("record", ["pqn_qmix", "qmix"], indirect=True)
def test_the_value_of_the_team_rises_with_each_agents(record):
    weights = {**record.prefixed("before."), **record.prefixed("after."), **record.prefixed("5.after.")}
    torch.manual_seed(1)
    in_game = torch.ones(3, dtype=torch.bool)
    for _ in range(200):
        q, state = torch.randn(3, dtype=torch.double), torch.randn(5, dtype=torch.double)
        for agent in range(3):
            more = q.clone()
            more[agent] += torch.rand(()).double()
            assert mixed(record, weights, more, in_game, state) > mixed(record, weights, q, in_game, state)
