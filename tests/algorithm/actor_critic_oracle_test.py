"""actor_critic_oracle_test.py: repeats the iterations recorded by actor_critic_record_test.cpp in plain Python and torch,
in double: replay and random numbers as dqn_oracle_test.py, targets row by row, torch's distributions, and gradients by
autograd."""

import copy
import math

import pytest
import torch
from algorithm.dqn_oracle_test import Replay, loss_of, philox
from algorithm.recording import Recording, recorded

NAMES = [
    "ddpg",
    "sac",
    "sac_blocks",
    "sac_central",
    "sac_choices",
    "sac_choices_central",
    "sac_choices_default",
    "sac_conservative",
    "sac_five_critics",
    "sac_fixed",
    "td3",
    "td3_blocks",
    "td3_central",
    "td3_quantiles",
]
# In which columns of a row networks find what they read: rows of these cases are what all networks read, side by side.
COLUMNS = {"observation": slice(6), "state": slice(6, 11), "agent_id": slice(11, 14)}


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    files = recorded("actor_critic_record_test.cpp", tmp_path_factory.mktemp("records"), NAMES)
    return {name: with_all_parts(Recording(file, {"algorithm", "critic_reads"})) for name, file in files.items()}


def with_all_parts(record):
    for i in range(6 if record.critic_reads else 0):
        seen = record.tensors[f"{i}.observation"]
        rows = [seen, record.tensors[f"{i}.state"].expand(*seen.shape[:-1], -1), torch.eye(seen.shape[2]).expand(*seen.shape[:-1], -1)]
        record.tensors[f"{i}.observation"] = torch.cat(rows, -1)
    return record


@pytest.fixture(params=NAMES)
def record(request, recordings):
    return recordings[request.param]


def normal(words):
    first, second = (word >> 8 for word in words[:2])
    return math.sqrt(-2 * math.log(1 - first / 2**24)) * math.cos(2 * math.pi * second / 2**24)


def actor_normals(record, row, purpose, iteration, update):
    """The normal numbers of a row of a batch, [components]."""
    key = [int(record.seed), 7 << 24]
    counters = ([row, k | purpose << 24, iteration, update] for k in range(int(record.components)))
    return torch.tensor([normal(philox(counter, key)) for counter in counters], dtype=torch.double)


def perceptron(weights, prefix, head, row, reads, action=None):
    layer, x = 0, row[..., COLUMNS[reads[0]]]
    others = {name: row[..., COLUMNS[name]] for name in reads[1:]} | ({} if action is None else {"action": action})
    while f"{prefix}layers.{layer}.weight" in weights:
        x = x @ weights[f"{prefix}layers.{layer}.weight"].T + weights[f"{prefix}layers.{layer}.bias"]
        for name, part in others.items() if layer == 0 else ():
            x = x + part @ weights[f"{prefix}layers.0.{name}.weight"].T
        x = torch.tanh(x)
        layer += 1
    return x @ weights[f"{head}.weight"].T + weights[f"{head}.bias"]


def actor(weights, observation):
    return perceptron(weights, "", "policy_head", observation, ["observation"])


def critics(record, weights, observation, action=None):
    """A list: for every critic K quantiles of the value of the action, or the values of all choices."""
    reads = record.critic_reads.split() or ["observation"]
    return [perceptron(weights, f"critics.{i}.", f"critics.{i}.head", observation, reads, action) for i in range(int(record.critics))]


def lowest(values):
    return min(values, key=lambda quantiles: quantiles.mean().item())


def squashed_draw(output, z):
    """An action, and its log-probability by torch."""
    mean, log_std = output.chunk(2)
    normal = torch.distributions.Normal(mean, log_std.clamp(-20, 2).exp())
    squashed = torch.distributions.TransformedDistribution(normal, [torch.distributions.TanhTransform(cache_size=1)])
    u = mean + normal.scale * z
    action = squashed.transforms[0](u)
    return action, squashed.log_prob(action).sum()


