"""torch_oracle_test.py: recomputes the updates recorded by record_test.cpp with Python's torch and its
autograd.

Returns are computed as sums from their definitions, losses with torch.distributions, gradients with
autograd and the step with torch.optim.Adam, all in double. Normalized returns are also compared with
rl-warp-drive's own code.
"""

import itertools

import pytest
import torch
from algorithm.memory import Memory, normalized
from algorithm.recording import Recording, recorded
from warp_drive.training.algorithms.policygradient.a2c import A2C
from warp_drive.training.algorithms.policygradient.ppo import PPO

NAMES = [
    "a2c",
    "a2c_bf16",
    "a2c_bf16_gsde",
    "a2c_bf16_layer_norm",
    "a2c_bf16_layer_norm_tanh_gaussian",
    "a2c_bf16_no_hidden_layer",
    "a2c_bf16_tanh_gaussian",
    "a2c_gru",
    "a2c_gsde",
    "a2c_layer_norm",
    "a2c_lstm_of_layers",
    "a2c_mingru",
    "a2c_n_step_gaussian",
    "a2c_n_step_normalized_reward",
    "a2c_normalized_return",
    "a2c_normalized_value",
    "a2c_normalized_value_gru",
    "a2c_share",
    "a2c_waiting",
    "a2c_warpdrive",
    "ppo",
    "ppo_adaptive_kl",
    "ppo_agent_id_normalized_value",
    "ppo_central_normalized_value",
    "ppo_first_normalized_value",
    "ppo_gaussian",
    "ppo_gru_central_normalized_value",
    "ppo_gru_share",
    "ppo_gru_short_sequences",
    "ppo_gsde",
    "ppo_layer_norm_gaussian",
    "ppo_lstm_short_sequences",
    "ppo_mingru_short_sequences",
    "ppo_normalized_reward_and_value",
    "ppo_normalized_value_gaussian",
    "ppo_share",
    "ppo_squashed_gaussian",
    "ppo_target_kl",
    "ppo_waiting",
    "ppo_waiting_target_kl",
    "reinforce",
    "reinforce_normalized_return",
    "reinforce_normalized_reward",
    "reinforce_waiting",
]
TOLERANCE = {"rtol": 2e-5, "atol": 2e-6}  # float against double


WORDS = {"algorithm", "activation", "precision", "distribution", "reads", "critic_reads"}


class Update(Recording):
    @property
    def bf16(self):
        return self.precision == "bf16"

    @property
    def recurrent(self):
        return self.sequence_length >= 0

    @property
    def squashed(self):
        return self.distribution == "squashed_gaussian"

    @property
    def gsde(self):
        return self.distribution == "gsde"




@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    files = recorded("record_test.cpp", tmp_path_factory.mktemp("records"), NAMES)
    return {name: Update(file, WORDS) for name, file in files.items()}


@pytest.fixture(params=NAMES)
def record(request, recordings):
    return recordings[request.param]


def reward_sums(record):
    """The discounted sum of rewards of every transition since its agent began to play, from the definition; and what each
    agent takes to the next rollout."""
    reward, before = record["reward"], record["statistics_before.reward_sums"]
    steps, envs, agents = reward.shape
    sums, after = [], torch.zeros(envs, agents, dtype=torch.double)
    for e in range(envs):
        for a in range(agents):
            valid = [record["active"][t, e, a] > 0 and not record["reset_step"][t, e] for t in range(steps)]
            ended = [record["terminated"][t, e] or record["agent_terminated"][t, e, a] or record["truncated"][t, e] for t in range(steps)]
            for t in range(steps):
                first = max((k + 1 for k in range(t) if ended[k] or not valid[k]), default=0)
                if valid[t]:
                    own = sum(record.gamma ** (t - k) * reward[k, e, a] for k in range(first, t + 1))
                    sums.append(own + (record.gamma ** (t + 1) * before[e, a] if first == 0 else 0.0))
            after[e, a] = sums[-1] if valid[-1] and not ended[-1] else 0.0
    return torch.stack(sums), after


def deviation_of_returns(record):
    """{count, mean, variance} of all sums so far, and their deviation."""
    count, mean, variance = record["statistics_before.reward_moments"]
    new, _ = reward_sums(record)
    total = count * mean + new.sum()
    squares = count * (variance + mean**2) + (new**2).sum()
    count = count + len(new)
    moments = torch.stack([count, total / count, squares / count - (total / count) ** 2])
    return moments, (moments[2] + 1e-8).sqrt()


