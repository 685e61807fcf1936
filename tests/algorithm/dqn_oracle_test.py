"""dqn_oracle_test.py: repeats the iterations recorded by dqn_record_test.cpp in plain Python and torch, in double: the
random numbers of the draws, a ring that is a list of all steps, priorities without a tree, targets step by step, and
gradients by autograd."""

import copy

import pytest
import torch
from algorithm.recording import Recording, recorded

NAMES = ["blocks", "conservative", "conservative_quantiles", "double_n_step", "dueling", "parametric", "pinball", "plain", "prioritized", "quantiles", "spaced"]


def philox(counter, key):
    """Philox 4x32-10 (Salmon et al. 2011)."""
    counter, key = list(counter), list(key)
    for _ in range(10):
        first, second = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [second >> 32 ^ counter[1] ^ key[0], second & 0xFFFFFFFF, first >> 32 ^ counter[3] ^ key[1], first & 0xFFFFFFFF]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter


def draw_word(seed, replica, k, iteration, draw):
    stream = 6
    return philox([replica, k, iteration, draw], [seed, stream << 24])[0]


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    files = recorded("dqn_record_test.cpp", tmp_path_factory.mktemp("records"), NAMES)
    return {name: Recording(file, set()) for name, file in files.items()}


@pytest.fixture(params=NAMES)
def record(request, recordings):
    return recordings[request.param]


def q_values(record, weights, observation):
    """Quantiles of the values of all choices, a list of one tensor [choices, K] per head."""
    x, layer = observation, 0
    if record.parametric:  # one row for each choice, and one output
        x = torch.cat([observation.expand(sum(record.heads), -1), record["choices"]], 1)
    while f"layers.{layer}.weight" in weights:
        x = torch.tanh(x @ weights[f"layers.{layer}.weight"].T + weights[f"layers.{layer}.bias"])
        layer += 1
    head, k = "layers.head" if "layers.head.weight" in weights else "policy_head", int(record.quantiles)
    x = x @ weights[f"{head}.weight"].T + weights[f"{head}.bias"]
    if record.parametric:
        return x.split(record.heads)
    values = x[k if record.dueling else 0 :].unflatten(-1, (-1, k)).split(record.heads)
    if record.dueling:
        values = [advantage - advantage.mean(0) + x[:k] / len(values) for advantage in values]
    return values


def loss_of(record, target, value):
    """Of one row: tensors of K quantiles."""
    error, h = target.unsqueeze(0) - value.unsqueeze(1), record.huber
    huber = torch.where((error.abs() <= h) | (h == 0), 0.5 * error**2, h * (error.abs() - h / 2))
    if len(value) == 1:
        return huber.sum()
    middle = (torch.arange(len(value)) + 0.5) / len(value)
    share = (middle.unsqueeze(1) - (error.detach() < 0).double()).abs()
    return (share * (error.abs() if h == 0 else huber / h)).mean(1).sum()


def conservative(q, action, mask):
    """The penalty of one head of CQL (Kumar et al. 2020, eq. 4)."""
    counts = torch.ones(len(q), dtype=torch.bool) if mask is None else mask != 0
    counts[action] = True  # of a head without a legal choice
    return q[counts].logsumexp(0) - q[action]


