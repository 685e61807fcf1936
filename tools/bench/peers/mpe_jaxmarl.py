"""Trains JaxMARL's MPE_simple_spread_v3 (3 agents) with the recipes of JaxMARL's baselines; prints JSON lines.

    .venv-peers/bin/python tools/bench/peers/mpe_jaxmarl.py --algorithm ippo|vdn|qmix|random [--steps 10000000]
    [--length 10000000] [--seconds 0] [--seed 1] [--threads 2] [--goal -11] [--until_goal] [--evaluate_every 10]

These are not JaxMARL's own scripts: the wheel of 0.2.0 has environments and wrappers but no baselines, and the
scripts need a checkout, hydra, wandb, distrax and flashbax. This file is written anew around JaxMARL's environment,
with the networks, losses, optimizers and settings of ippo_ff_mpe, vdn_rnn and qmix_rnn (ippo_ff_mpe.yaml and
ql_rnn_mpe.yaml). Three differences make it faster than the scripts, never slower: nothing is reported from within
the training loop, evaluations are not timed, and the replay buffer keeps each observation once, from which state and
agent ids are derived. One seed is trained, where the scripts train ten with vmap.

Units. `return_per_agent` is in mpe2's unit: rewards of 25 steps, summed over the steps, mean over the 3 agents.
Random play returns about -26 (`--algorithm random`: -26.4). JaxMARL's episodes have 26 steps, of which the last is left out
here; its MPELogWrapper, which its scripts log, multiplies by 3 (random play: -82), and its Q-learners train on the
sum over the agents.

`return_per_agent` is that of training episodes since the line before, with exploration: samples of IPPO's policy,
epsilon-greedy for Q-learners. `greedy_return_per_agent` plays 512 episodes, in every tenth line; it is the number that
JaxMARL's Q-learners report. `seconds` are wall time of training alone: without imports, without compilation
(`compilation_s`, in which the first state is created too), and without evaluations. `processor_s` is the same in
processor time of all threads.

The schedules (learning rate, epsilon) end after --length steps, JaxMARL's 10 million. --steps and --seconds only
stop earlier.
"""

import argparse
import json
import os
import sys
import time

EPISODE = 25  # steps that count
LINE = 50_000  # least environment steps between two lines
IPPO = dict(replicas=16, steps=128, lr=2.5e-4, epochs=4, minibatches=4, gamma=0.99, gae_lambda=0.95, clip=0.2, entropy=0.01, value=0.5, max_norm=0.5)
# An episode per replica and update; the buffer holds 5,000 // 8 episodes of each replica.
Q = dict(replicas=8, steps=26, lr=5e-3, gamma=0.9, epsilon=(1.0, 0.05), decay=0.1, max_norm=25.0, target_every=200, learning_starts=10_000,
         buffer=625, batch=32, hidden=64, embedding=32, hypernet=128, mixer_scale=1e-3)


def orthogonal(key, rows, columns, scale):
    import jax
    return jax.nn.initializers.orthogonal(scale)(key, (rows, columns))


def dense(key, rows, columns, scale=1.0):
    import jax.numpy as jnp
    return {"w": orthogonal(key, rows, columns, scale), "b": jnp.zeros(columns)}


def apply(layer, x):
    return x @ layer["w"] + layer["b"]


class Spread:
    """JaxMARL's environment with arrays [replicas, agents, ...] in place of dictionaries of agents."""

    def __init__(self):
        from simple_tag_jaxmarl import make
        self.env = make(name="MPE_simple_spread_v3")
        self.agents = self.env.num_agents
        self.features = self.env.observation_space(self.env.agents[0]).shape[0]
        self.actions = self.env.action_space(self.env.agents[0]).n

    def stack(self, values):
        import jax.numpy as jnp
        return jnp.stack([values[name] for name in self.env.agents], axis=1)

    def reset(self, key, replicas):
        import jax
        observation, state = jax.vmap(self.env.reset)(jax.random.split(key, replicas))
        return self.stack(observation), state

    def step(self, key, state, actions):
        """Observation (of the next episode if this one has ended), state, rewards, done [replicas]."""
        import jax
        keys = jax.random.split(key, actions.shape[0])
        observation, state, reward, done, _ = jax.vmap(self.env.step)(keys, state, {name: actions[:, k] for k, name in enumerate(self.env.agents)})
        return self.stack(observation), state, self.stack(reward), done["__all__"]

    def play(self, key, replicas, memory, act):
        """Mean return per agent of one episode per replica. `act(memory, observation, key) -> memory, actions`."""
        import jax
        start, key = jax.random.split(key)
        observation, state = self.reset(start, replicas)

        def step(carry, key):
            observation, state, memory = carry
            act_key, step_key = jax.random.split(key)
            memory, actions = act(memory, observation, act_key)
            observation, state, reward, _ = self.step(step_key, state, actions)
            return (observation, state, memory), reward

        _, rewards = jax.lax.scan(step, (observation, state, memory), jax.random.split(key, EPISODE))
        return rewards.sum(0).mean()