def value_units(record):
    """{mean, deviation} in which the network computes values, before and after the targets of the rollout are known,
    and {weight, mean, variance} after."""
    if not record.normalize_value:
        plain = torch.tensor([0.0, 1.0], dtype=torch.double)
        return plain, plain, None
    rate = 0.05
    _, target, mask, _ = returns_of(record)
    target = target[mask > 0]
    weight, mean, variance = record["statistics_before.value_moments"]
    # Sums of weights, of weighted numbers and of their squares, each of which forgets at the rate.
    sums = [(1 - rate) * weight * of for of in (1.0, mean, variance + mean**2)]
    new = [sums[0] + rate, sums[1] + rate * target.mean(), sums[2] + rate * (target**2).mean()]
    moments = torch.stack([new[0], new[1] / new[0], new[2] / new[0] - (new[1] / new[0]) ** 2])
    return record["statistics_before.value_norm"], torch.stack([moments[1], (moments[2] + 1e-8).sqrt()]), moments


def is_first(record):
    """Whether no target was known before, so that values were in units of 1e-4."""
    return record.normalize_value and record["statistics_before.value_moments"][0] == 0


def prepared(record):
    """The weights after the units of values have changed: the value's row computes the same values in the new ones. The
    first weights mean nothing yet, and stay what they are."""
    weights = {name: tensor.clone() for name, tensor in record.prefixed("before.").items()}
    if record.normalize_value and not is_first(record):
        (mean, deviation), (new_mean, new_deviation), _ = value_units(record)
        body = "value_layers." if record.separate else "layers."
        head, row = (body + "head", -1) if record.recurrent else ("value_head", 0)
        weights[head + ".weight"][row] *= deviation / new_deviation
        weights[head + ".bias"][row] = (deviation * weights[head + ".bias"][row] + mean - new_mean) / new_deviation
    return weights


def returns_of(record):
    """Advantage, target, mask, and target before normalization, computed for each transition separately by
    summing forward."""
    reward, value = record["reward"].numpy(), record["value"].numpy()
    if record.normalize_reward:
        reward = reward / deviation_of_returns(record)[1].item()
    flags = {name: record[name].numpy() for name in ("active", "reset_step", "terminated", "agent_terminated", "truncated")}
    steps, envs, agents = reward.shape
    advantage, mask = torch.zeros_like(record["reward"]), torch.zeros_like(record["reward"])
    for e in range(envs):
        for a in range(agents):
            valid = [flags["active"][t, e, a] and not flags["reset_step"][t, e] for t in range(steps)]
            over = [flags["terminated"][t, e] or flags["agent_terminated"][t, e, a] for t in range(steps)]
            ended = [over[t] or flags["truncated"][t, e] for t in range(steps)]
            after = [0.0 if over[t] else record.gamma * value[t + 1, e, a] for t in range(steps)]
            for t in filter(lambda t: valid[t], range(steps)):
                last = next((k for k in range(t, steps) if ended[k]), steps - 1)
                # REINFORCE keeps only episodes that cannot outlast the rollout, whatever happens.
                if record.algorithm == "reinforce":
                    start = max((r for r in range(t) if flags["reset_step"][r, e]), default=-1)
                    mask[t, e, a] = float(start < 0 or start + record.time_limit < steps)
                    total = sum(record.gamma ** (k - t) * reward[k, e, a] for k in range(t, last + 1))
                    advantage[t, e, a] = total * mask[t, e, a]
                    continue
                mask[t, e, a] = 1.0
                if record.n_step > 0:
                    stop = min(last, t + int(record.n_step) - 1)
                    total = sum(record.gamma ** (k - t) * reward[k, e, a] for k in range(t, stop + 1))
                    advantage[t, e, a] = total + record.gamma ** (stop - t) * after[stop] - value[t, e, a]
                else:
                    decay = record.gamma * record.gae_lambda
                    deltas = [reward[k, e, a] + after[k] - value[k, e, a] for k in range(t, last + 1)]
                    advantage[t, e, a] = sum(decay**k * delta for k, delta in enumerate(deltas))
    baseline = 0.0 if record.algorithm == "reinforce" else record["value"][:-1]
    raw = target = (advantage + baseline) * mask
    if record.normalize_return:
        target = target.clone()
        for step in range(steps):
            kept = mask[step] > 0
            deviation = raw[step][kept].std(correction=1) if kept.sum() > 1 else 0.0
            target[step] = (raw[step] - raw[step][kept].mean()) / (deviation + 1e-10) * mask[step] if kept.any() else 0.0
        advantage = (target - baseline) * mask
    return advantage, target, mask, raw


