"""Draws configurations of wdtrain. Most are right; of each fifth, any setting may contradict any other."""

import random

CHOICES, BOX = "choices", "box"


class Game:
    def __init__(self, roles, actions=CHOICES, entities=False, table=False, described=False, recorded=None, streams=(), team=None):
        self.roles, self.actions, self.entities, self.table, self.described = roles, actions, entities, table, described
        self.streams, self.team = streams, team  # streams of replicas; the parameter that says how many agents the first role has
        self.recorded = recorded  # parameters of the recording, if there is one


GAMES = {
    "cartpole": Game(["cart"], recorded={"episode_length": 20}),
    "acrobot": Game(["acrobot"]),
    "mountain_car": Game(["car"]),
    "continuous_mountain_car": Game(["car"], BOX),
    "pendulum": Game(["pendulum"], BOX, recorded={"episode_length": 20}),
    "tag_gridworld": Game(["tagger", "runner"], described=True, recorded={"episode_length": 20, "num_taggers": 2, "grid_length": 5},
                          team="num_taggers"),
    "tag_continuous": Game(["tagger", "runner"], entities=True, table=True, team="num_taggers"),
    "simple_tag": Game(["adversary", "good_agent"], entities=True, team="num_adversaries"),
    "simple_spread": Game(["agent"], entities=True, streams=("state",), team="num_agents"),
    "memory_chain": Game(["witness"]),
    "t_maze": Game(["walker"]),
    "foraging": Game(["player"], streams=("state",), team="players"),
    "simple_speaker_listener": Game(["speaker", "listener"], streams=("state",)),
    "simple_reference": Game(["agent"], streams=("state",)),
    "simple_adversary": Game(["adversary", "agent"], entities=True, streams=("state",)),
}
UNLIKE = ("simple_tag", "simple_speaker_listener", "simple_adversary")  # their roles have other spaces
ACTORS = ("DDPG", "SAC", "TD3")
TEAMS = ("VDN", "QMIX")
VALUES = ("PQN", "PQN-VDN", "PQN-QMIX", "DQN", *TEAMS)
MIXERS = ("QMIX", "PQN-QMIX")
REPLAYED = (*ACTORS, "DQN", *TEAMS)
DRAWN = (*REPLAYED, "BC")
PPOS = ("PPO", "IPPO", "MAPPO")
ALL = ("A2C", "BC", "DDPG", *PPOS, *VALUES, "REINFORCE", "SAC", "TD3")