class Ippo:
    """Independent PPO with shared weights; perceptrons of 2 x 64 for policy and value."""

    def __init__(self, spread, length):
        import optax
        self.spread, self.rollout = spread, IPPO["replicas"] * IPPO["steps"]
        updates, per_update = length // self.rollout, IPPO["epochs"] * IPPO["minibatches"]
        rate = lambda count: IPPO["lr"] * (1.0 - (count // per_update) / updates)  # noqa: E731
        self.optimizer = optax.chain(optax.clip_by_global_norm(IPPO["max_norm"]), optax.adam(rate, eps=1e-5))

    def network(self, key, outputs, last_scale):
        import jax
        keys = jax.random.split(key, 3)
        return [dense(keys[0], self.spread.features, 64, 2.0**0.5), dense(keys[1], 64, 64, 2.0**0.5), dense(keys[2], 64, outputs, last_scale)]

    def forward(self, layers, x):
        import jax.numpy as jnp
        for layer in layers[:-1]:
            x = jnp.tanh(apply(layer, x))
        return apply(layers[-1], x)

    def start(self, seed):
        import jax
        import jax.numpy as jnp
        policy, value, games, key = jax.random.split(jax.random.PRNGKey(seed), 4)
        parameters = {"policy": self.network(policy, self.spread.actions, 0.01), "value": self.network(value, 1, 1.0)}
        zeros = lambda: jnp.zeros(IPPO["replicas"])  # noqa: E731
        return parameters, self.optimizer.init(parameters), self.spread.reset(games, IPPO["replicas"]), (zeros(), zeros()), key

    def update(self, carry):
        import jax
        import jax.numpy as jnp
        parameters, moments, games, episodes, key = carry
        key, roll, learn = jax.random.split(key, 3)
        (games, episodes), (rows, ended) = jax.lax.scan(lambda c, k: self.step(parameters, c, k), (games, episodes), jax.random.split(roll, IPPO["steps"]))
        last_value = self.forward(parameters["value"], games[0])[..., 0]

        def back(carry, row):
            advantage, following = carry
            goes_on = 1.0 - row["done"][:, None]
            change = row["reward"] + IPPO["gamma"] * following * goes_on - row["value"]
            advantage = change + IPPO["gamma"] * IPPO["gae_lambda"] * goes_on * advantage
            return (advantage, row["value"]), advantage

        needed = {name: rows[name] for name in ("done", "reward", "value")}
        _, advantage = jax.lax.scan(back, (jnp.zeros_like(last_value), last_value), needed, reverse=True)
        batch = {name: rows[name] for name in ("observation", "action", "log_prob", "value")} | {"advantage": advantage, "target": advantage + rows["value"]}
        batch = jax.tree.map(lambda x: x.reshape(-1, *x.shape[3:]), batch)
        count = batch["value"].shape[0]

        def optimize(state, minibatch):
            parameters, moments = state
            changes, moments = self.optimizer.update(jax.grad(self.loss)(parameters, minibatch), moments)
            return (jax.tree.map(jnp.add, parameters, changes), moments), None

        def epoch(state, key):
            order = jax.random.permutation(key, count)
            return jax.lax.scan(optimize, state, jax.tree.map(lambda x: x[order].reshape(IPPO["minibatches"], -1, *x.shape[1:]), batch))

        (parameters, moments), _ = jax.lax.scan(epoch, (parameters, moments), jax.random.split(learn, IPPO["epochs"]))
        return (parameters, moments, games, episodes, key), (ended[0].sum(), ended[1].sum())

    def step(self, parameters, carry, key):
        import jax
        import jax.numpy as jnp
        (observation, state), (returns, age) = carry
        act_key, step_key = jax.random.split(key)
        log_probs = jax.nn.log_softmax(self.forward(parameters["policy"], observation))
        action = jax.random.categorical(act_key, log_probs)
        row = {"observation": observation, "action": action, "value": self.forward(parameters["value"], observation)[..., 0],
               "log_prob": jnp.take_along_axis(log_probs, action[..., None], -1)[..., 0]}
        observation, state, reward, done = self.spread.step(step_key, state, action)
        done = done.astype(jnp.float32)
        returns, age = returns + jnp.where(age < EPISODE, reward.mean(-1), 0.0), age + 1.0
        ended = ((returns * done).sum(), done.sum())
        return ((observation, state), (returns * (1.0 - done), age * (1.0 - done))), (row | {"reward": reward, "done": done}, ended)

    def loss(self, parameters, batch):
        import jax
        import jax.numpy as jnp
        log_probs = jax.nn.log_softmax(self.forward(parameters["policy"], batch["observation"]))
        value = self.forward(parameters["value"], batch["observation"])[..., 0]
        near = batch["value"] + jnp.clip(value - batch["value"], -IPPO["clip"], IPPO["clip"])
        value_loss = 0.5 * jnp.maximum((value - batch["target"]) ** 2, (near - batch["target"]) ** 2).mean()
        ratio = jnp.exp(jnp.take_along_axis(log_probs, batch["action"][:, None], -1)[:, 0] - batch["log_prob"])
        advantage = (batch["advantage"] - batch["advantage"].mean()) / (batch["advantage"].std() + 1e-8)
        gain = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1.0 - IPPO["clip"], 1.0 + IPPO["clip"]) * advantage).mean()
        entropy = -(jnp.exp(log_probs) * log_probs).sum(-1).mean()
        return -gain + IPPO["value"] * value_loss - IPPO["entropy"] * entropy

    def greedy(self, carry, key, replicas):
        return self.spread.play(key, replicas, (), lambda memory, observation, _: (memory, self.forward(carry[0]["policy"], observation).argmax(-1)))


