"""A2C and PPO in jax, written for these comparisons in the style of purejaxrl: everything is one jitted
function of arrays.

Several policies act in one game; `policies` maps their names to Learner. A game is any object with
`reset(key) -> state`, `observe(state) -> {policy: [agents, features]}`, `active(state) -> {policy:
[agents]}` and `step(state, {policy: actions [agents, heads]}) -> state, {policy: reward [agents]},
terminated, truncated` for one replica; vmap creates many. As is usual in jax, a replica whose episode ends
is reset in the same step. Its last transition does not bootstrap if the episode terminated; if it was
truncated, it bootstraps from the value of the observation before the reset.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec


@dataclasses.dataclass(frozen=True)
class Learner:
    features: int
    heads: tuple  # number of choices per head
    hidden: tuple = (256, 256)
    activation: str = "relu"
    separate_value: bool = False
    algorithm: str = "A2C"
    lr: object = 3e-4  # or a schedule of the number of optimizer steps
    gamma: float = 0.98
    gae_lambda: float = 1.0
    value_coefficient: float = 0.5
    entropy_coefficient: float = 0.01
    max_grad_norm: float = 0.5
    normalize_advantage: bool = False
    clip: object = 0.2  # PPO: maximum change of the ratio, or a schedule of it
    epochs: int = 4
    minibatches: int = 4
    shuffle: object = jax.random.permutation  # (key, count) -> the order of the rows in an epoch

    @property
    def optimizer(self):
        return optax.chain(optax.clip_by_global_norm(self.max_grad_norm), optax.adam(self.lr))


def init_layers(rng, sizes, last_scale):
    """Orthogonal weights, computed on the host: compiling jax's initializer takes longer than training
    cartpole."""
    layers = []
    for k, (fan_in, fan_out) in enumerate(zip(sizes, sizes[1:])):
        scale = last_scale if k == len(sizes) - 2 else 2.0**0.5
        q, r = np.linalg.qr(rng.normal(size=(max(fan_in, fan_out), min(fan_in, fan_out))))
        q = q * np.sign(np.diag(r))
        layers.append((jnp.asarray(scale * (q if fan_in >= fan_out else q.T), jnp.float32), jnp.zeros(fan_out)))
    return layers


def init(learner, rng):
    """Parameters, optimizer state, number of updates."""
    sizes = (learner.features, *learner.hidden)
    parameters = {"actor": init_layers(rng, (*sizes, sum(learner.heads)), 0.01)}
    if learner.separate_value:
        parameters["critic"] = init_layers(rng, (*sizes, 1), 1.0)
    else:
        parameters["value"] = init_layers(rng, (sizes[-1], 1), 1.0)
    return parameters, learner.optimizer.init(parameters), jnp.int32(0)


def hidden_layers(layers, x, activation):
    for weight, bias in layers:
        x = activation(x @ weight + bias)
    return x


def forward(learner, parameters, x):
    """Log-probabilities of each head's choices, and values."""
    activation = {"relu": jax.nn.relu, "tanh": jnp.tanh}[learner.activation]
    *body, (weight, bias) = parameters["actor"]
    h = hidden_layers(body, x, activation)
    logits = jnp.split(h @ weight + bias, [sum(learner.heads[:k]) for k in range(1, len(learner.heads))], axis=-1)
    if learner.separate_value:
        *body, (weight, bias) = parameters["critic"]
        h = hidden_layers(body, x, activation)
    else:
        weight, bias = parameters["value"][0]
    return [jax.nn.log_softmax(part) for part in logits], (h @ weight + bias)[..., 0]


def log_prob_of(log_probs, action):
    return sum(jnp.take_along_axis(part, action[..., k:k + 1], axis=-1)[..., 0] for k, part in enumerate(log_probs))


def act(learner, parameters, x, key):
    log_probs, value = forward(learner, parameters, x)
    keys = jax.random.split(key, len(log_probs))
    action = jnp.stack([jax.random.categorical(k, part) for k, part in zip(keys, log_probs)], axis=-1)
    return action, log_prob_of(log_probs, action), value


def loss(learner, parameters, batch, clip):
    """Sum over the rows that count; the caller divides by their number."""
    log_probs, value = forward(learner, parameters, batch["observation"])
    log_prob = log_prob_of(log_probs, batch["action"])
    entropy = -sum((jnp.exp(part) * part).sum(-1) for part in log_probs)
    if learner.algorithm == "PPO":
        ratio = jnp.exp(log_prob - batch["log_prob"])
        gain = jnp.minimum(ratio * batch["advantage"], jnp.clip(ratio, 1 - clip, 1 + clip) * batch["advantage"])
    else:
        gain = log_prob * batch["advantage"]
    row = -gain + learner.value_coefficient * (value - batch["target"]) ** 2 - learner.entropy_coefficient * entropy
    return (row * batch["mask"]).sum()