class Draws:
    def __init__(self, seed, recordings=None, workers=True):
        self.random, self.recordings, self.has_workers = random.Random(seed), recordings, workers

    def chance(self, probability=0.5):
        return self.random.random() < probability

    def of(self, *values):
        return self.random.choice(values)

    def dims(self):
        return [self.of(1, 2, 5, 8, 17, 32, 33) for _ in range(self.of(0, 1, 1, 1, 2, 2, 3))]

    def schedule(self, low, high):
        def value():
            return float(f"{self.random.uniform(low, high):.3g}")
        return value() if self.chance(0.7) else [[0, value()], [self.of(1, 50, 1000), value()]]

    def maybe(self, settings, probability, **options):
        """Sets each option to one of its values, with this probability."""
        for key, values in options.items():
            if self.chance(probability):
                settings[key] = self.of(*values)

    def configuration(self):
        """Returns the configuration and the number of workers."""
        self.valid = self.chance(0.8)
        name = self.of(*GAMES)
        self.game = GAMES[name]
        self.workers = self.of(*[1] * 9, 2, 3) if self.has_workers else 1
        self.envs = self.of(1, 2, 3, 4, 6, 8, 12, 16) * (self.workers if self.valid or self.chance(0.7) else 1)
        self.steps = self.of(1, 1, 2, 3, 5, 8, 16, 25)
        self.offline = self.recordings is not None and self.game.recorded is not None and self.chance(0.15)
        env = self.game.recorded if self.offline else self.environment(name)
        roles = self.game.roles
        names = ["shared"] if len(roles) > 1 and not self.offline and self.chance(0.4) and name not in UNLIKE else roles
        policies = {policy: self.policy() for policy in names}
        count = env.get(self.game.team, 1)
        if names == roles and not self.offline and count > 1 and self.chance(0.3):  # two teams of the first role
            first = self.of(*range(1, count)) if self.valid else count
            policies = {f"{roles[0]}_a": policies.pop(roles[0]) | {"agents": [f"{roles[0]} 0-{first - 1}" if first > 1 else f"{roles[0]} 0"]},
                        f"{roles[0]}_b": self.policy() | {"agents": [f"{roles[0]} {first}-{count - 1}"]}, **policies}
            names = list(policies)
        if len(names) > 1 and self.chance(0.2):
            policies[names[0]]["to_train"] = False
        if self.valid and not self.offline and any(policy["algorithm"] == "REINFORCE" for policy in policies.values()):
            env["episode_length"] = min(env.get("episode_length", 10), self.of(1, 2, 5))
            if not any(policy["algorithm"] in REPLAYED for policy in policies.values()):
                self.steps = 2 * env["episode_length"]
        trainer = self.trainer(name, env, policies)
        if self.valid:
            for policy in policies.values():
                self.mend(policy)
        config = {"name": name, "env": env, "trainer": trainer, "policy": policies,
                  "saving": {"checkpoint_freq": self.of(0, 1), "replay": self.of("always", "last", "never")}}
        if self.chance(0.12):
            config["eval"] = {"every": self.of(0, 1, 5) if not self.valid else 1, "episodes": self.of(1, 2), "greedy": self.chance()}
            self.maybe(config["eval"], 1 if len(roles) > 1 or not self.valid else 0, opponent=["none", "random", "scripted", "both"])
        if self.chance(0.05):
            config["play"] = {"every": 1, "max_steps": self.of(1, 10)}
        return config, self.workers

    def environment(self, name):
        env = {"episode_length": self.of(1, 2, 3, 7, 20)}
        if name == "tag_gridworld":
            env |= {"num_taggers": self.of(1, 2, 4), "grid_length": self.of(1, 2, 10)}
            self.maybe(env, 0.4, use_full_observation=[True, False])
        elif name == "tag_continuous":
            env |= {"num_taggers": self.of(1, 2, 3), "num_runners": self.of(1, 2, 5)}
            self.maybe(env, 0.7, use_full_observation=[True, True, False])
            self.maybe(env, 0.3, num_other_agents_observed=[1, 2, 3], observe_self=[True, False], runner_exits_game_after_tagged=[True, False],
                       num_acceleration_levels=[0, 1, 3], num_turn_levels=[0, 1, 3])
        elif name == "simple_tag":
            env |= {"num_adversaries": self.of(1, 2), "num_good_agents": self.of(1, 2), "num_landmarks": self.of(0, 6)}
        elif name == "simple_spread":
            env |= {"num_agents": self.of(1, 2, 3, 5)}
        elif name == "foraging":
            env |= {"players": self.of(1, 2, 3, 5), "field_size": self.of(3, 5, 8)}
            self.maybe(env, 0.4, max_num_food=[1, 4], sight=[1, 8], force_coop=[True, False], penalty=[0.1])
        elif name == "simple_adversary":
            env |= {"num_good_agents": self.of(1, 2, 4)}
        self.maybe(env, 0.15, reset=["fixed", "pool"] + ([] if self.valid else ["given"]))
        if env.get("reset") == "pool" and (self.valid or self.chance(0.6)):
            env["reset_pool_size"] = self.of(1, 3, 50)
        if not self.valid:
            self.maybe(env, 0.05, starts=["/no/such/starts.json"])
        return env

    def trainer(self, name, env, policies):
        batch = self.envs * self.steps + (0 if self.valid or self.chance(0.9) else 1)
        trainer = {"num_envs": self.envs, "train_batch_size": batch, "total_steps": batch, "stop_return": "none", "seed": self.of(1, 2, 2**53)}
        self.maybe(trainer, 0.3, precision=["bf16"])
        self.maybe(trainer, 0.2, intervals=["iterations", "env_steps", "auto"], staggered_resets=[True, False], canary_freq=[0, 1])
        if self.game.table and env.get("use_full_observation", True):
            self.maybe(trainer, 0.4, observations=["table", "auto"])
        if self.workers > 1 and not any(policy["algorithm"] in (*REPLAYED, "REINFORCE") for policy in policies.values()):
            self.maybe(trainer, 0.2, straggler_preempt=[0.3, 1.0])
        if not self.valid:
            self.maybe(trainer, 0.12, precision=["tf32"], observations=["table"], straggler_preempt=[0.5], stop_return=[10], stop_on=["eval"])
            self.maybe(trainer, 0.05, offline=["/no/such/recording"])
        if self.offline:
            trainer["offline"] = str(self.recordings / name)
            if self.valid:
                trainer.pop("observations", None)
        return trainer

    def algorithm(self):
        if not self.valid:
            return self.of(*ALL)
        if self.offline:
            return self.of("BC", *(ACTORS if self.game.actions == BOX else ("DQN", "VDN", "SAC")))
        return self.of("A2C", "PPO", "IPPO", *["MAPPO", *MIXERS] * (2 if self.game.streams and self.game.actions != BOX else 0), "REINFORCE",
                       *(ACTORS if self.game.actions == BOX else ("PQN", "PQN-VDN", "DQN", "VDN", "SAC")))

    def policy(self):
        algorithm = self.algorithm()
        policy = {"algorithm": algorithm}
        if self.chance():
            policy["lr"] = self.schedule(1e-5, 2e-3)
        self.maybe(policy, 0.3, clip_grad_norm=[True, False])
        if algorithm in DRAWN:
            self.add_replay(policy, algorithm)
        else:
            self.add_rollouts(policy, algorithm)
        if not self.valid:
            self.maybe(policy, 0.03, **{key: [1, 2] for key in ("num_epochs", "buffer_size", "noise", "clip_param", "epsilon", "critic_lr")})
        if algorithm in MIXERS:
            self.maybe(policy, 0.4, mixer_dim=[1, 5, 32], hypernet_dims=[[], [7], [16, 8]])
        policy["model"] = self.model(algorithm)
        return policy

    def add_replay(self, policy, algorithm):
        divisors = [d for d in range(1, self.envs + 1) if self.envs % d == 0]
        sizes = [self.envs, 2 * self.envs, 4 * self.envs, *divisors] if self.valid or self.chance(0.7) else [1, 3, 7, 64]
        size = policy["batch_size"] = self.of(*sizes)
        exact = float(f"{self.of(1, 1, 2, 3) * size / (self.envs * self.steps):.6g}")
        policy["replay_ratio"] = exact if self.valid or self.chance() else self.of(0.01, 1, 16)
        if algorithm == "BC":
            return self.maybe(policy, 0.3, entropy_coeff=[0, 0.01])
        if self.chance():
            policy["n_step"] = self.of(1, 1, 2, 3, 10)
        least = (2 * self.steps + policy.get("n_step", 1)) * self.envs
        policy["buffer_size"] = self.of(least, least + 1, 3 * least, max(5000, least)) if self.valid or self.chance() else self.of(1, max(least - 1, 1), 100)
        policy["learning_starts"] = self.of(0, 1, self.envs * self.steps)
        self.maybe(policy, 0.3, prioritized=[True], reward_scale=[0.01, 10], gamma=[0, 0.5, 1], tau=[0.005, 1], huber=[0, 1])
        if policy.get("prioritized"):
            self.maybe(policy, 0.3, priority_exponent=[0, 0.3, 10])
        if algorithm in ("DQN", *TEAMS):
            self.maybe(policy, 0.3, target_every=[1, 1000], double_q=[True, False], epsilon=[0.1, [[0, 1], [9, 0]]])
        else:
            self.maybe(policy, 0.3, critic_lr=[1e-3], policy_delay=[1, 2, 64], random_steps=[0, 1, 100_000])
        if algorithm in ("TD3", "DDPG"):
            self.maybe(policy, 0.3, noise=[0, 0.1, 10], noise_damping=[0.15, 1])
        if algorithm == "TD3":
            self.maybe(policy, 0.3, target_noise=[0, 0.2], target_noise_clip=[0, 0.5])
        if algorithm == "SAC":
            self.maybe(policy, 0.3, temperature=[1e-6, 1], tune_temperature=[True, False], temperature_lr=[0, 1e-3], target_entropy=[-10, -1, 0, 0.5, "none"])
        if algorithm in ("SAC", "DQN"):
            self.maybe(policy, 0.25, cql_alpha=[0, 0.5])

    def add_rollouts(self, policy, algorithm):
        self.maybe(policy, 0.2, gamma=[0, 0.5, 1], max_rows=[1, 2, 10, 50, 1000])
        if algorithm in (*PPOS, *VALUES):
            self.maybe(policy, 0.3, num_epochs=[1, 2, 3])
            self.maybe(policy, 0.5, num_minibatches=[1, 2, 3, 4, 7, 64, 65_536])
        if algorithm in VALUES:
            return self.maybe(policy, 0.3, **{"lambda": [0, 0.5, 1]}, reward_scale=[0.1], epsilon=[0.1])
        self.maybe(policy, 0.3, entropy_coeff=[0, 1], normalize_advantage=[True, False], normalize_reward=[True, False])
        self.maybe(policy, 0.2, reuse_activations=[True, False, "auto"], normalize_return=[True])
        if algorithm != "REINFORCE":
            self.maybe(policy, 0.3, vf_loss_coeff=[0, 1], n_step=[1, 2, 100], gae_lambda=[0, 0.5, 1], normalize_value=[True, False])
        if algorithm in PPOS:
            self.maybe(policy, 0.3, clip_param=[0.05, 0.5], vf_clip_param=[0, 1], target_kl=[0, 0.001])

    def model(self, algorithm):
        model, game, any_of_all = {}, self.game, not self.valid
        actor, box = algorithm in ACTORS, game.actions == BOX
        if self.chance(0.2) and (any_of_all or algorithm not in DRAWN):
            model |= {"type": self.of("mingru", "gru", "lstm"), "width": self.of(1, 2, 7, 33)}
            self.maybe(model, 0.5, sequence_length=[0, 1, 2, 4, 5])
            self.maybe(model, 0.3, fc_dims=[[], [3], [8, 5]], activation=["relu", "tanh"], layer_norm=[True])
        else:
            model["fc_dims"] = self.dims()
            self.maybe(model, 0.3, activation=["relu", "tanh"], layer_norm=[True], init_method=["orthogonal", "xavier", "default"])
            if self.chance(0.3) and (any_of_all or actor):
                model["critic_dims"] = self.dims()
        self.maybe(model, 0.4 if any_of_all or algorithm in ("A2C", *PPOS) else 0, separate_value=[True, False])
        inputs = ["observation", "entities", "choices"] if any_of_all else ["observation"]
        inputs += ["entities"] * game.entities + ["choices"] * (game.described and algorithm in VALUES)
        self.maybe(model, 0.4, input=inputs)
        if model.get("input") == "entities":
            self.maybe(model, 0.5, nearest=[1, 2, 16], half_distance=[0.01, 10], pool=["none", "mean", "max", "mean_max"], attention=[0, 1, 5])
            if model.get("pool", "none") != "none" or model.get("attention", 0) > 0:
                self.maybe(model, 0.5, embedding=[1, 8, 33])
        self.maybe(model, 0.1 if any_of_all or not self.offline else 0, reads=[["observation", "agent_id"], *[["agent_id", "observation"]] * any_of_all])
        if any_of_all or (game.streams and not self.offline):
            self.maybe(model, 0.3, reads=[["observation", "state"], ["observation", "state", "agent_id"], *[["state"]] * any_of_all])
        if any_of_all or algorithm == "MAPPO" or (algorithm in ("A2C", "PPO", "IPPO", "SAC") and not self.offline):
            streams = list(game.streams)
            self.maybe(model, 1 if algorithm == "MAPPO" else 0.15, critic_reads=[["observation", *streams], [*streams, "agent_id", "observation"], *[["agent_id"]] * any_of_all])
        if algorithm in MIXERS and (game.streams or any_of_all):
            model["critic_reads"] = self.of(["state"], *[["observation"], []] * any_of_all)
        whole = model.get("input") != "choices"
        self.maybe(model, 0.3 if any_of_all or (algorithm in VALUES and whole) else 0, dueling=[True])
        self.maybe(model, 0.3 if any_of_all or (algorithm == "DQN" and whole) or (actor and box) else 0, quantiles=[1, 2, 25])
        self.maybe(model, 0.3 if any_of_all or (whole and not self.offline) else 0, normalize_input=[True])
        if any_of_all or box:
            given = ["gaussian", "gsde"] if algorithm == "SAC" else ["gaussian"] if actor else ["gaussian", "squashed_gaussian", "gsde"]
            self.maybe(model, 0.1 if not box else 0.5, distribution=["gaussian", "squashed_gaussian", "gsde"] if any_of_all else given)
            if model.get("distribution") == "gsde":
                self.maybe(model, 0.6, noise_every=[1, 2, 16])
            self.maybe(model, 0.3, initial_log_std=[-10, -1, 2])
        return model

    def mend(self, policy):
        """Makes numbers fit each other that were drawn apart."""
        algorithm, model = policy["algorithm"], policy["model"]
        recurs = "type" in model
        if algorithm in (*PPOS, "PQN"):
            policy["num_minibatches"] = min(policy.get("num_minibatches", 4), self.envs if recurs else self.envs * self.steps)
        if algorithm in (*REPLAYED, "PQN"):
            model["separate_value"] = False
        if model.get("critic_reads") and algorithm in ("A2C", *PPOS):
            model["separate_value"] = True
        if model.get("sequence_length") and self.steps % model["sequence_length"]:
            model["sequence_length"] = 0
        if model.get("distribution") == "gsde" and recurs:
            model["distribution"] = "gaussian"
            model.pop("noise_every", None)
        elif model.get("distribution") == "gsde":
            model["fc_dims"] = model["fc_dims"] or [7]
        if policy.get("max_rows"):
            policy["max_rows"] += self.envs * self.steps
        if policy.get("n_step", 0) > 0 and algorithm in (*PPOS, "A2C"):
            policy["gae_lambda"] = 1
            policy.pop("normalize_return", None)
        if policy.get("gae_lambda", 0.95 if algorithm in PPOS else 1) != 1:
            policy.pop("normalize_return", None)
        if policy.get("normalize_return"):
            policy.pop("normalize_value", None)
        if policy.get("reuse_activations") is True and (recurs or algorithm in PPOS):
            policy["reuse_activations"] = False
        if algorithm in DRAWN:
            if policy["batch_size"] % self.workers:
                policy["batch_size"] = self.envs * self.workers
            policy["replay_ratio"] = float(f"{self.of(1, 2, 3) * policy['batch_size'] / (self.envs * self.steps):.6g}")