def returns_of_warpdrive(record, algorithm):
    """Normalized returns and advantages as computed by WarpDrive's own code, derived from the gradients of
    its loss.

    WarpDrive resets in the step that ends an episode, while our replicas use a separate row for the reset.
    For each step it therefore gets only the replicas that do not reset in that step. Its last row is the
    value after our last row.
    """
    steps, envs, agents = record["reward"].shape
    resets, done = record["reset_step"].bool(), torch.zeros(steps + 1, envs, dtype=torch.int)
    done[:steps] = record["terminated"]
    reward = torch.cat([record["reward"], torch.zeros(1, envs, agents, dtype=torch.double)])
    target, advantage = torch.zeros_like(record["reward"]), torch.zeros_like(record["reward"])
    for step in range(steps):
        shown = ~resets[step]
        value = record["value"][:, shown].clone().requires_grad_()
        logits = torch.zeros(*value.shape, 2, dtype=torch.double, requires_grad=True)
        loss, _ = algorithm.compute_loss_and_metrics(
            timestep=0,
            actions_batch=torch.zeros(*value.shape, 1, dtype=torch.int),
            rewards_batch=reward[:, shown],
            done_flags_batch=done[:, shown],
            action_probabilities_batch=[logits.softmax(-1)],
            value_functions_batch=value,
        )
        loss.backward()
        rows = value.numel()
        # Inverts the gradient of (value - target)^2, mean over rows.
        target[step, shown] = (value - rows * value.grad / 2)[step].detach()
        # Inverts the gradient of -log p(0) advantage, with p(0) = 1/2.
        advantage[step, shown] = -2 * rows * logits.grad[step, ..., 0]
    return target, advantage


@pytest.mark.parametrize("kind", [A2C, PPO])
def test_normalized_returns_are_warpdrives(recordings, kind):
    record = recordings["a2c_warpdrive"]
    algorithm = kind(discount_factor_gamma=record.gamma, normalize_return=True, vf_loss_coeff=1.0, entropy_coeff=0.0)
    target, advantage = returns_of_warpdrive(record, algorithm)
    assert 5 < record["terminated"].sum() and 5 < record["reset_step"].sum()
    torch.testing.assert_close(record["mask"].bool(), ~record["reset_step"].bool().unsqueeze(-1).expand_as(target))
    torch.testing.assert_close(record["target"], target, **TOLERANCE)
    torch.testing.assert_close(record["advantage"], advantage, **TOLERANCE)


def rounded(x):
    return x.bfloat16().double()


class Bf16Layer(torch.autograd.Function):
    """A hidden layer: products of bfloat16 numbers with exact sums, results stored in bfloat16."""

    @staticmethod
    def forward(ctx, x, weight, bias, relu):
        z = x @ rounded(weight).T + rounded(bias)
        y = rounded(torch.relu(z) if relu else torch.tanh(rounded(z)))
        ctx.save_for_backward(x, weight, y)
        ctx.relu = relu
        return y

    @staticmethod
    def backward(ctx, grad):
        x, weight, y = ctx.saved_tensors
        grad = rounded(grad)
        grad = rounded(grad * (y > 0).double() if ctx.relu else grad * (1 - y**2))
        return grad @ rounded(weight), grad.T @ x, grad.sum(0), None