def optimize(learner, state, batch, total_of=lambda x: x):
    """One optimizer step on a batch of rows, or of pieces [T, replicas, agents] whose activations stay in
    the cache. `total_of` adds sums over this batch to those of other devices."""
    parameters, moments, count = state
    clip = learner.clip(count) if callable(learner.clip) else learner.clip
    gradient = jax.grad(functools.partial(loss, learner))
    if batch["mask"].ndim == 1:
        total = gradient(parameters, batch, clip)
    else:
        zeros = jax.tree.map(jnp.zeros_like, parameters)
        add = lambda total, piece: (jax.tree.map(jnp.add, total, gradient(parameters, piece, clip)), None)  # noqa: E731
        total, _ = jax.lax.scan(add, zeros, batch)
    total, n = total_of((total, batch["mask"].sum()))
    total = jax.tree.map(lambda g: g / jnp.maximum(n, 1), total)
    updates, moments = learner.optimizer.update(total, moments, parameters)
    return optax.apply_updates(parameters, updates), moments, count + 1


def advantages(learner, rows, last_value, total=lambda x: x):
    """Advantage and target of rows of shape [T, replicas, agents]. `total` adds a sum over these rows to those of
    other devices."""
    def back(carry, row):
        gae, next_value = carry
        goes_on = 1.0 - row["ended"]
        # After a truncated episode, the next value is that of its true last observation.
        follows = jnp.where(row["left"] > 0, 0.0, jnp.where(row["ended"] > 0, row["cut_value"], next_value))
        delta = row["reward"] + learner.gamma * follows - row["value"]
        gae = delta + learner.gamma * learner.gae_lambda * goes_on * (1.0 - row["left"]) * gae
        return (gae, row["value"]), gae

    needed = {name: rows[name] for name in ("reward", "value", "ended", "left", "cut_value")}
    _, advantage = jax.lax.scan(back, (jnp.zeros_like(last_value), last_value), needed, reverse=True)
    target = advantage + rows["value"]
    if learner.normalize_advantage:
        n = jnp.maximum(total(rows["mask"].sum()), 1)
        mean = total((advantage * rows["mask"]).sum()) / n
        deviation = jnp.sqrt(total((((advantage - mean) * rows["mask"]) ** 2).sum()) / n)
        advantage = (advantage - mean) / (deviation + 1e-8)
    return advantage, target


def update(learner, state, rows, last_value, key, total_of=lambda x: x):
    advantage, target = advantages(learner, rows, last_value, total_of)
    batch = {name: rows[name] for name in ("observation", "action", "log_prob", "mask")} | {"advantage": advantage, "target": target}
    if learner.algorithm != "PPO":
        return optimize(learner, state, batch, total_of)  # the pieces are the steps of the rollout
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[3:]), batch)
    count = flat["mask"].shape[0]

    def epoch(state, key):
        order = learner.shuffle(key, count)
        minibatches = jax.tree.map(lambda x: x[order].reshape(learner.minibatches, -1, *x.shape[1:]), flat)
        return jax.lax.scan(lambda s, b: (optimize(learner, s, b, total_of), None), state, minibatches)

    state, _ = jax.lax.scan(epoch, state, jax.random.split(key, learner.epochs))
    return state


def reset_ended(game, games, ended, key):
    """Draws new starts only in a step in which an episode ended."""
    def some():
        fresh = jax.vmap(game.reset)(jax.random.split(key, ended.size))
        return jax.tree.map(lambda a, b: jnp.where(ended.reshape(-1, *[1] * (a.ndim - 1)), a, b), fresh, games)

    return jax.lax.cond(ended.any(), some, lambda: games)


