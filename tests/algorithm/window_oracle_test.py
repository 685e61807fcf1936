"""window_oracle_test.py: repeats the iterations recorded by window_record_test.cpp in plain Python and torch, in double:
recurrent experience replay (Kapturowski et al. 2019, ICLR): a network runs over a window step by step, from the state that
was stored at its beginning and from 0 where the agent begins; the first steps only lead to a state, through which no
gradient flows; values of what follows are those of the same unrolling."""

import math

import pytest
import torch
from algorithm.actor_critic_oracle_test import actor_normals, squashed_draw
from algorithm.dqn_oracle_test import Replay, conservative, loss_of
from algorithm.memory import Memory
from algorithm.recording import Recording, recorded
from algorithm.team_oracle_test import TeamReplay, huber, mixed

NAMES = ["dqn", "dqn_parts", "dqn_spaced", "qmix", "sac", "sac_choices", "sac_mingru", "td3", "vdn"]


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    files = recorded("window_record_test.cpp", tmp_path_factory.mktemp("records"), NAMES)
    return {name: Recording(file, {"algorithm"}) for name, file in files.items()}


@pytest.fixture(params=NAMES)
def record(request, recordings):
    return recordings[request.param]


class Windows(TeamReplay):
    """With the states of every step and where agents began."""

    def append(self, iteration):
        record, more = self.record, {"memory": "state", "restarted": "restarted", "state": "stream"}
        for name, recorded_as in more.items():
            if f"{iteration}.{recorded_as}" in record.tensors:
                rows = record[f"{iteration}.{recorded_as}"][: self.steps]
                self.rows[name] = torch.cat([self.rows[name], rows]) if name in self.rows else rows
        Replay.append(self, iteration)

    def prioritize_windows(self, errors):
        """errors: [(replica, first entry, |error| of every agent in every step that counts)], in order."""
        for e, g, of_rows in errors:
            if not of_rows:
                continue
            error = 0.9 * max(of_rows) + 0.1 * sum(of_rows) / len(of_rows)  # section 2.3, with their eta
            self.priority[e][g] = (error + 1e-6) ** self.record.priority_exponent
            self.highest[e] = max(self.highest[e], self.priority[e][g])


def unroll(replay, weights, prefix, h, g, e, a, steps, actions=None):
    """Outputs of steps [0, steps) of the window that begins with entry g. No gradient flows through the burn-in. With
    `actions`, of critics, which read them behind the memory."""
    network, outputs = Memory(weights, prefix), []
    for t in range(steps):
        if t == replay.burn_in:
            h = h.detach()
        if replay.rows["restarted"][g + t, e, a]:
            h = torch.zeros_like(h)
        h = network.step({"observation": replay.rows["observation"][g + t, e, a]}, h)
        outputs.append(network.output(h, **({} if actions is None else {"action": actions[t]})))
    return outputs


def stored(replay, g, e, a):
    return replay.rows["memory"][g, e, a]


def heads(record, output):
    """Quantiles of the values of all choices, a list of one tensor [choices, K] per head."""
    k = int(record.quantiles)
    values = output[k if record.dueling else 0 :].unflatten(-1, (-1, k)).split(record.heads)
    if record.dueling:
        values = [advantage - advantage.mean(0) + output[:k] / len(values) for advantage in values]
    return values


def legal_at(replay, g, e, a):
    return (replay.rows["action_mask"][g, e, a] != 0).split(replay.record.heads)


def best(record, by, chosen_by, legal):
    """K quantiles of the value of the best choices by another network."""
    return sum(q[chosen.mean(-1).masked_fill(~allowed, -torch.inf).argmax()] for q, chosen, allowed in zip(by, chosen_by, legal))


def taken(replay, values, g, e, a):
    return sum(q[replay.rows["action"][g, e, a, h].long()] for h, q in enumerate(values))