def choice_distributions(record, logits, legal):
    """For every head, probabilities and their logarithms, 0 for illegal choices."""
    found = []
    for head, allowed in zip(logits.split(record.heads), legal.split(record.heads)):
        distribution = torch.distributions.Categorical(logits=head.masked_fill(allowed == 0, -1e30))
        found.append((distribution.probs, torch.where(allowed == 0, 0.0, distribution.logits)))
    return found


class Learning:
    """Weights of the networks, targets and the temperature, and what moves them."""

    def __init__(self, record):
        self.record = record
        self.weights = {name: tensor.clone().requires_grad_() for name, tensor in record.prefixed("before.").items()}
        self.target = {name: tensor.detach().clone() for name, tensor in self.weights.items()}
        self.of_critics = [tensor for name, tensor in self.weights.items() if name.startswith("critics.")]
        self.of_actor = [tensor for name, tensor in self.weights.items() if not name.startswith("critics.")]
        adam = lambda parameters, lr: torch.optim.Adam(parameters, lr=lr, eps=record.adam_epsilon)
        self.critic_adam, self.actor_adam = adam(self.of_critics, record.critic_lr), adam(self.of_actor, record.lr)
        self.log_alpha = None
        if record.algorithm == "SAC":
            self.log_alpha = torch.tensor(math.log(record.temperature), dtype=torch.double, requires_grad=True)
            self.alpha_adam = adam([self.log_alpha], record.temperature_lr)

    def target_entropy(self, legal):
        """Of a row. By default minus the number of components (Haarnoja et al. 2018), or a share of the highest entropy: that of
        the uniform distribution over what the agent may choose (Christodoulou 2019, with a share of 0.98; ours is 0.5)."""
        record = self.record
        if hasattr(record, "target_entropy"):
            return record.target_entropy
        if record.components:
            return -record.components
        uniform = [torch.distributions.Categorical(probs=(allowed != 0).double()) for allowed in legal.split(record.heads)]
        return 0.5 * sum(float(distribution.entropy()) for distribution in uniform)

    def alpha(self):
        return self.log_alpha.exp().item()

    def following(self, observation, legal, row, iteration, update):
        """The value of what follows: K numbers."""
        record = self.record
        if record.algorithm != "SAC":
            action = torch.tanh(actor(self.target, observation))
            if record.algorithm == "TD3":
                noise = record.target_noise * actor_normals(record, row, 0, iteration, update)
                action = (action + noise.clamp(-record.target_noise_clip, record.target_noise_clip)).clamp(-1, 1)
            return lowest(critics(record, self.target, observation, action))
        output = actor(self.weights, observation).detach()
        if record.components:
            action, log_prob = squashed_draw(output, actor_normals(record, row, 0, iteration, update))
            return lowest(critics(record, self.target, observation, action)) - self.alpha() * log_prob
        value = torch.zeros(1, dtype=torch.double)
        values = torch.stack(critics(record, self.target, observation)).amin(0).split(record.heads)
        for (p, log_p), q in zip(choice_distributions(record, output, legal), values):
            value += (p * (q - self.alpha() * log_p)).sum()
        return value

    def penalty(self, values, observation, action, legal, row, iteration, update):
        """Of conservative Q-learning, summed over critics."""
        record = self.record
        if record.components:
            drawn = squashed_draw(actor(self.weights, observation).detach(), actor_normals(record, row, 2, iteration, update))[0]
            return sum(q.mean() for q in critics(record, self.weights, observation, drawn)) - sum(q.mean() for q in values)
        total = 0.0
        for value in values:
            for h, (q, allowed) in enumerate(zip(value.split(record.heads), legal.split(record.heads))):
                allowed = (allowed != 0) | (torch.arange(len(q)) == action[h])
                total = total + q.masked_fill(~allowed, -torch.inf).logsumexp(0) - q[action[h].long()]
        return total

    def actor_loss(self, observation, legal, row, iteration, update):
        """The loss of a row, the value, and the log-probability, or its expectation."""
        record = self.record
        frozen = {name: tensor.detach() for name, tensor in self.weights.items()}
        output = actor(self.weights, observation)
        if record.algorithm != "SAC":
            value = critics(record, frozen, observation, torch.tanh(output))[0].mean()
            return -value, value.detach(), torch.zeros(())
        if record.components:
            action, log_prob = squashed_draw(output, actor_normals(record, row, 1, iteration, update))
            value = lowest(critics(record, frozen, observation, action)).mean()
            return self.alpha() * log_prob - value, value.detach(), log_prob.detach()
        values = torch.stack(critics(record, frozen, observation)).amin(0).split(record.heads)
        loss = log_prob = 0.0
        for (p, log_p), q in zip(choice_distributions(record, output, legal), values):
            loss = loss + (p * (self.alpha() * log_p - q)).sum()
            log_prob = log_prob + (p * log_p).sum().detach()
        return loss, torch.zeros(()), log_prob

    def step(self, adam, parameters, loss):
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, self.record.max_grad_norm)
        adam.step()

    def follow(self):
        tau = self.record.tau
        self.target = {name: (1 - tau) * self.target[name] + tau * self.weights[name].detach() for name in self.target}


