"""Speed of rl-warp-drive's Python environment, one process, random actions: one JSON object on stdout.

    .venv/bin/python tests/bench/warpdrive_python.py [--observation full|nearest] [--seconds S]

"full" is 5 taggers and 100 runners that see everybody, "nearest" 10 and 100 that see the ten nearest: WarpDrive's shipped
configuration. Episodes that end are reset within the time measured; drawing actions is outside of it.
"""

import argparse
import json
import platform
import sys
import time

import numpy as np
from example_envs.tag_continuous.tag_continuous import TagContinuous

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
    return {"env": "tag_continuous", "observation": observation, "num_agents": env.num_agents, "env_steps": steps,
            "env_steps_per_s": steps / elapsed, "seconds": elapsed, "machine": platform.machine(), "python": platform.python_version(),
            "numpy": np.__version__}


def main():
    parser = argparse.ArgumentParser(description="speed of rl-warp-drive's Python environment")
    parser.add_argument("--observation", choices=VARIANTS, default="full")
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    json.dump(measure(options.observation, options.seconds), sys.stdout)
    print()


if __name__ == "__main__":
    main()