class Values:
    """DQN, VDN and QMIX."""

    def __init__(self, record):
        self.record = record
        self.weights = {name: tensor.clone().requires_grad_() for name, tensor in record.prefixed("before.").items()}
        self.target = {name: tensor.detach().clone() for name, tensor in self.weights.items()}
        self.adam = torch.optim.Adam(self.weights.values(), lr=record.lr, eps=record.adam_epsilon)

    def before_update(self, replay, iteration, update):
        played, every = replay.steps * replay.envs, int(self.record.target_every)
        if update == 0 and iteration * played // every < (iteration + 1) * played // every:
            tau = self.record.tau
            self.target = {name: (1 - tau) * self.target[name] + tau * self.weights[name].detach() for name in self.target}

    def window(self, replay, g, e, weight):
        """The loss, the weights of what counts, and errors."""
        record, n = self.record, replay.burn_in + replay.length
        frozen = {name: tensor.detach() for name, tensor in self.weights.items()}
        run = lambda weights, steps: [[heads(record, o) for o in unroll(replay, weights, "layers.", stored(replay, g, e, a), g, e, a, steps)] for a in range(replay.agents)]
        now, by_network, by_target = run(self.weights, n), run(frozen, n + replay.n), run(self.target, n + replay.n)
        chosen_by = by_network if record.double_q else by_target
        loss, counted, errors = 0.0, 0.0, []
        for t in range(replay.burn_in, n):
            in_game = replay.played(g + t, e)
            follow = lambda after, a: best(record, by_target[a][after - g], chosen_by[a][after - g], legal_at(replay, after, e, a)).detach()
            if record.algorithm != "DQN":
                if not in_game.any():
                    continue
                aim, discount, after, there = replay.transition(g + t, e)
                state = lambda at: replay.rows["state"][at, e] if "state" in replay.rows else None
                if discount:
                    q = torch.stack([follow(after, a).squeeze() for a in range(replay.agents)])
                    aim = aim + discount * mixed(record, self.target, q, there, state(after)).detach()
                chosen = torch.stack([taken(replay, now[a][t], g + t, e, a).squeeze() for a in range(replay.agents)])
                error = aim - mixed(record, self.weights, chosen, in_game, state(g + t))
                loss, counted = loss + weight * huber(error, record.huber), counted + weight
                errors.extend([error.abs().item()] * int(in_game.sum()))
                continue
            for a in in_game.nonzero().flatten().tolist():
                rewards, discount, after = replay.returns(g + t, e, a)
                aim = torch.full((int(record.quantiles),), rewards, dtype=torch.double)
                if discount:
                    aim = aim + discount * follow(after, a)
                value = taken(replay, now[a][t], g + t, e, a)
                loss, counted = loss + weight * loss_of(record, aim, value), counted + weight
                for h, (q, mask) in enumerate(zip(now[a][t], legal_at(replay, g + t, e, a))):
                    loss = loss + weight * record.cql_alpha * conservative(q.mean(-1), replay.rows["action"][g + t, e, a, h].long(), mask.clone())
                errors.append((aim.mean() - value.mean()).abs().item())
        return loss, counted, errors

    def learn(self, loss):
        step(self.adam, self.weights.values(), loss, self.record)

    def after_update(self, replay, drawn, number):
        pass


def step(adam, parameters, loss, record):
    adam.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(parameters, record.max_grad_norm)
    adam.step()