class QLearning:
    """VDN, or QMIX if `mixed`: recurrent Q-values with shared weights and agent ids, episodes in a buffer, one step of
    the optimizer per rollout."""

    def __init__(self, spread, length, mixed):
        import optax
        self.spread, self.mixed, self.rollout = spread, mixed, Q["replicas"] * Q["steps"]
        updates = length // self.rollout
        self.epsilon = optax.linear_schedule(*Q["epsilon"], int(Q["decay"] * updates))
        self.optimizer = optax.chain(optax.clip_by_global_norm(Q["max_norm"]), optax.radam(optax.linear_schedule(Q["lr"], 1e-10, updates)))

    def start(self, seed):
        import jax
        import jax.numpy as jnp
        keys = jax.random.split(jax.random.PRNGKey(seed), 13)
        hidden, inputs = Q["hidden"], self.spread.features + self.spread.agents
        # As flax's GRUCell: the gates r, z and n side by side.
        cell = {"x": jax.nn.initializers.lecun_normal()(keys[2], (hidden, 3 * hidden)), "b": jnp.zeros(3 * hidden),
                "h": jnp.concatenate([orthogonal(key, hidden, hidden, 1.0) for key in keys[3:6]], axis=1), "n": jnp.zeros(hidden)}
        parameters = {"first": dense(keys[0], inputs, hidden), "cell": cell, "last": dense(keys[1], hidden, self.spread.actions)}
        if self.mixed:
            state, scale = self.spread.features * self.spread.agents, Q["mixer_scale"]
            sizes = {"w1": (Q["hypernet"], self.spread.agents * Q["embedding"]), "w2": (Q["hypernet"], Q["embedding"]), "b2": (Q["embedding"], 1)}
            for k, (name, (middle, outputs)) in enumerate(sizes.items()):
                parameters[name] = [dense(keys[6 + 2 * k], state, middle, scale), dense(keys[7 + 2 * k], middle, outputs, scale)]
            parameters["b1"] = dense(keys[12], state, Q["embedding"], scale)
        rows, agents = (Q["buffer"] * Q["replicas"], Q["steps"]), self.spread.agents
        buffer = {"observation": jnp.zeros((*rows, agents, self.spread.features)), "action": jnp.zeros((*rows, agents), jnp.int32), "reward": jnp.zeros(rows)}
        # The target is a copy: the carry is donated, and no array may be donated twice.
        return parameters, self.optimizer.init(parameters), jax.tree.map(jnp.copy, parameters), buffer, jnp.int32(0), jax.random.PRNGKey(seed + 1)

    def embed(self, parameters, observation):
        """The inputs of the gates, for any leading dimensions."""
        import jax
        import jax.numpy as jnp
        ids = jnp.broadcast_to(jnp.eye(self.spread.agents), (*observation.shape[:-1], self.spread.agents))
        x = jax.nn.relu(apply(parameters["first"], jnp.concatenate([observation, ids], -1)))
        return x @ parameters["cell"]["x"] + parameters["cell"]["b"]

    def remember(self, parameters, memory, gates):
        import jax
        import jax.numpy as jnp
        (xr, xz, xn), (hr, hz, hn) = jnp.split(gates, 3, -1), jnp.split(memory @ parameters["cell"]["h"], 3, -1)
        r, z = jax.nn.sigmoid(xr + hr), jax.nn.sigmoid(xz + hz)
        return (1.0 - z) * jnp.tanh(xn + r * (hn + parameters["cell"]["n"])) + z * memory

    def memory(self, replicas):
        import jax.numpy as jnp
        return jnp.zeros((replicas, self.spread.agents, Q["hidden"]))

    def values(self, parameters, observation):
        """Q-values of whole episodes [steps, episodes, agents, actions]."""
        import jax

        def step(memory, gates):
            memory = self.remember(parameters, memory, gates)
            return memory, memory

        _, memories = jax.lax.scan(step, self.memory(observation.shape[1]), self.embed(parameters, observation))
        return apply(parameters["last"], memories)

    def total(self, parameters, values, observation):
        """The team's value [steps, episodes] of the agents' values."""
        import jax
        import jax.numpy as jnp
        if not self.mixed:
            return values.sum(-1)
        state = observation.reshape(*observation.shape[:2], -1)
        two = lambda name: apply(parameters[name][1], jax.nn.relu(apply(parameters[name][0], state)))  # noqa: E731
        w1 = jnp.abs(two("w1")).reshape(*state.shape[:2], self.spread.agents, Q["embedding"])
        mixed = jax.nn.elu(jnp.einsum("tea,team->tem", values, w1) + apply(parameters["b1"], state))
        return (mixed * jnp.abs(two("w2"))).sum(-1) + two("b2")[..., 0]

    def loss(self, parameters, target, batch):
        import jax
        import jax.numpy as jnp
        values, later = self.values(parameters, batch["observation"]), self.values(target, batch["observation"])
        chosen = jnp.take_along_axis(values, batch["action"][..., None], -1)[..., 0]
        best = jnp.take_along_axis(later, values.argmax(-1)[..., None], -1)[..., 0]  # double Q-learning
        # The last step of an episode has no successor in the buffer and is left out, as in JaxMARL.
        goal = batch["reward"][:-1] + Q["gamma"] * self.total(target, best, batch["observation"])[1:]
        return ((self.total(parameters, chosen, batch["observation"])[:-1] - jax.lax.stop_gradient(goal)) ** 2).mean()

    def update(self, carry):
        import jax
        import jax.numpy as jnp
        parameters, moments, target, buffer, count, key = carry
        key, start, roll, learn = jax.random.split(key, 4)
        observation, state = self.spread.reset(start, Q["replicas"])
        epsilon = self.epsilon(count)

        def step(carry, key):
            observation, state, memory = carry
            draw_key, choice_key, step_key = jax.random.split(key, 3)
            memory = self.remember(parameters, memory, self.embed(parameters, observation))
            greedy = apply(parameters["last"], memory).argmax(-1)
            drawn = jax.random.randint(draw_key, greedy.shape, 0, self.spread.actions)
            action = jnp.where(jax.random.uniform(choice_key, greedy.shape) < epsilon, drawn, greedy)
            after, state, reward, _ = self.spread.step(step_key, state, action)
            return (after, state, memory), {"observation": observation, "action": action, "reward": reward}

        _, rows = jax.lax.scan(step, (observation, state, self.memory(Q["replicas"])), jax.random.split(roll, Q["steps"]))
        returns = rows["reward"][:EPISODE].mean(-1).sum()
        rows["reward"] = rows["reward"].sum(-1)
        place = count % Q["buffer"] * Q["replicas"]
        buffer = {name: jax.lax.dynamic_update_slice_in_dim(buffer[name], jnp.swapaxes(row, 0, 1), place, 0) for name, row in rows.items()}
        count = count + 1
        # Episodes are drawn outside of the condition, so that the buffer is not copied.
        drawn = jax.random.randint(learn, (Q["batch"],), 0, jnp.minimum(count, Q["buffer"]) * Q["replicas"])
        batch = {name: jnp.swapaxes(part[drawn], 0, 1) for name, part in buffer.items()}

        def optimize():
            changes, after = self.optimizer.update(jax.grad(self.loss)(parameters, target, batch), moments)
            return jax.tree.map(jnp.add, parameters, changes), after

        parameters, moments = jax.lax.cond(count * self.rollout > Q["learning_starts"], optimize, lambda: (parameters, moments))
        target = jax.tree.map(lambda new, old: jnp.where((count - 1) % Q["target_every"] == 0, new, old), parameters, target)
        return (parameters, moments, target, buffer, count, key), (returns, jnp.float32(Q["replicas"]))

    def greedy(self, carry, key, replicas):
        def act(memory, observation, _):
            memory = self.remember(carry[0], memory, self.embed(carry[0], observation))
            return memory, apply(carry[0]["last"], memory).argmax(-1)

        return self.spread.play(key, replicas, self.memory(replicas), act)