def learn(record):
    """Yields the weights, priorities and measurements of every iteration."""
    learning, replay = Learning(record), Replay(record)
    played = replay.steps * replay.envs
    updates = round(record.replay_ratio * played / record.batch_size)
    every = torch.ones(sum(record.heads))
    for iteration in range(6):
        replay.append(iteration)
        sums = {"value_loss": 0.0, "policy_loss": 0.0, "entropy": 0.0}
        critic_rows = actor_rows = 0.0
        learns = (iteration + 1) * played >= record.learning_starts
        for update in range(updates if learns else 0):
            loss, weight_sum, errors, rows = 0.0, 0.0, {}, []
            for unit, (g, e, weight) in enumerate(replay.draw(iteration, update)):
                for a in range(replay.agents):
                    if not replay.played(g, e)[a]:
                        continue
                    row = unit * replay.agents + a
                    rewards, discount, after = replay.returns(g, e, a)
                    aim = torch.full((int(record.quantiles),), rewards, dtype=torch.double)
                    if discount:
                        legal = replay.rows["action_mask"][after, e, a] if "action_mask" in replay.rows else every
                        seen = replay.rows["observation"][after, e, a]
                        aim = aim + discount * learning.following(seen, legal, row, iteration, update).detach()
                    seen, action = replay.rows["observation"][g, e, a], replay.rows["action"][g, e, a]
                    legal = replay.rows["action_mask"][g, e, a] if "action_mask" in replay.rows else every
                    rows.append((seen, legal, row))
                    values = critics(record, learning.weights, seen, action if record.components else None)
                    if getattr(record, "cql_alpha", 0):
                        loss = loss + weight * record.cql_alpha * learning.penalty(values, seen, action, legal, row, iteration, update)
                    if not record.components:
                        values = [sum(q[action[h].long()] for h, q in enumerate(value.split(record.heads))).view(1) for value in values]
                    loss, weight_sum = loss + weight * sum(loss_of(record, aim, value) for value in values), weight_sum + weight
                    errors.setdefault((e, g), []).append((aim.mean() - values[0].mean()).abs().item())
            sums["value_loss"] += float(torch.as_tensor(loss).detach())
            critic_rows += weight_sum
            replay.prioritize(errors)
            if weight_sum:
                learning.step(learning.critic_adam, learning.of_critics, loss / weight_sum)
            if (iteration * updates + update + 1) % record.policy_delay:
                continue
            losses = [learning.actor_loss(seen, legal, row, iteration, update) for seen, legal, row in rows]
            if losses:
                log_prob = sum(row[2] for row in losses) / len(losses)
                learning.step(learning.actor_adam, learning.of_actor, sum(row[0] for row in losses) / len(losses))
                if getattr(record, "tune_temperature", 0):
                    gap = float(log_prob + sum(learning.target_entropy(legal) for _, legal, _ in rows) / len(rows))
                    learning.alpha_adam.zero_grad()
                    (-learning.log_alpha * gap).backward()
                    learning.alpha_adam.step()
            learning.follow()
            sums["policy_loss"] += float(sum(row[0].detach() for row in losses))
            sums["entropy"] -= float(sum(row[2] for row in losses))
            actor_rows += len(losses)
        yield {
            "weights": copy.deepcopy({n: w.detach() for n, w in learning.weights.items()}),
            "log_alpha": None if learning.log_alpha is None else learning.log_alpha.item(),
            "priority": replay.priorities(),
            "value_loss": sums["value_loss"] / critic_rows if critic_rows else None,
            "policy_loss": sums["policy_loss"] / actor_rows if actor_rows else None,
            "entropy": sums["entropy"] / actor_rows if actor_rows and record.algorithm == "SAC" else None,
        }