class Bf16Product(torch.autograd.Function):
    """The sums of an output layer, or of a hidden layer whose normalization follows: only factors are rounded."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return x @ rounded(weight).T + bias

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        grad = rounded(grad)
        return grad @ rounded(weight), grad.T @ x, grad.sum(0)


class Bf16Activation(torch.autograd.Function):
    """The activation of normalized sums."""

    @staticmethod
    def forward(ctx, z, relu):
        z = rounded(z)
        y = rounded(torch.relu(z) if relu else torch.tanh(z))
        ctx.save_for_backward(y)
        ctx.relu = relu
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        grad = rounded(grad)
        return rounded(grad * (y > 0).double() if ctx.relu else grad * (1 - y**2)), None


def forward_bf16(record, weights, observation):
    def hidden(x, prefix):
        layers = sum(name.startswith(prefix) and name.endswith(".weight") and ".norm." not in name for name in weights)
        for layer in range(layers):
            weight, bias = weights[f"{prefix}{layer}.weight"], weights[f"{prefix}{layer}.bias"]
            relu = record.activation == "relu"
            if f"{prefix}{layer}.norm.weight" in weights:
                z = normalized(Bf16Product.apply(x, weight, bias), weights, f"{prefix}{layer}")
                x = Bf16Activation.apply(z, relu)
            else:
                x = Bf16Layer.apply(x, weight, bias, relu)
        return x

    shape = observation.shape[:-1]
    observation = observation.reshape(-1, observation.shape[-1])
    body = hidden(observation, "layers.")
    value_body = hidden(observation, "value_layers.") if record.separate else body
    # Without hidden layers the products are float32's.
    product = Bf16Product.apply if "layers.0.weight" in weights else lambda x, weight, bias: x @ weight.T + bias
    output = product(body, weights["policy_head.weight"], weights["policy_head.bias"])
    value = product(value_body, weights["value_head.weight"], weights["value_head.bias"])
    if record.gsde:
        output = torch.cat([output, body.detach()], -1)
    return output.reshape(*shape, -1), value.reshape(shape)


def parts_of(record, steps):
    """What networks read in these steps, [.., E, A, n] each, by name: a row of a replica for each of its agents."""
    observation = record["observation"][steps]
    shape = observation.shape[:-1]
    parts = {"observation": observation}
    for name in {*record.reads.split(), *record.critic_reads.split()} - {"observation"}:
        rows = torch.eye(shape[-1], dtype=torch.double) if name == "agent_id" else record[f"stream.{name}"][steps]
        parts[name] = rows.expand(*shape, -1)
    return parts


def unrolled(record, weights, prefix, states, restarted, parts):
    """Outputs [T, E, A, columns] and states [T + 1, E, A, size] of a recurrent network. `states` maps steps to the states
    to use there; it must contain step 0. parts: what is read, by name."""
    network = Memory(weights, prefix, torch.relu if record.activation == "relu" else torch.tanh)
    state, outputs, through = None, [], []
    for t in range(len(restarted)):
        state = states.get(t, state) * (restarted[t] == 0).unsqueeze(-1)
        through.append(state)
        state = network.step({name: rows[t] for name, rows in parts.items()}, state)
        outputs.append(network.output(state))
    return torch.stack(outputs), torch.stack([*through, state])


def forward_recurrent(record, weights, states, steps):
    """Logits or means, and values, of the first `steps` steps, starting from the given states."""
    parts, restarted = parts_of(record, slice(steps)), record["restarted"][:steps]
    seen, by_critic = ({name: parts[name] for name in names.split()} for names in (record.reads, record.critic_reads))
    half = {t: state.chunk(2, -1) if record.separate else (state, None) for t, state in states.items()}
    output, _ = unrolled(record, weights, "layers.", {t: own for t, (own, _) in half.items()}, restarted, seen)
    if not record.separate:
        return output[..., :-1], output[..., -1]
    value, _ = unrolled(record, weights, "value_layers.", {t: own for t, (_, own) in half.items()}, restarted, by_critic)
    return output, value.squeeze(-1)


def forward(record, weights, parts, place=None):
    """Logits or means, and values, of what parts_of() gives. For a recurrent network, which is unrolled over whole sequences, those
    of rows `place` of the rollout. With gSDE, the last hidden layer follows the means, without a gradient."""
    if record.recurrent:
        steps = record["reward"].shape[0]
        every = int(record.sequence_length) or steps
        output, value = forward_recurrent(record, weights, {t: record["state"][t] for t in range(0, steps, every)}, steps)
        return output.flatten(0, 2)[place], value.flatten()[place]
    if record.bf16:
        return forward_bf16(record, weights, parts["observation"])

    def hidden(prefix, names):
        layer, x = 0, parts[names[0]]
        while f"{prefix}{layer}.weight" in weights:
            x = x @ weights[f"{prefix}{layer}.weight"].T + weights[f"{prefix}{layer}.bias"]
            for name in names[1:] if layer == 0 else []:
                x = x + parts[name] @ weights[f"{prefix}0.{name}.weight"].T
            x = normalized(x, weights, f"{prefix}{layer}")
            x = torch.relu(x) if record.activation == "relu" else torch.tanh(x)
            layer += 1
        return x

    body = hidden("layers.", record.reads.split())
    separate = any(name.startswith("value_layers.") for name in weights)
    value_body = hidden("value_layers.", record.critic_reads.split()) if separate else body
    output = body @ weights["policy_head.weight"].T + weights["policy_head.bias"]
    value = value_body @ weights["value_head.weight"].T + weights["value_head.bias"]
    if record.gsde:
        output = torch.cat([output, body.detach()], -1)
    return output, value.squeeze(-1)


def distribution_of(record, weights, output, legal, action):
    """log pi(action) and entropy of every row."""
    if record.squashed:
        std = weights["log_std"].exp()
        squashed = torch.distributions.TransformedDistribution(torch.distributions.Normal(output, std), [torch.distributions.TanhTransform()])
        # The random number that was drawn for the action.
        drawn = (torch.atanh(action) - output.detach()) / std.detach()
        again = output + std * drawn
        entropy = squashed.base_dist.entropy() + squashed.transforms[0].log_abs_det_jacobian(again, again.tanh())
        return squashed.log_prob(action).sum(-1), entropy.sum(-1)
    if record.gsde:
        mean, latent = output.split([action.shape[-1], output.shape[-1] - action.shape[-1]], -1)
        variance = latent**2 @ weights["log_std"].exp().T ** 2
        normal = torch.distributions.Normal(mean, (variance + 1e-6).sqrt())
        return normal.log_prob(action).sum(-1), normal.entropy().sum(-1)
    if not record.heads:
        normal = torch.distributions.Normal(output, weights["log_std"].exp())
        return normal.log_prob(action).sum(-1), normal.entropy().sum(-1)
    if legal is not None:
        output = output.masked_fill(legal == 0, -1e9)
    log_prob = entropy = 0.0
    for h, logits in enumerate(output.split(record.heads, -1)):
        head = torch.distributions.Categorical(logits=logits)
        log_prob = log_prob + head.log_prob(action[..., h])
        entropy = entropy + head.entropy()
    return log_prob, entropy


def rows_of(record):
    """The rollout as rows."""
    names = ["action", "value", "log_prob", "advantage", "target", "mask"]
    if "action_mask" in record.tensors:
        names.append("action_mask")
    steps = record["reward"].shape[0]
    rows = {name: record[name][:steps].flatten(0, 2) for name in names}
    parts = {name: part.flatten(0, 2) for name, part in parts_of(record, slice(steps)).items()}
    return rows | parts | {"place": torch.arange(len(rows["mask"]))}


def with_choice(record, rows):
    """Whether the agent of a row could choose: some head has several legal choices."""
    if "action_mask" not in rows:
        return torch.ones(len(rows["mask"]), dtype=torch.bool)
    return torch.stack([legal.sum(-1) > 1 for legal in rows["action_mask"].long().split(record.heads, -1)]).any(0)


def sums_of(record, weights, rows, ppo, advantage, policy_weight=1.0):
    """Sums over the rows that count: row count, policy loss, value loss, entropy, KL estimate and clipped
    rows. What concerns the policy has a weight for each row."""
    output, value = forward(record, weights, rows, rows["place"])
    log_prob, entropy = distribution_of(record, weights, output, rows.get("action_mask"), rows["action"])
    ratio = (log_prob - rows["log_prob"]).exp()
    if ppo:
        clipped = ratio.clamp(1 - record.clip_param, 1 + record.clip_param)
        policy = -torch.minimum(ratio * advantage, clipped * advantage)
    else:
        policy = -log_prob * advantage
    mean, deviation = value_units(record)[1]
    target, old = ((rows[name] - mean) / deviation for name in ("target", "value"))
    if is_first(record):
        old = rows["value"] / 1e-4
    error = (value - target) ** 2
    if ppo and record.vf_clip_param > 0:
        near = old + (value - old).clamp(-record.vf_clip_param, record.vf_clip_param)
        error = torch.maximum(error, (near - target) ** 2)
    if record.algorithm == "reinforce":
        error = error * 0.0
    kl = ratio - 1 - ratio.log()
    outside = ((ratio - 1).abs() > record.clip_param).double()
    counts = rows["mask"] > 0
    policy, entropy, kl, outside = (x * policy_weight for x in (policy, entropy, kl, outside))
    return [x[counts].sum() for x in (torch.ones_like(value), policy, error, entropy, kl, outside)]


def assert_near(record, found, expected, rtol, atol):
    """With bf16, a sum in double may round the other way. In the few places where it does, an activation
    differs by 2^-8 of its value."""
    if not record.bf16:
        return torch.testing.assert_close(found, expected, rtol=rtol, atol=atol)
    off = (found - expected).abs()
    assert off.max() < 2**-8 * expected.abs().max(), f"{off.max()}"
    assert (off <= atol + rtol * expected.abs()).double().mean() > 0.97, f"{(off > atol + rtol * expected.abs()).sum()} of {off.numel()}"


def parameters(record):
    return {name: tensor.requires_grad_() for name, tensor in prepared(record).items()}


def test_returns(record):
    advantage, target, mask, _ = returns_of(record)
    assert 0.2 < mask.mean() < 0.95
    torch.testing.assert_close(record["mask"].double(), mask, rtol=0, atol=0)
    torch.testing.assert_close(record["advantage"], advantage, **TOLERANCE)
    torch.testing.assert_close(record["target"], target, **TOLERANCE)


@pytest.mark.parametrize("name", [name for name in NAMES if "normalized_value" in name or "and_value" in name])
def test_units_of_values_follow_the_targets(recordings, name):
    record = recordings[name]
    before, after, moments = value_units(record)
    assert (before - after).abs().min() > 0.01, "the units hardly changed: the tests show less than they say"
    torch.testing.assert_close(record["statistics_after.value_moments"], moments, **TOLERANCE)
    torch.testing.assert_close(record["statistics_after.value_norm"], after, **TOLERANCE)


def test_values_of_the_first_weights_are_nearly_0(recordings):
    """Or targets, which bootstrap from them, would have the size of the weights, whatever the size of rewards is."""
    record = recordings["ppo_first_normalized_value"]
    assert record["value"].abs().max() < 1e-3 < record["reward"].abs().max()
    torch.testing.assert_close(record["statistics_before.value_norm"], torch.tensor([0, 1e-4], dtype=torch.double))


@pytest.mark.parametrize("name", [name for name in NAMES if "normalized_reward" in name])
def test_the_deviation_of_returns_follows_the_rewards(recordings, name):
    record = recordings[name]
    moments, deviation = deviation_of_returns(record)
    torch.testing.assert_close(record["statistics_after.reward_moments"], moments, **TOLERANCE)
    torch.testing.assert_close(record["statistics_after.reward_norm"][1], deviation, **TOLERANCE)
    torch.testing.assert_close(record["statistics_after.reward_sums"], reward_sums(record)[1], **TOLERANCE)


def test_what_the_policy_did(record):
    rows = rows_of(record)
    output, value = forward(record, record.prefixed("before."), rows, rows["place"])
    mean, deviation = value_units(record)[0]
    value = value * deviation + mean
    legal = rows.get("action_mask")
    log_prob, _ = distribution_of(record, record.prefixed("before."), output, legal, rows["action"])
    assert_near(record, rows["log_prob"], log_prob, rtol=1e-5, atol=2e-5)
    assert_near(record, rows["value"], value, **TOLERANCE)
    if record.recurrent:
        return
    last = forward(record, record.prefixed("before."), parts_of(record, -1))[1] * deviation + mean
    assert_near(record, record["value"][-1], last, **TOLERANCE)


def test_the_noise_of_a_rollout_is_one_linear_function_of_the_last_hidden_layer(recordings):
    """Of all 12 steps, which share a matrix with rows of 8 numbers: it is what least squares find."""
    record = recordings["ppo_gsde"]
    steps = record["reward"].shape[0]
    output, _ = forward(record, record.prefixed("before."), parts_of(record, slice(steps)))
    mean, latent = output.split([2, output.shape[-1] - 2], -1)
    noise, latent = ((x.permute(1, 2, 0, 3)) for x in (record["action"] - mean, latent))
    matrix = torch.linalg.lstsq(latent, noise).solution
    assert latent.shape[-1] < steps and noise.std() > 0.1
    torch.testing.assert_close(latent @ matrix, noise, rtol=0, atol=1e-5)
    apart = latent @ matrix.roll(1, 0)
    assert (apart - noise).abs().max() > 0.1, "replicas share their noise"


@pytest.mark.parametrize("name", ["a2c_gru", "a2c_mingru", "ppo_lstm_short_sequences", "ppo_gru_short_sequences", "ppo_gru_share"])
def test_a_recurrent_network_remembers_from_step_to_step(recordings, name):
    """Values of all rows including the last observation, computed from the first state alone; the state is
    0 where an episode begins."""
    record = recordings[name]
    weights, steps = record.prefixed("before."), record["reward"].shape[0]
    _, value = forward_recurrent(record, weights, {0: record["state"][0]}, steps + 1)
    torch.testing.assert_close(record["value"], value, **TOLERANCE)
    restarted = record["restarted"]
    assert 0.02 < restarted[1:].double().mean() < 0.5
    torch.testing.assert_close(restarted[1:, :, 0], record["reset_step"])
    forgetful = forward_recurrent(record, weights, dict(enumerate(torch.zeros_like(record["state"][:-1]))), steps)[1]
    assert (forgetful - value[:-1]).abs().max() > 1e-3, "nothing was remembered: the test shows less than it says"


@pytest.mark.parametrize(("name", "units", "length"), [("ppo_share", 5, 1), ("ppo_gru_share", 2, 4), ("a2c_share", 1, 1)])
def test_an_epoch_learns_from_a_fresh_share(recordings, name, units, length):
    """Whole steps, or sequences, of every replica, as many as fit into max_rows; test_one_update computes the update
    from these rows."""
    record = recordings[name]
    steps, envs, agents = record["reward"].shape
    assert units * length * envs * agents <= record.max_rows < (units + 1) * length * envs * agents
    epochs = {}
    for key in sorted(key for key in record.tensors if key.startswith("order.")):
        epochs.setdefault(key.split(".")[1], []).append(record[key])
    shares = [torch.cat(rows) for rows in epochs.values()]
    for rows in shares:
        used = torch.zeros(steps * envs * agents)
        used[rows] = 1.0
        assert used.sum() == len(rows) == units * length * envs * agents
        whole = used.view(steps // length, length, envs, agents).sum(dim=(1, 3))
        assert ((whole == 0) | (whole == length * agents)).all() and (whole.count_nonzero(dim=0) == units).all()
    assert len({tuple(rows.sort().values.tolist()) for rows in shares}) == len(shares)


def test_gradient_of_a_batch(record):
    """Sum of A2C losses before scaling and clipping."""
    weights, rows = parameters(record), rows_of(record)
    # Every case is recorded with this loss.
    algorithm, record.algorithm = record.algorithm, "a2c"
    sums = sums_of(record, weights, rows, False, rows["advantage"])
    record.algorithm = algorithm
    torch.testing.assert_close(record["sums"], torch.stack(sums).detach(), rtol=2e-5, atol=1e-4)
    (sums[1] + 0.7 * sums[2] - 0.05 * sums[3]).backward()
    for name, tensor in weights.items():
        scale = tensor.grad.abs().max().item()
        found = record[f"gradient.{name}"]
        if record.bf16 and (record.gsde or any(".norm." in name for name in weights)):
            # A normalization in float32 is not exact, nor is a variance of the state, so a few numbers are rounded to the
            # other of two neighbors, 2^-8 apart: which ones depends on the weights.
            error = (found - tensor.grad).abs() / scale
            assert error.mean() < 2e-4 and error.max() < 2e-3, (name, error.mean(), error.max())
        else:
            torch.testing.assert_close(found, tensor.grad, rtol=1e-4, atol=1e-5 * scale + 1e-9)


@pytest.mark.parametrize("name", ["ppo_central_normalized_value", "ppo_agent_id_normalized_value", "ppo_gru_central_normalized_value"])
def test_what_a_critic_reads_decides_its_gradient(recordings, name):
    """Each network has weights for what it reads and for nothing else, and a row of a replica is that of the agent's own."""
    record = recordings[name]
    test_gradient_of_a_batch(record)
    if record.recurrent:
        return
    for prefix, reads in (("layers.", record.reads), ("value_layers.", record.critic_reads)):
        first, *others = reads.split()
        found = {key for key in record.prefixed("before.") if key.startswith(f"{prefix}0.") and key.endswith(".weight")}
        assert found == {f"{prefix}0.weight", *(f"{prefix}0.{other}.weight" for other in others)}
    weights, rows = parameters(record), rows_of(record)
    record.algorithm = "a2c"
    sums = sums_of(record, weights, rows, False, rows["advantage"])
    record.algorithm = "ppo"
    (sums[1] + 0.7 * sums[2] - 0.05 * sums[3]).backward()
    for key, tensor in weights.items():
        torch.testing.assert_close(record[f"gradient.{key}"], tensor.grad, rtol=0, atol=1e-5 * tensor.grad.abs().max().item())


