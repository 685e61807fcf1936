"""Compares lbforaging's own environment with our foraging; prints one JSON object to stdout.

    .venv-peers/bin/python tools/bench/peers/foraging.py [--pairs 5] [--seconds 10]

The peer is one process that steps one environment of gymnasium.make, without gymnasium's checks, with actions that were drawn before, and resets it
at the end of an episode. Ours is `wdtrain bench --mode env`, which draws its actions: one process with all its threads.
"""

import functools
import time

from side_by_side import Ours, comparison, parser, report

REPLICAS = 1024
GAMES = {  # of lbforaging, and our parameters that differ from the defaults
    "Foraging-2s-8x8-2p-2f-coop-v3": {},
    "Foraging-15x15-4p-3f-v3": {"players": 4, "field_size": 15, "max_num_food": 3, "sight": 15, "force_coop": "false"},
}


def steps_per_second(name, seconds):
    import gymnasium
    import lbforaging  # noqa: F401: registers the games
    import numpy
    env = gymnasium.make(name, disable_env_checker=True).unwrapped
    players = len(env.action_space)
    actions = [tuple(row) for row in numpy.random.default_rng(1).integers(0, 6, (1 << 14, players)).tolist()]
    env.reset(seed=1)

    def play(seconds):
        begin, steps = time.perf_counter(), 0
        while True:
            for action in actions:
                *_, terminated, truncated, _ = env.step(action)
                steps += 1
                if terminated or truncated:
                    env.reset()
                if steps % 256 == 0 and time.perf_counter() - begin >= seconds:
                    return steps / (time.perf_counter() - begin)

    play(0.2)
    return play(seconds)


def compare(options, name):
    ours = Ours(options.device)
    ours.need("foraging")
    settings = [f"env.{key}={value}" for key, value in GAMES[name].items()]
    return comparison(options, lambda: steps_per_second(name, options.seconds),
                      lambda: ours.bench("env", "foraging", options.seconds, REPLICAS, settings=settings), ours,
                      agents=GAMES[name].get("players", 2), replicas=REPLICAS)


def main():
    options = parser(__doc__.splitlines()[0]).parse_args()
    report(options, "lbforaging", "one environment in one process of Python; steps of the environment with random actions", ["lbforaging", "gymnasium", "numpy"],
           {name: functools.partial(compare, options, name) for name in GAMES})


if __name__ == "__main__":
    main()