class SoftActorCritic:
    """SAC of choices. The critics' states are stored by nobody, and are 0 where a window begins."""

    def __init__(self, record):
        self.record = record
        before = record.prefixed("before.")
        self.actor = {n: t.clone().requires_grad_() for n, t in before.items() if not n.startswith("critics.")}
        self.critics = {n: t.clone().requires_grad_() for n, t in before.items() if n.startswith("critics.")}
        self.target = {n: t.detach().clone() for n, t in self.critics.items()}
        adam = lambda parameters, lr: torch.optim.Adam(parameters, lr=lr, eps=record.adam_epsilon)
        self.actor_adam, self.critic_adam = adam(self.actor.values(), record.lr), adam(self.critics.values(), record.critic_lr)
        self.log_alpha = torch.tensor(math.log(record.temperature), dtype=torch.double, requires_grad=True)
        self.alpha_adam = adam([self.log_alpha], record.temperature_lr)

    @property
    def weights(self):
        return {**self.actor, **self.critics}

    def before_update(self, replay, iteration, update):
        pass

    def act(self, replay, weights, g, e, a, steps):
        return unroll(replay, weights, "layers.", stored(replay, g, e, a), g, e, a, steps)

    def judge(self, replay, weights, g, e, a, steps):
        """[critics][steps]"""
        zero = torch.zeros_like(stored(replay, g, e, a))
        return [unroll(replay, weights, f"critics.{i}.layers.", zero, g, e, a, steps) for i in range(int(self.record.critics))]

    def distributions(self, logits, legal):
        for head, allowed in zip(logits.split(self.record.heads), legal):
            distribution = torch.distributions.Categorical(logits=head.masked_fill(~allowed, -1e30))
            yield distribution.probs, torch.where(allowed, distribution.logits, 0.0)

    def window(self, replay, g, e, weight):
        record, n = self.record, replay.burn_in + replay.length
        frozen = {name: tensor.detach() for name, tensor in self.actor.items()}
        alpha = self.log_alpha.exp().item()
        loss, counted, errors = 0.0, 0.0, []
        for a in range(replay.agents):
            logits = self.act(replay, frozen, g, e, a, n + replay.n)
            by_target, now = self.judge(replay, self.target, g, e, a, n + replay.n), self.judge(replay, self.critics, g, e, a, n)
            for t in range(replay.burn_in, n):
                if not replay.played(g + t, e)[a]:
                    continue
                aim, discount, after = replay.returns(g + t, e, a)
                if discount:
                    lowest = torch.stack([critic[after - g] for critic in by_target]).amin(0).split(record.heads)
                    for (p, log_p), q in zip(self.distributions(logits[after - g], legal_at(replay, after, e, a)), lowest):
                        aim = aim + discount * (p * (q - alpha * log_p)).sum()
                values = [taken(replay, critic[t].split(record.heads), g + t, e, a) for critic in now]
                loss = loss + weight * sum(huber(aim - value, record.huber) for value in values)
                counted += weight
                errors.append(float((aim - values[0]).abs().detach()))
        return loss, counted, errors

    def learn(self, loss):
        step(self.critic_adam, self.critics.values(), loss, self.record)

    def after_update(self, replay, drawn, number):
        record, n = self.record, replay.burn_in + replay.length
        if (number + 1) % record.policy_delay:
            return
        frozen = {name: tensor.detach() for name, tensor in self.critics.items()}
        alpha, losses, gaps = self.log_alpha.exp().item(), [], []
        for g, e, _ in drawn:
            for a in range(replay.agents):
                logits, values = self.act(replay, self.actor, g, e, a, n), self.judge(replay, frozen, g, e, a, n)
                for t in range(replay.burn_in, n):
                    if not replay.played(g + t, e)[a]:
                        continue
                    legal = legal_at(replay, g + t, e, a)
                    lowest = torch.stack([critic[t] for critic in values]).amin(0).split(record.heads)
                    pairs = list(zip(self.distributions(logits[t], legal), lowest))
                    losses.append(sum((p * (alpha * log_p - q)).sum() for (p, log_p), q in pairs))
                    aim = 0.5 * sum(math.log(int(allowed.sum())) for allowed in legal)
                    gaps.append(aim + float(sum((p * log_p).sum() for (p, log_p), _ in pairs).detach()))
        step(self.actor_adam, self.actor.values(), sum(losses) / len(losses), record)
        self.alpha_adam.zero_grad()
        (-self.log_alpha * (sum(gaps) / len(gaps))).backward()
        self.alpha_adam.step()
        self.target = {n: (1 - record.tau) * self.target[n] + record.tau * self.critics[n].detach() for n in self.target}