def update(record):
    """Weights and metrics after the update."""
    weights, everything = parameters(record), rows_of(record)
    adam = torch.optim.Adam(weights.values(), lr=record.lr, eps=record.adam_epsilon)
    ppo = record.algorithm == "ppo"
    counts = everything["mask"] > 0
    chooses = counts & with_choice(record, everything)
    kept = everything["advantage"][chooses]
    # So that means over all rows are those over the rows with a choice.
    everything["weight"] = chooses.double() * counts.sum() / chooses.sum()
    batches = record.orders() if ppo or record.max_rows else [torch.arange(len(everything["mask"]))]
    # The first minibatch of each epoch.
    starts = list(itertools.accumulate(map(len, record.epochs()), initial=0)) if len(batches) > 1 else [0]
    totals, norms, rate = torch.zeros(6, dtype=torch.double), [], record.lr
    for k, batch in enumerate(batches):
        if k in starts:
            before_epoch = totals.clone()
        rows = {name: tensor[batch] for name, tensor in everything.items()}
        advantage = rows["advantage"]
        if record.normalize_advantage:
            advantage = (advantage - kept.mean()) / (kept.std(correction=0) + 1e-8)
        elif record.normalize_value:
            advantage = advantage / value_units(record)[1][1]
        sums = sums_of(record, weights, rows, ppo, advantage, rows["weight"])
        totals += torch.stack(sums).detach()
        if ppo and record.target_kl > 0 and sums[4] / sums[0] > 1.5 * record.target_kl:
            break
        if ppo and record.adaptive_kl > 0 and norms:
            divergence = (sums[4] / sums[0]).item()
            rate *= 1 / 1.5 if divergence > 2 * record.adaptive_kl else 1.5 if divergence < 0.5 * record.adaptive_kl else 1
            rate = min(max(rate, 1e-5), 1e-2)
            adam.param_groups[0]["lr"] = rate
        adam.zero_grad()
        (sums[1] + record.vf_loss_coeff * sums[2] - record.entropy_coeff * sums[3]).backward()
        # Divide only now, because bf16 rounds the gradients of the sum.
        for tensor in weights.values():
            if tensor.grad is not None:
                tensor.grad /= sums[0].detach()
        limit = record.max_grad_norm or float("inf")
        norms.append(torch.nn.utils.clip_grad_norm_(weights.values(), limit).item())
        adam.step()
    return weights, totals, totals - before_epoch, norms, len(batches), rate


