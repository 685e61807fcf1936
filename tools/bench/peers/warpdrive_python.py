"""Compares rl-warp-drive's Python environment in one process with ours; prints one JSON object to stdout.

    .venv-peers/bin/python tools/bench/peers/warpdrive_python.py [--pairs 5] [--seconds 10]

"full" is 5 taggers and 100 runners with full observation, "nearest" 10 and 100 that observe the ten
nearest agents: WarpDrive's shipped configuration. Both sides act at random. Episodes that end are reset
within the measured time. WarpDrive's actions are drawn before it, and ours within it. Ours writes a
trajectory far larger than the caches; "in cache" is one of 4 replicas x 8 steps, 10 MB, while WarpDrive
keeps one step, 0.3 MB. "as a table" writes the table that rows of full observation derive from
(trainer.observations: table), as training with a factorized layer does.
"""

import functools
import sys
import time

import numpy as np
from side_by_side import Ours, comparison, parser, report

SHIPPED = dict(
    num_runners=100, grid_length=20.0, episode_length=500, max_acceleration=0.1, min_acceleration=-0.1,
    max_turn=2.356, min_turn=-2.356, num_acceleration_levels=20, num_turn_levels=20,
    tagging_distance=0.02, tag_reward_for_tagger=10.0, tag_penalty_for_runner=-10.0, seed=1,
)
VARIANTS = {
    "full": dict(num_taggers=5, use_full_observation=True),
    "nearest": dict(num_taggers=10, use_full_observation=False, num_other_agents_observed=10),
}


def measure(observation, seconds):
    from example_envs.tag_continuous.tag_continuous import TagContinuous
    env = TagContinuous(**SHIPPED, **VARIANTS[observation])
    rng = np.random.default_rng(0)
    script = rng.integers(0, 21, size=(256, env.num_agents, 2))
    actions = [{agent: row[agent] for agent in range(env.num_agents)} for row in script]
    env.reset()
    steps, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        done = env.step(actions[steps % len(actions)])[2]
        steps += 1
        if done["__all__"]:
            env.reset()
    return steps / elapsed


def compare(options, observation, more=(), **size):
    if options.device != "cpu":
        print("warpdrive_python: this environment runs on the CPU whatever the device; ours does not", file=sys.stderr)
    ours = Ours(options.device)
    variant = VARIANTS[observation]
    settings = [f"env.num_taggers={variant['num_taggers']}", f"env.use_full_observation={str(variant['use_full_observation']).lower()}", *more]
    return comparison(options, lambda: measure(observation, options.seconds),
                      lambda: ours.bench("env", "tag_continuous", options.seconds, settings=settings, **size), ours, agents=100 + variant["num_taggers"])


def main():
    options = parser(__doc__.splitlines()[0]).parse_args()
    report(options, "rl-warp-drive's Python environment", "tag_continuous, environment alone, random actions", ["rl-warp-drive", "numpy"],
           {f"{name}, env": functools.partial(compare, options, name) for name in VARIANTS} |
           {"full, env, as a table": functools.partial(compare, options, "full", more=["trainer.observations=table"])} |
           {f"{name}, env, in cache": functools.partial(compare, options, name, num_envs=4, rollout_steps=8) for name in VARIANTS})


if __name__ == "__main__":
    main()