class Continuous(SoftActorCritic):
    """SAC and TD3 of continuous actions, which critics read behind their memory: a step's value hangs on its own action."""

    def __init__(self, record):
        if record.algorithm == "TD3":
            record.temperature = record.temperature_lr = 1.0
        super().__init__(record)
        self.target_actor = {n: t.detach().clone() for n, t in self.actor.items()}

    def before_update(self, replay, iteration, update):
        self.time = iteration, update

    def row(self, replay, window, t, steps, a):
        """Of random numbers: step t of a window, by window, agent and step."""
        return (window * replay.agents + a) * steps + t

    def played_actions(self, replay, g, e, a, steps):
        return [replay.rows["action"][g + t, e, a] for t in range(steps)]

    def judge(self, replay, weights, g, e, a, steps, actions):
        zero = torch.zeros_like(stored(replay, g, e, a))
        return [unroll(replay, weights, f"critics.{i}.layers.", zero, g, e, a, steps, actions) for i in range(int(self.record.critics))]

    def actions(self, outputs, rows, purpose):
        """Actions, and their log-probabilities, 0 of points."""
        if self.record.algorithm == "TD3":
            return [torch.tanh(o) for o in outputs], [0.0] * len(outputs)
        return zip(*(squashed_draw(o, actor_normals(self.record, row, purpose, *self.time)) for o, row in zip(outputs, rows)))

    def window(self, replay, g, e, weight):
        record, n = self.record, replay.burn_in + replay.length
        alpha = self.log_alpha.exp().item() if record.algorithm == "SAC" else 0.0
        by = self.target_actor if record.algorithm == "TD3" else {name: tensor.detach() for name, tensor in self.actor.items()}
        loss, counted, errors = 0.0, 0.0, []
        for a in range(replay.agents):
            rows = [self.row(replay, e, t, n + replay.n, a) for t in range(n + replay.n)]
            actions, log_probs = self.actions(self.act(replay, by, g, e, a, n + replay.n), rows, 0)
            by_target = self.judge(replay, self.target, g, e, a, n + replay.n, actions)
            now = self.judge(replay, self.critics, g, e, a, n, self.played_actions(replay, g, e, a, n))
            for t in range(replay.burn_in, n):
                if not replay.played(g + t, e)[a]:
                    continue
                aim, discount, after = replay.returns(g + t, e, a)
                if discount:
                    aim = aim + discount * (min(critic[after - g].item() for critic in by_target) - alpha * log_probs[after - g])
                values = [critic[t].squeeze() for critic in now]
                loss = loss + weight * sum(huber(aim - value, record.huber) for value in values)
                counted += weight
                errors.append(float(torch.as_tensor(aim - values[0]).abs().detach()))
        return loss, counted, errors

    def after_update(self, replay, drawn, number):
        record, b, n = self.record, replay.burn_in, replay.burn_in + replay.length
        if (number + 1) % record.policy_delay:
            return
        frozen = {name: tensor.detach() for name, tensor in self.critics.items()}
        alpha, losses, gaps = self.log_alpha.exp().item(), [], []
        for g, e, _ in drawn:
            for a in range(replay.agents):
                rows = [self.row(replay, e, t, replay.length, a) for t in range(replay.length)]
                own, log_probs = self.actions(self.act(replay, self.actor, g, e, a, n)[b:], rows, 1)
                # What is not played, as between games, is nothing to learn from.
                known = [action if replay.played(g + b + k, e)[a] else action.detach() for k, action in enumerate(own)]
                values = self.judge(replay, frozen, g, e, a, n, self.played_actions(replay, g, e, a, b) + known)
                for t in range(b, n):
                    if not replay.played(g + t, e)[a]:
                        continue
                    if record.algorithm == "TD3":
                        losses.append(-values[0][t].squeeze())
                        continue
                    losses.append(alpha * log_probs[t - b] - min((critic[t].squeeze() for critic in values), key=lambda q: q.item()))
                    gaps.append(float(log_probs[t - b].detach()) - record.components)
        step(self.actor_adam, self.actor.values(), sum(losses) / len(losses), record)
        if gaps:
            self.alpha_adam.zero_grad()
            (-self.log_alpha * (sum(gaps) / len(gaps))).backward()
            self.alpha_adam.step()
        follow = lambda old, new: {n: (1 - record.tau) * old[n] + record.tau * new[n].detach() for n in old}
        self.target, self.target_actor = follow(self.target, self.critics), follow(self.target_actor, self.actor)


def test_every_iteration(record):
    learner = Values(record) if hasattr(record, "cql_alpha") else Continuous(record) if record.components else SoftActorCritic(record)
    replay = Windows(record)
    updates, moved, began = round(record.replay_ratio * replay.steps * replay.envs / record.batch_size), 0, set()
    for i in range(6):
        replay.append(i)
        for update in range(updates if (i + 1) * replay.steps * replay.envs >= record.learning_starts else 0):
            learner.before_update(replay, i, update)
            drawn = replay.draw(i, update)
            loss, counted, errors = 0.0, 0.0, []
            for g, e, weight in drawn:
                of_window, rows, of_rows = learner.window(replay, g, e, weight)
                loss, counted = loss + of_window, counted + rows
                errors.append((e, g, of_rows))
                for t in range(replay.burn_in + replay.length + replay.n):
                    began.update({t} if replay.rows["restarted"][g + t, e].any() else set())
            replay.prioritize_windows(errors)
            if counted == 0:
                continue  # nobody played in any of its windows
            learner.learn(loss / counted)
            learner.after_update(replay, drawn, i * updates + update)
        for name, tensor in learner.weights.items():
            recorded_tensor = record[f"{i}.after.{name}"]
            torch.testing.assert_close(recorded_tensor, tensor.detach(), rtol=0, atol=1e-5, msg=lambda m: f"{i} {name}: {m}")
            moved += int(not torch.equal(recorded_tensor, record[f"before.{name}"]))
        if record.prioritized:
            torch.testing.assert_close(record[f"{i}.priorities"], replay.priorities(), rtol=1e-4, atol=1e-5)
    assert moved >= 4 * len(learner.weights) and updates == 2
    assert began == set(range(replay.burn_in + replay.length + replay.n)), "agents begin at every place of a window"