def test_one_update(record):
    weights, totals, last_epoch, norms, batches, rate = update(record)
    for name, expected in weights.items():
        moved = (record[f"after.{name}"] - record[f"before.{name}"]).abs().max().item()
        assert moved > 0 or (record.algorithm == "reinforce" and name.startswith("value_")), name
        torch.testing.assert_close(record[f"after.{name}"], expected.detach(), rtol=0, atol=0.01 * record.lr)
    means = totals / totals[0]
    advantage, target, mask, raw = returns_of(record)
    chooses = with_choice(record, rows_of(record)).view(mask.shape)
    learned = advantage[(mask > 0) & chooses]
    advantage, target, raw = (x[mask > 0] for x in (advantage, target, raw))
    expected = {
        "policy_loss": means[1],
        "value_loss": means[2],
        "entropy": means[3],
        "approx_kl": means[4],
        "approx_kl_last_epoch": last_epoch[4] / last_epoch[0],
        "clip_fraction": means[5],
        "total_loss": means[1] + record.vf_loss_coeff * means[2] - record.entropy_coeff * means[3],
        "grad_norm": torch.tensor(norms).mean(),
        "updates": torch.tensor(len(norms)),
        "learning_rate": torch.tensor(rate),
        "return_mean": raw.mean(),
        "return_std": raw.std(correction=0),
        "advantage_mean": learned.mean(),
        "advantage_std": learned.std(correction=0),
        "explained_variance": 1 - advantage.var(correction=0) / target.var(correction=0),
        "empty_minibatches": torch.tensor(0),
    }
    for name, value in expected.items():
        torch.testing.assert_close(record[f"metric.{name}"], value.double(), rtol=2e-4, atol=2e-5, msg=lambda m, n=name: f"{n}: {m}")
    assert not record.max_grad_norm or max(norms) > record.max_grad_norm, "no gradient was cut"
    if record.algorithm == "ppo" and not record.target_kl:
        assert means[5] > 0.01, "nothing was clipped: the test shows less than it says"
    if record.adaptive_kl:
        assert rate < record.lr, "the rate did not follow the divergence"
    if record.target_kl:
        assert 0 < len(norms) < batches, "the KL limit stopped nothing"


@pytest.mark.parametrize("name", ["a2c_waiting", "reinforce_waiting"])
def test_the_policys_numbers_are_means_over_rows_with_a_choice(recordings, name):
    record = recordings[name]
    weights, rows = record.prefixed("before."), rows_of(record)
    chooses = with_choice(record, rows)
    assert 0.4 < chooses.double().mean() < 0.6
    kept = (rows["mask"] > 0) & chooses
    output, value = forward(record, weights, rows, rows["place"])
    log_prob, entropy = distribution_of(record, weights, output, rows["action_mask"], rows["action"])
    found = {name: record[f"metric.{name}"] for name in ("policy_loss", "entropy", "advantage_mean", "value_loss")}
    torch.testing.assert_close(found["policy_loss"], -(log_prob * rows["advantage"])[kept].mean(), **TOLERANCE)
    torch.testing.assert_close(found["entropy"], entropy[kept].mean(), **TOLERANCE)
    torch.testing.assert_close(found["advantage_mean"], rows["advantage"][kept].mean(), **TOLERANCE)
    if name == "a2c_waiting":
        every = rows["mask"] > 0
        torch.testing.assert_close(found["value_loss"], ((value - rows["target"]) ** 2)[every].mean(), **TOLERANCE)