class Replay:
    """Every step of every replica since the beginning; which of them a ring still holds is computed."""

    def __init__(self, record):
        self.record, self.n = record, int(record.n_step)
        # Of networks with a state, steps of a window before those that are learned from, and these; and how many of the
        # newest entries no window can begin with.
        self.burn_in, self.length = (int(getattr(record, name, default)) for name, default in (("burn_in", 0), ("sequence_length", 1)))
        self.reach = self.burn_in + self.length + self.n - 1
        steps, self.envs, self.agents = record["0.reward"].shape
        per_replica = -(-int(record.buffer_size) // self.envs)
        self.capacity = -(-per_replica // steps) * steps
        self.steps, self.entries = steps, 0
        self.rows = {}
        self.priority = [{} for _ in range(self.envs)]  # of entries that can be drawn
        self.highest = [1.0] * self.envs

    def append(self, iteration):
        record, steps = self.record, self.steps
        for name in ("observation", "action", "active", "reward", "agent_terminated", "terminated", "truncated", "reset_step", "action_mask"):
            if f"{iteration}.{name}" in record.tensors:
                rows = record[f"{iteration}.{name}"][:steps]
                self.rows[name] = torch.cat([self.rows[name], rows]) if name in self.rows else rows
        self.entries += steps
        newest = self.entries - self.reach
        for e in range(self.envs):
            for g in range(max(newest - steps, 0), newest):
                if any(self.played(g + self.burn_in + t, e).any() for t in range(self.length)):
                    self.priority[e][g] = self.highest[e]
            for g in [g for g in self.priority[e] if g < self.oldest()]:
                del self.priority[e][g]

    def oldest(self):
        return max(self.entries - self.capacity, 0)

    def played(self, g, e):
        return (self.rows["active"][g, e] != 0) & (self.rows["reset_step"][g, e] == 0)

    def draw(self, iteration, draw):
        """[(entry, replica, weight)] of a batch: with which entry a window begins."""
        record = self.record
        batch, seed = int(record.batch_size) // self.length, int(record.seed)
        each, every = max(batch // self.envs, 1), max(self.envs // batch, 1)
        offset = draw_word(seed, 0xFFFFFFFF, 0, iteration, draw) * every >> 32 if every > 1 else 0
        drawable = min(self.entries, self.capacity) - self.reach
        drawn = []
        for e in range(offset, self.envs, every):
            for k in range(each):
                word = draw_word(seed, e, k, iteration, draw)
                if not record.prioritized:
                    drawn.append((self.oldest() + (word * drawable >> 32), e, 1.0))
                    continue
                total, left = sum(self.priority[e].values()), (k + (word >> 8) / 2**24) / each
                left *= total
                # The ring's slots are searched in order.
                for g in sorted(self.priority[e], key=lambda g: g % self.capacity):
                    if left < self.priority[e][g]:
                        break
                    left -= self.priority[e][g]
                drawn.append((g, e, (drawable * self.priority[e][g] / total) ** -record.importance_exponent))
        return drawn

    def prioritize(self, errors):
        """errors: by (replica, entry) those of all agents, once for each time that it was drawn."""
        for (e, g), of_agents in errors.items():
            drawn_once = of_agents[-int(self.played(g, e).sum()) :]
            priority = (sum(drawn_once) / len(drawn_once) + 1e-6) ** self.record.priority_exponent
            self.priority[e][g] = priority
            self.highest[e] = max(self.highest[e], priority)

    def priorities(self):
        """[replicas, slots of the ring that are filled], 0 where nothing can be drawn."""
        slots = torch.zeros(self.envs, min(self.entries, self.capacity), dtype=torch.double)
        for e in range(self.envs):
            for g, priority in self.priority[e].items():
                slots[e, g % self.capacity] = priority
        return slots

    def returns(self, g, e, a):
        """Discounted rewards, discount of what follows, and the entry that follows."""
        record, rows = self.record, self.rows
        total, discount = 0.0, 1.0
        for k in range(self.n):
            total += discount * record.reward_scale * rows["reward"][g + k, e, a].item()
            discount *= record.gamma
            if rows["terminated"][g + k, e] or rows["agent_terminated"][g + k, e, a]:
                return total, 0.0, None
            if rows["truncated"][g + k, e]:
                break
        return total, discount, g + k + 1


def learn(record):
    """Yields the weights, priorities and measurements of every iteration."""
    weights = {name: tensor.clone().requires_grad_() for name, tensor in record.prefixed("before.").items()}
    target = {name: tensor.detach().clone() for name, tensor in weights.items()}
    adam = torch.optim.Adam(weights.values(), lr=record.lr, eps=record.adam_epsilon)
    replay = Replay(record)
    played = replay.steps * replay.envs
    every = int(record.target_every)
    updates = round(record.replay_ratio * played / record.batch_size)
    for iteration in range(6):
        replay.append(iteration)
        losses, count, kinds = 0.0, 0.0, {"truncated": 0, "terminated": 0, "masked": 0}
        learns = (iteration + 1) * played >= record.learning_starts
        for update in range(updates if learns else 0):
            first, last = iteration * played, (iteration + 1) * played
            moves = [k for k in range(update + 1) if k == 0 or k * played // (updates * every) > (k - 1) * played // (updates * every)]
            if first // every < last // every and moves[-1] == update:
                target = {name: (1 - record.tau) * target[name] + record.tau * weights[name].detach() for name in weights}
            loss, weight_sum, errors = 0.0, 0.0, {}
            for g, e, weight in replay.draw(iteration, update):
                for a in range(replay.agents):
                    if not replay.played(g, e)[a]:
                        kinds["masked"] += 1
                        continue
                    rewards, discount, after = replay.returns(g, e, a)
                    aim = torch.full((int(record.quantiles),), rewards, dtype=torch.double)
                    if discount:
                        seen = replay.rows["observation"][after, e, a]
                        by_target = q_values(record, target, seen)
                        by_network = q_values(record, {n: w.detach() for n, w in weights.items()}, seen)
                        legal = [torch.ones(n, dtype=torch.bool) for n in record.heads]
                        if "action_mask" in replay.rows:
                            legal = (replay.rows["action_mask"][after, e, a] != 0).split(record.heads)
                        chosen_by = by_network if record.double_q else by_target
                        for q, chosen, allowed in zip(by_target, chosen_by, legal):
                            aim = aim + discount * q[chosen.mean(-1).masked_fill(~allowed, -torch.inf).argmax()].detach()
                        kinds["truncated"] += int(replay.rows["truncated"][after - 1, e])
                    else:
                        kinds["terminated"] += 1
                    values = q_values(record, weights, replay.rows["observation"][g, e, a])
                    value = sum(q[replay.rows["action"][g, e, a, h].long()] for h, q in enumerate(values))
                    loss, weight_sum = loss + weight * loss_of(record, aim, value), weight_sum + weight
                    masks = replay.rows["action_mask"][g, e, a].split(record.heads) if "action_mask" in replay.rows else [None] * len(values)
                    for h, (q, mask) in enumerate(zip(values, masks)):
                        loss = loss + weight * record.cql_alpha * conservative(q.mean(-1), replay.rows["action"][g, e, a, h].long(), mask)
                    errors.setdefault((e, g), []).append((aim.mean() - value.mean()).abs().item())
            losses, count = losses + float(torch.as_tensor(loss).detach()), count + weight_sum
            replay.prioritize(errors)
            if weight_sum == 0:
                continue
            adam.zero_grad()
            (loss / weight_sum).backward()
            torch.nn.utils.clip_grad_norm_(weights.values(), record.max_grad_norm)
            adam.step()
        yield {"weights": copy.deepcopy({n: w.detach() for n, w in weights.items()}), "priority": replay.priorities(), "loss": losses / count if count else None, "kinds": kinds}


def test_every_iteration(record):
    seen = {"truncated": 0, "terminated": 0, "masked": 0}
    for i, expected in enumerate(learn(record)):
        for name, tensor in expected["weights"].items():
            torch.testing.assert_close(record[f"{i}.after.{name}"], tensor, rtol=0, atol=1e-5, msg=lambda m: f"{i} {name}: {m}")
        if expected["loss"] is None:
            assert i == 0 and torch.equal(record["0.after.layers.0.weight"], record["before.layers.0.weight"])
        else:
            assert record[f"{i}.metric.total_loss"].item() == pytest.approx(expected["loss"], rel=1e-4)
        for kind, count in expected["kinds"].items():
            seen[kind] += count
        if not record.prioritized:
            continue
        torch.testing.assert_close(record[f"{i}.priorities"], expected["priority"], rtol=1e-4, atol=1e-5)
    assert min(seen.values()) > 0, seen
