"""tag_continuous in jax, for learn_jax.Training: an independent implementation of the rules of
envs/tag_continuous.cu. `check()` compares it with rl-warp-drive's Python environment, step by step.

With full observation no gather is needed: of two copies of a row shifted by one, the first holds the
agents before the observer and the second those after it. The nearest agents are found by repeated minima
over the major axis, which is faster than top_k on a CPU.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np


@dataclasses.dataclass(frozen=True)
class TagContinuous:
    taggers: int = 5
    runners: int = 100
    length: float = 20.0
    episode: int = 500
    max_speed: float = 1.0
    most_acceleration: float = 0.1
    most_turn: float = 2.356
    levels: int = 20  # of acceleration and of turn
    observed: int = 0  # number of nearest agents observed; 0: all
    reach: float = 0.02 * 20.0
    tagger_reward: float = 10.0
    runner_penalty: float = -10.0
    end_reward: float = 1.0
    truncates = False

    @property
    def agents(self):
        return self.taggers + self.runners

    @property
    def features(self):
        return 7 * (self.observed or self.agents - 1) + 1

    @property
    def heads(self):
        return (self.levels + 1, self.levels + 1)

    def table(self, most):
        """Uses numpy, whose float32 linspace has the same bits as WarpDrive's: a speed that just reaches
        its limit there must do so here too."""
        return jnp.asarray(np.concatenate([[0], np.linspace(np.float32(-most), np.float32(most), self.levels, dtype=np.float32)]), jnp.float32)

    def reset(self, key):
        place, heading = jax.random.split(key)
        x, y = jax.random.uniform(place, (2, self.agents)) * self.length
        direction = jax.random.randint(heading, (self.agents,), 0, 4) * (0.5 * jnp.pi)
        return self.begin(x, y, direction)

    def begin(self, x, y, direction):
        zeros, ones = jnp.zeros(self.agents), jnp.ones(self.agents)
        return {"x": x, "y": y, "direction": direction, "speed": zeros, "acceleration": zeros, "playing": ones, "seen": ones, "t": jnp.int32(0)}

    def active(self, state):
        return {"tagger": state["playing"][:self.taggers], "runner": state["playing"][self.taggers:]}

    def step(self, state, actions):
        action = jnp.concatenate([actions["tagger"], actions["runner"]])
        playing = state["playing"]
        acceleration = state["acceleration"] + self.table(self.most_acceleration)[action[:, 0]]
        direction = jnp.mod(state["direction"] + self.table(self.most_turn)[action[:, 1]], 2 * jnp.pi) * playing
        speed = jnp.clip(state["speed"] + acceleration, 0, self.max_speed) * playing
        acceleration = jnp.where((speed > 0) & (speed < self.max_speed), acceleration, 0)
        x = jnp.clip(state["x"] + speed * jnp.cos(direction), 0, self.length)
        y = jnp.clip(state["y"] + speed * jnp.sin(direction), 0, self.length)
        t, k = state["t"] + 1, self.taggers

        # [taggers, runners]
        distance = jnp.sqrt((x[None, k:] - x[:k, None]) ** 2 + (y[None, k:] - y[:k, None]) ** 2)
        least = distance.min(0)
        tagged = ((least < self.reach) & (playing[k:] > 0)).astype(jnp.float32)
        ids = jnp.arange(k)[:, None]
        nearest = jnp.where(distance == least, ids, k).min(0)  # ties: the lowest id
        paid = ((ids == nearest) * tagged).sum(1) * self.tagger_reward
        left = playing[k:] - tagged
        over = (t >= self.episode) | (left.sum() == 0)
        runner = tagged * self.runner_penalty + left * self.end_reward * (t >= self.episode)
        after = {"x": x, "y": y, "direction": direction, "speed": speed, "acceleration": acceleration,
                 "playing": jnp.concatenate([playing[:k], left]), "seen": playing, "t": t}
        return after, {"tagger": paid, "runner": runner}, over, jnp.bool_(False)

    def observe(self, state):
        # Fills rows part by part: concatenate() takes ten times as long on a CPU. The barrier prevents fusion
        # of seen() with the code that follows, which is as slow.
        others, time = jax.lax.optimization_barrier(self.seen(state))
        rows = lambda part, t: jnp.zeros((t.size, self.features)).at[:, :-1].set(part.reshape(t.size, -1)).at[:, -1].set(t)  # noqa: E731
        k = self.taggers
        return {"tagger": rows(others[:k], time[:k]), "runner": rows(others[k:], time[k:])}

    def parts(self, state):
        """As seen(), per policy."""
        others, time = jax.lax.optimization_barrier(self.seen(state))
        k = self.taggers
        return {"tagger": others[:k], "runner": others[k:]}, {"tagger": time[:k], "runner": time[k:]}

    def seen(self, state):
        """The parts of rows: those about others, [agents, 7, others], and the time, [agents]."""
        seen, time = state["seen"], state["t"] / self.episode
        is_tagger = (jnp.arange(self.agents) < self.taggers).astype(jnp.float32)
        diagonal, speed = 1 / (self.length * 2**0.5), 1 / (self.max_speed + 1e-10)
        features = jnp.stack([state["x"] * diagonal, state["y"] * diagonal, state["speed"] * speed, state["acceleration"] * speed,
                              state["direction"] / (2 * jnp.pi), is_tagger, seen])  # [7, agents]
        own = jnp.where(jnp.arange(7)[:, None] < 5, features, 0)
        if self.observed:
            return self.nearest(state, features, own), seen * time
        behind = jnp.arange(self.agents - 1) >= jnp.arange(self.agents)[:, None]  # [agents, others]
        others = jnp.where(behind[:, None], features[None, :, 1:], features[None, :, :-1]) - own.T[:, :, None]
        return others * jnp.where(jnp.arange(7) < 5, seen[:, None], 1)[:, :, None], seen * time

    def nearest(self, state, features, own):
        x, y, seen, ids = state["x"], state["y"], state["seen"], jnp.arange(self.agents)[:, None]
        distance = jnp.sqrt((x[:, None] - x) ** 2 + (y[:, None] - y) ** 2)  # [others, agents]
        distance = jnp.where((ids == ids.T) | (seen[:, None] * seen == 0), jnp.inf, distance)
        chosen = []
        for _ in range(self.observed):
            least = distance.min(0)
            j = jnp.where(distance == least, ids, self.agents).min(0)
            distance = jnp.where(ids == j, jnp.inf, distance)
            chosen.append(jnp.where(jnp.isfinite(least), j, self.agents))
        # A row of zeros for agents that see too few others.
        whole = jnp.concatenate([features.T, jnp.zeros((1, 7))])
        j = jnp.stack(chosen, axis=1)  # [agents, observed]
        return (whole[j] - jnp.where(j[:, :, None] < self.agents, own.T[:, None], 0)).transpose(0, 2, 1)


def check(observed, seed=0, steps=60):
    """Maximum deviation of observations and rewards from rl-warp-drive's Python environment, over an
    episode of random actions."""
    from example_envs.tag_continuous.tag_continuous import TagContinuous as Oracle
    oracle = Oracle(num_taggers=5, num_runners=20, grid_length=8.0, episode_length=steps, max_acceleration=0.1, min_acceleration=-0.1, max_turn=2.356,
                    min_turn=-2.356, num_acceleration_levels=20, num_turn_levels=20, tagging_distance=0.06, tag_reward_for_tagger=10.0,
                    tag_penalty_for_runner=-10.0, end_of_game_reward_for_runner=1.0, use_full_observation=not observed,
                    num_other_agents_observed=observed or 2, seed=seed)
    game = TagContinuous(taggers=5, runners=20, length=8.0, episode=steps, observed=observed, reach=0.06 * 8.0)
    rows = lambda by_agent: np.array([by_agent[i] for i in range(oracle.num_agents)])  # noqa: E731
    joined = lambda by_role: np.concatenate([by_role["tagger"], by_role["runner"]])  # noqa: E731
    # The oracle draws which agents are taggers; here taggers come first.
    oracle.agent_type = {i: int(i < 5) for i in range(oracle.num_agents)}
    oracle.taggers, oracle.runners = {i: True for i in range(5)}, {i: True for i in range(5, oracle.num_agents)}
    oracle.runners_at_reset = dict(oracle.runners)
    oracle.step_rewards = [0.0] * oracle.num_agents
    oracle.reset()
    start = [jnp.asarray(oracle.global_state[name][0], jnp.float32) for name in ("loc_x", "loc_y", "direction")]
    state, rng, worst, done, tags = game.begin(*start), np.random.default_rng(seed), 0.0, False, 0
    step, observe = jax.jit(game.step), jax.jit(game.observe)
    while not done:
        actions = rng.integers(0, 21, size=(oracle.num_agents, 2))
        observation, reward, done, _ = oracle.step(dict(enumerate(actions)))
        done = bool(done["__all__"])
        state, ours, over, _ = step(state, {"tagger": actions[:5], "runner": actions[5:]})
        worst = max(worst, np.abs(rows(observation) - joined(observe(state))).max(), np.abs(rows(reward) - joined(ours)).max())
        tags += int((joined(ours)[5:] < 0).sum())
        assert bool(over) == done
    return worst, tags


if __name__ == "__main__":
    for observed in (0, 10):
        worst, tags = check(observed)
        print(f"{observed or 'all'} observed: largest deviation {worst:.2e}, {tags} tags")