def train(options, spread):
    import jax
    learner = {"ippo": lambda: Ippo(spread, options.length), "vdn": lambda: QLearning(spread, options.length, False),
               "qmix": lambda: QLearning(spread, options.length, True)}[options.algorithm]()
    updates = -(-LINE // learner.rollout)

    def advance(carry):
        carry, (returns, count) = jax.lax.scan(lambda c, _: learner.update(c), carry, None, updates)
        return carry, returns.sum() / count.sum()

    start = time.perf_counter()
    carry = jax.block_until_ready(learner.start(options.seed))
    advance = jax.jit(advance, donate_argnums=0).lower(carry).compile()
    compilation = time.perf_counter() - start
    evaluate = jax.jit(lambda carry, key: learner.greedy(carry, key, 512))
    steps, seconds, processor, lines, reached = 0, 0.0, 0.0, 0, {}
    while True:
        start, start_processor = time.perf_counter(), time.process_time()
        carry, mean = jax.block_until_ready(advance(carry))
        seconds, processor = seconds + time.perf_counter() - start, processor + time.process_time() - start_processor
        steps, lines = steps + updates * learner.rollout, lines + 1
        line = {"algorithm": options.algorithm, "env_steps": steps, "seconds": round(seconds, 3), "processor_s": round(processor, 3),
                "compilation_s": round(compilation, 3), "return_per_agent": float(mean)}
        done = steps >= options.steps or 0 < options.seconds <= seconds or (options.until_goal and line["return_per_agent"] >= options.goal)
        if done or lines % options.evaluate_every == 0:
            line["greedy_return_per_agent"] = float(evaluate(carry, jax.random.PRNGKey(1_000_000 + lines)))
        for name in ("return_per_agent", "greedy_return_per_agent"):
            if name not in reached and line.get(name, -float("inf")) >= options.goal:
                reached[name] = {field: line[field] for field in ("env_steps", "seconds", "processor_s")}
        print(json.dumps(line), flush=True)
        if done:
            return {**line, "goal": options.goal, "to_goal": reached.get("return_per_agent"), "greedy_to_goal": reached.get("greedy_return_per_agent")}


def play_randomly(options, spread):
    import jax
    draw = lambda memory, observation, key: (memory, jax.random.randint(key, observation.shape[:2], 0, spread.actions))  # noqa: E731
    returns = jax.jit(lambda key: spread.play(key, 16_384, (), draw))(jax.random.PRNGKey(options.seed))
    return {"algorithm": "random", "return_per_agent": float(returns)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--algorithm", choices=["ippo", "vdn", "qmix", "random"], required=True)
    parser.add_argument("--steps", type=int, default=10_000_000, help="stop after these environment steps")
    parser.add_argument("--length", type=int, default=10_000_000, help="environment steps at which the schedules end")
    parser.add_argument("--seconds", type=float, default=0.0, help="stop after this time of training; 0: no limit")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2, help="use only so many of the cores")
    parser.add_argument("--goal", type=float, default=-11.0, help="return per agent")
    parser.add_argument("--until_goal", action="store_true", help="stop when the training return reaches the goal")
    parser.add_argument("--evaluate_every", type=int, default=10, help="lines from one greedy evaluation to the next")
    options = parser.parse_args()
    # XLA sizes its pool of threads by the cores that the process may use.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:options.threads])
    from side_by_side import jax_for
    jax_for("cpu")
    spread = Spread()
    result = play_randomly(options, spread) if options.algorithm == "random" else train(options, spread)
    print(json.dumps({"result": result}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