def test_every_iteration(record):
    for i, expected in enumerate(learn(record)):
        for name, tensor in expected["weights"].items():
            torch.testing.assert_close(record[f"{i}.after.{name}"], tensor, rtol=0, atol=1e-5, msg=lambda m: f"{i} {name}: {m}")
        if expected["log_alpha"] is not None:
            assert record[f"{i}.log_temperature"].item() == pytest.approx(expected["log_alpha"], abs=1e-5)
        for name in ("value_loss", "policy_loss", "entropy"):
            if name == "value_loss" and getattr(record, "cql_alpha", 0):
                continue  # it has the penalty of choices only
            if expected[name] is not None:
                assert record[f"{i}.metric.{name}"].item() == pytest.approx(expected[name], rel=1e-4, abs=1e-5), (i, name)
        unmoved = torch.equal(record[f"{i}.after.layers.0.weight"], record["before.layers.0.weight"])
        assert unmoved == (i == 0), "nothing is learned before learning_starts"
        if not record.prioritized:
            continue
        torch.testing.assert_close(record[f"{i}.priorities"], expected["priority"], rtol=1e-4, atol=1e-5)


def action_words(record, step, replica, agent, component):
    return philox([replica, step, agent, component], [int(record.seed), 1 << 24])


def test_actions(record):
    """Actions that were played: uniform at first, then those of the actor with its noise."""
    if not record.components:
        return
    components = range(int(record.components))
    before = {name: tensor for name, tensor in record.prefixed("before.").items()}
    kinds = set()
    for i in range(6):
        actions = record[f"{i}.action"]
        steps, envs, agents, _ = actions.shape
        random = i * steps * envs < record.random_steps
        for t in range(steps):
            for e in range(envs):
                for a in range(agents):
                    output = actor(before, record[f"{i}.observation"][t, e, a])
                    words = [action_words(record, i * steps + t, e, a, k) for k in components]
                    z = torch.tensor([normal(word) for word in words], dtype=torch.double)
                    if record.algorithm == "SAC":
                        expected = squashed_draw(output, z)[0]
                    else:
                        x = record.noise * z
                        if record.noise_damping < 1:
                            if not record[f"{i}.restarted"][t, e, a]:
                                x = x + (1 - record.noise_damping) * record[f"{i}.noise"][t, e, a]
                                kinds.add("carried")
                            torch.testing.assert_close(record[f"{i}.noise"][t + 1, e, a], x, rtol=0, atol=1e-5)
                        expected = (torch.tanh(output) + x).clamp(-1, 1)
                    if random:
                        expected = torch.tensor([2 * (word[3] >> 8) / 2**24 - 1 for word in words], dtype=torch.double)
                    torch.testing.assert_close(actions[t, e, a], expected, rtol=0, atol=1e-5)
        before = record.prefixed(f"{i}.after.")
        kinds.add("random" if random else "own")
    assert kinds >= {"random", "own"}
    assert ("carried" in kinds) == (getattr(record, "noise_damping", 1) < 1)