class Training:
    """`iterate(carry)` is a rollout of `steps` in `replicas` of a game, plus the update; `start(seed)`
    returns the first carry."""

    total_of = staticmethod(lambda x: x)  # all replicas are on one device

    def __init__(self, game, policies, replicas, steps):
        self.game, self.policies, self.replicas, self.steps = game, policies, replicas, steps

    def start(self, seed):
        rng, (games, key) = np.random.default_rng(seed), jax.random.split(jax.random.PRNGKey(seed))
        states = {name: init(learner, rng) for name, learner in self.policies.items()}
        games = jax.jit(jax.vmap(self.game.reset))(jax.random.split(games, self.replicas))
        # Per replica, the return of the running episode, as the mean over the agents of the first policy; the
        # returns of the last 100 finished episodes; the number of finished episodes.
        episodes = (jnp.zeros(self.replicas), jnp.zeros(100), jnp.int32(0))
        return states, games, episodes, key

    def iterate(self, carry):
        states, games, episodes, key = carry
        key, roll, learn = jax.random.split(key, 3)
        (games, episodes), rows = jax.lax.scan(functools.partial(self.step, states), (games, episodes), jax.random.split(roll, self.steps))
        observation = jax.vmap(self.game.observe)(games)
        keys = jax.random.split(learn, len(self.policies))
        new = {}
        for (name, learner), k in zip(self.policies.items(), keys):
            last_value = forward(learner, states[name][0], observation[name])[1]
            new[name] = update(learner, states[name], rows[name], last_value, k, self.total_of)
        return new, games, episodes, key

    def step(self, states, carry, key):
        games, episodes = carry
        act_key, reset_key = jax.random.split(key)
        observation, active = jax.vmap(self.game.observe)(games), jax.vmap(self.game.active)(games)
        rows = {}
        for (name, learner), k in zip(self.policies.items(), jax.random.split(act_key, len(self.policies))):
            action, log_prob, value = act(learner, states[name][0], observation[name], k)
            rows[name] = {"observation": observation[name], "action": action, "log_prob": log_prob, "value": value, "mask": active[name]}
        after, reward, terminated, truncated = jax.vmap(self.game.step)(games, {name: row["action"] for name, row in rows.items()})
        ended = jnp.logical_or(terminated, truncated)
        still = jax.vmap(self.game.active)(after)
        for name, learner in self.policies.items():
            mask = rows[name]["mask"]
            gone = jnp.maximum(mask - still[name], terminated[:, None].astype(jnp.float32))
            cut = self.cut_values(learner, states[name][0], name, after, mask, truncated)
            rows[name] |= {"reward": reward[name], "ended": jnp.broadcast_to(ended[:, None], mask.shape).astype(jnp.float32),
                           "left": gone, "cut_value": cut}
        return (reset_ended(self.game, after, ended, reset_key), self.count_episodes(episodes, reward, ended)), rows

    def cut_values(self, learner, parameters, name, after, mask, truncated):
        """Values of the observations at which episodes were truncated; computed only in a step with a
        truncation."""
        if not self.game.truncates:
            return jnp.zeros_like(mask)
        value = lambda: forward(learner, parameters, jax.vmap(self.game.observe)(after)[name])[1]  # noqa: E731
        return jax.lax.cond(truncated.any(), value, lambda: jnp.zeros_like(mask))

    def count_episodes(self, episodes, reward, ended):
        returns, last, count = episodes
        returns = returns + reward[next(iter(self.policies))].mean(-1)
        place = jnp.where(ended, (count + jnp.cumsum(ended) - 1) % last.size, last.size)
        last = last.at[place].set(returns, mode="drop")
        return jnp.where(ended, 0.0, returns), last, count + ended.sum()


class Divided(Training):
    """Training with its replicas divided between all devices: each draws a part of every minibatch from its own
    rows, and the gradients are added. Returns of episodes are counted per device."""

    total_of = staticmethod(functools.partial(jax.lax.psum, axis_name="d"))

    def start(self, seed):
        self.mesh = Mesh(np.array(jax.devices()), ("d",))
        states, games, (returns, last, count), key = super().start(seed)
        n = self.mesh.size
        episodes = returns, jnp.tile(last, n), jnp.tile(count, n)
        whole, split = (NamedSharding(self.mesh, part) for part in (PartitionSpec(), PartitionSpec("d")))
        return jax.device_put(states, whole), jax.device_put(games, split), jax.device_put(episodes, split), jax.device_put(jax.random.split(key, n), split)

    def iterate(self, carry):
        whole, split = PartitionSpec(), PartitionSpec("d")
        specs = (whole, split, split, split)
        return jax.shard_map(self.part, mesh=self.mesh, in_specs=(specs,), out_specs=specs, check_vma=False)(carry)

    def part(self, carry):
        states, games, (returns, last, count), key = carry
        states, games, (returns, last, count), key = super().iterate((states, games, (returns, last, count[0]), key[0]))
        return states, games, (returns, last, count[None]), key[None]
