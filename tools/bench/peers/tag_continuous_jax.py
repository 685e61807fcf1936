"""Compares tag_continuous written in jax (vmap over replicas, scan over steps, one jitted program) with ours;
prints one JSON object to stdout.

    .venv-peers/bin/python tools/bench/peers/tag_continuous_jax.py [--pairs 5] [--seconds 10] [--replicas N]
                                                                   [--device cpu|gpu] [--precision fp32|tf32]

"env" steps with actions drawn beforehand and sums all observations, which XLA does without writing the
rows; ours writes them. "train" is A2C in rollouts of 20 steps with two policies of 2 x 256 units, on both
sides. In the variants of "train" only our settings change, and jax trains as before: "activations kept"
learns from the activations of the rollout (reuse_activations), which jax recomputes; "factorised" computes
the first layer from the table that all rows derive from (trainer.observations: table); "bf16" rounds
observations and hidden layers. In "tuned peer" jax too learns from the activations of the rollout, and divides
the replicas between as many host devices as there are cores (tag_continuous_tuned.py); ours keeps them too. In
"env, tuned peer" jax writes the rows of each step over those of the step before, which is faster than to sum them
or to keep the rows of all steps; ours keeps them. The tuned peer runs in a process of its own, because XLA reads
the number of devices, and glibc whether to use huge pages, when it starts.

--precision tf32 is for a GPU: products of both sides then use its tensor cores, except for ours in "bf16". It leaves
out tuned peers, which are compared with the plain one number by number.
"""

import functools

from side_by_side import PRECISIONS, JaxLoop, Ours, TunedProcess, Unavailable, comparison, jax_for, parser, report

GAMES = {"full": dict(taggers=5, observed=0), "nearest": dict(taggers=10, observed=10)}
KEPT, TABLE, BF16 = {"reuse_activations": "true"}, ["trainer.observations=table"], ["trainer.precision=bf16"]
# Per variant, the settings of our policies and of our trainer.
TRAINED = {"full": {"train": ({}, []), "train, activations kept": (KEPT, []), "train, factorised": ({}, TABLE),
                    "train, factorised, activations kept": (KEPT, TABLE), "train, bf16, activations kept": (KEPT, BF16),
                    "train, tuned peer": (KEPT, []), "train, factorised, tuned peer": (KEPT, TABLE)},
           "nearest": {"train": ({}, []), "train, activations kept": (KEPT, []), "train, bf16, activations kept": (KEPT, BF16),
                       "train, tuned peer": (KEPT, [])}}
STEPS, HIDDEN = 20, (256, 256)


def our_settings(name):
    game = GAMES[name]
    return [f"env.num_taggers={game['taggers']}", f"env.use_full_observation={'true' if not game['observed'] else 'false'}"]


def our_policies(more):
    policy = ("{algorithm: A2C, lr: 3e-4, gamma: 0.98, gae_lambda: 0.95, vf_loss_coeff: 0.5, entropy_coeff: 0.01, normalize_advantage: true, "
              + "".join(f"{key}: {value}, " for key, value in more.items()) + f"model: {{fc_dims: {list(HIDDEN)}}}}}")
    return [f"policy={{tagger: {policy}, runner: {policy}}}"]


def game_of(name):
    from tag_continuous_game import TagContinuous
    return TagContinuous(**GAMES[name])


def env_only(jax, name, replicas):
    from learn_jax import reset_ended
    game = game_of(name)
    keys = jax.random.split(jax.random.PRNGKey(0), 3)
    drawn = jax.random.randint(keys[0], (STEPS, replicas, game.agents, 2), 0, game.levels + 1)

    def step(carry, given):
        games, total, key = carry
        key, sub = jax.random.split(key)
        actions = {"tagger": given[:, :game.taggers], "runner": given[:, game.taggers:]}
        after, reward, over, _ = jax.vmap(game.step)(games, actions)
        after = reset_ended(game, after, over, sub)
        # Twice as fast when not fused with the sum.
        seen = jax.lax.optimization_barrier(jax.vmap(game.seen)(after))
        total += sum(part.sum() for part in jax.tree.leaves((seen, reward)))
        return (after, total, key), None

    carry = jax.vmap(game.reset)(jax.random.split(keys[1], replicas)), jax.numpy.float32(0), keys[2]
    return JaxLoop(jax, lambda carry: jax.lax.scan(step, carry, drawn)[0], carry, STEPS * replicas)


def learners(game):
    from learn_jax import Learner
    learner = Learner(features=game.features, heads=game.heads, hidden=HIDDEN, algorithm="A2C", gae_lambda=0.95, normalize_advantage=True)
    return {"tagger": learner, "runner": learner}


@functools.cache  # compiled only once
def trained(jax, name, replicas):
    from learn_jax import Training
    game = game_of(name)
    training = Training(game, learners(game), replicas, STEPS)
    return JaxLoop(jax, training.iterate, training.start(0), STEPS * replicas)


def compare(options, name, mode):
    ours = Ours(options.device)
    tuned, bench_mode = mode.endswith("tuned peer"), "env" if mode.startswith("env") else "train"
    replicas = options.replicas or (1024 if options.device == "gpu" else 64 if tuned else 32)
    if tuned and options.precision != "fp32":
        raise Unavailable("tuned peers are compared in fp32 alone")
    if tuned:
        peer = TunedProcess("tag_continuous_tuned.py", [name, bench_mode], options, replicas)
    else:
        peer = (env_only if mode == "env" else trained)(jax_for(options.device, options.precision), name, replicas)
    settings, batch = our_settings(name), None
    if bench_mode == "train":
        of_policies, of_trainer = TRAINED[name][mode]
        of_trainer = ([] if of_trainer == BF16 else [f"trainer.precision={options.precision}"]) + of_trainer
        settings += our_policies(of_policies) + of_trainer
        batch = STEPS * replicas
    facts = {"agents": game_of(name).agents, "replicas": replicas, "steps": STEPS, "precision": options.precision}
    if tuned:
        facts |= peer.facts
        if bench_mode == "train":
            facts["deviation_from_plain_peer"] = peer.deviation
    try:
        return comparison(options, lambda: peer.speed(options.seconds),
                          lambda: ours.bench(bench_mode, "tag_continuous", options.seconds, replicas, batch, settings), ours, **facts)
    finally:
        if tuned:
            peer.end()


def main():
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--replicas", type=int, help="32, for tuned peers 64, on a GPU 1024")
    options.add_argument("--precision", choices=PRECISIONS, default="fp32", help="of products of both sides; tf32 on a GPU alone")
    options = options.parse_args()
    if options.precision == "tf32" and options.device != "gpu":
        raise SystemExit("tag_continuous_jax.py: --precision tf32 needs --device gpu: a CPU has no tensor cores")
    report(options, "tag_continuous in jax", "5 + 100 that see all, and 10 + 100 that see their 10 nearest; environment alone, and A2C; " + options.precision,
           ["jax", "jaxlib", "optax"],
           {f"{name}, {mode}": functools.partial(compare, options, name, mode) for name in GAMES for mode in ["env", "env, tuned peer", *TRAINED[name]]})


if __name__ == "__main__":
    main()
