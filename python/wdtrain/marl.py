"""Settings of JaxMARL and EPyMARL, whose files are YAML, as a configuration of wdtrain."""

import copy
import re

from wdtrain import files, zoo
from wdtrain.files import RunError

ALGORITHMS = {"pqn.*vdn": "PQN-VDN", "pqn": "PQN", "qmix": "QMIX", "vdn": "VDN", "iql|dqn": "DQN", "mappo": "MAPPO", "ippo": "IPPO"}
ROLES = {"simple_tag": ("adversary", "good_agent"), "simple_adversary": ("adversary", "agent"), "simple_spread": ("agent",),
         "simple_reference": ("agent",), "simple_speaker_listener": ("shared",), "foraging": ("player",)}
# What the libraries take if a file does not say it.
JAXMARL = {"REW_SCALE": 1, "TAU": 1, "LEARNING_STARTS": 0, "MAX_GRAD_NORM": 0.5, "GAMMA": 0.99, "UPDATE_EPOCHS": 4, "NUM_MINIBATCHES": 4,
           "GAE_LAMBDA": 0.95, "CLIP_EPS": 0.2, "ENT_COEF": 0.01, "VF_COEF": 0.5, "ACTIVATION": "tanh", "MIXER_EMBEDDING_DIM": 32,
           "MIXER_HYPERNET_HIDDEN_DIM": 128, "LAMBDA": 0.95, "NUM_LAYERS": 2, "SEED": 1}
EPYMARL = {"batch_size_run": 1, "gamma": 0.99, "lr": 5e-4, "grad_norm_clip": 10, "hidden_dim": 64, "batch_size": 32, "buffer_size": 5000,
           "t_max": 2_050_000, "epsilon_start": 1, "epsilon_finish": 0.05, "epsilon_anneal_time": 50_000, "mixing_embed_dim": 32,
           "hypernet_embed": 64, "target_update_interval_or_tau": 200, "double_q": True, "epochs": 4, "eps_clip": 0.2, "entropy_coef": 0.01,
           "q_nstep": 5, "seed": 1}
PPO = ("MAPPO", "IPPO")


def _jaxmarl(s, algorithm, notes):
    envs, steps = s.count("NUM_ENVS"), s.count("NUM_STEPS")
    batch, lr, epochs = envs * steps, s.number("LR"), s.count("UPDATE_EPOCHS" if algorithm in PPO else "NUM_EPOCHS")
    total = max(s.count("TOTAL_TIMESTEPS") // batch, 1) * batch
    falls = [s.get(key, False) for key in ("ANNEAL_LR", "LR_LINEAR_DECAY")]
    policy = {"lr": [[0, lr], [total, 0.0]] if any(falls) else lr, "gamma": s.number("GAMMA"), "max_grad_norm": s.number("MAX_GRAD_NORM")}
    width = s.get("GRU_HIDDEN_DIM") or s.get("HIDDEN_SIZE") or s.get("FC_DIM_SIZE") or 64
    model = {"fc_dims": [width] * (s.count("NUM_LAYERS") if algorithm.startswith("PQN") else 2)}
    if algorithm in PPO:
        clip = s.number("CLIP_EPS")
        policy |= {"gae_lambda": s.number("GAE_LAMBDA"), "entropy_coeff": s.number("ENT_COEF"), "vf_loss_coeff": s.number("VF_COEF") / 2,
                   "clip_param": clip, "vf_clip_param": clip, "normalize_value": False}
        model["activation"] = str(s.get("ACTIVATION"))
    else:
        model["reads"] = ["observation", "agent_id"]
        first, last, share = (s.number(f"EPS_{which}") for which in ("START", "FINISH", "DECAY"))
        policy |= {"epsilon": [[0, first], [round(share * total), last]], "reward_scale": s.number("REW_SCALE")}
    if algorithm in PPO or algorithm.startswith("PQN"):
        policy |= {"num_epochs": epochs, "num_minibatches": s.count("NUM_MINIBATCHES")}
    if algorithm.startswith("PQN"):
        policy["lambda"], model["layer_norm"] = s.number("LAMBDA"), s.get("NORM_TYPE", "layer_norm") == "layer_norm"
    elif algorithm not in PPO:  # the memory holds rollouts
        size = s.count("BUFFER_BATCH_SIZE") * steps
        policy |= {"buffer_size": s.count("BUFFER_SIZE") * steps, "batch_size": size, "replay_ratio": epochs * size / batch, "huber": 0,
                   "learning_starts": s.count("LEARNING_STARTS"), "target_every": s.count("TARGET_UPDATE_INTERVAL") * batch, "tau": s.number("TAU")}
    if algorithm == "QMIX":
        policy |= {"mixer_dim": s.count("MIXER_EMBEDDING_DIM"), "hypernet_dims": [s.count("MIXER_HYPERNET_HIDDEN_DIM")]}
    return {"num_envs": envs, "train_batch_size": batch, "total_steps": total, "seed": s.count("SEED")}, policy, model


def _epymarl(s, algorithm, notes):
    """Memories, batches and the target's interval count episodes there."""
    limit = (s.get("env_args") or {}).get("time_limit")
    if limit is None:
        notes.append("env_args has no time_limit: episodes are taken to have 50 steps")
    length, width, target = int(limit or 50), s.count("hidden_dim"), s.number("target_update_interval_or_tau")
    envs, size = s.count("batch_size_run"), s.count("batch_size") * length
    batch = size if algorithm in PPO else envs * length
    total = -(-s.count("t_max") // batch) * batch
    policy = {"lr": s.number("lr"), "gamma": s.number("gamma"), "max_grad_norm": s.number("grad_norm_clip")}
    model = {"fc_dims": [width, width]}
    if s.get("obs_agent_id", True):
        model["reads"] = ["observation", "agent_id"]
    if algorithm in PPO:
        policy |= {"num_epochs": s.count("epochs"), "num_minibatches": 1, "clip_param": s.number("eps_clip"), "vf_loss_coeff": 1.0,
                   "entropy_coeff": s.number("entropy_coef"), "n_step": s.count("q_nstep"), "gae_lambda": 1.0,
                   "normalize_reward": bool(s.get("standardise_rewards", False)), "normalize_value": bool(s.get("standardise_returns", False))}
    else:
        first, last, end = s.number("epsilon_start"), s.number("epsilon_finish"), s.count("epsilon_anneal_time")
        policy |= {"epsilon": [[0, first], [end, last]], "buffer_size": s.count("buffer_size") * length, "batch_size": size,
                   "replay_ratio": size / batch, "learning_starts": size, "huber": 0, "double_q": bool(s.get("double_q")),
                   "target_every": round(target) * length if target > 1 else batch, "tau": 1.0 if target > 1 else target}
    if algorithm == "QMIX":
        policy |= {"mixer_dim": s.count("mixing_embed_dim"), "hypernet_dims": [s.count("hypernet_embed")]}
    return {"num_envs": envs, "train_batch_size": batch, "total_steps": total, "seed": s.count("seed")}, policy, model


def configuration(given, called, path):
    """(the configuration as nested dictionaries, notes on what has no counterpart). called: the name of the algorithm, if the file has none."""
    given = {key: value for key, value in given.items() if key != "alg"} | (given.get("alg") or {})
    of_jax = any(str(key).isupper() for key in given)
    s, notes = zoo.Settings(given, JAXMARL if of_jax else EPYMARL), []
    called = f"{called or ''} {s.get('ALG_NAME' if of_jax else 'name') or ''} {s.get('mixer') or ''}".lower()
    algorithm = next((ours for theirs, ours in ALGORITHMS.items() if re.search(theirs, called)), None)
    if algorithm is None:
        raise RunError(f"{path}: no algorithm that is here: give --algorithm IQL, VDN, QMIX, PQN-VDN, MAPPO or IPPO")
    env = str(s.get("ENV_NAME") if of_jax else (given.get("env_args") or {}).get("key") or given.get("env"))
    name = next((name for name in ROLES if name in env.lower().replace("-", "_")), env)
    if name not in ROLES:
        notes.append(f"{env}: is no environment of wdtrain: name one in its place, as pettingzoo:MODULE or MODULE:FUNCTION")
    if name == "foraging":
        notes.append(f"{env}: the field's size, players and food are settings of env: wdtrain envs foraging")
    recurrent = "rnn" in called or "GRU_HIDDEN_DIM" in given or bool(s.get("use_rnn", False))
    if recurrent and not (algorithm in PPO or algorithm.startswith("PQN")):
        notes.append("recurrent networks: memories draw single transitions here, so that networks are fully connected")
        recurrent = False
    trainer, policy, model = (_jaxmarl if of_jax else _epymarl)(s, algorithm, notes)
    if algorithm in PPO:
        model["separate_value"] = True
    if recurrent:
        notes += [f"model.{key} {model[key]}: recurrent networks have none here" for key in ("activation", "layer_norm") if model.get(key)]
        model = {"type": "gru", "width": model["fc_dims"][0]} | {key: model[key] for key in ("reads", "separate_value") if key in model}
    policy = {"algorithm": algorithm} | policy | {"model": model}
    notes += [f"{key}: has no counterpart" for key in sorted(map(str, s.left - {"env", "env_args", "mixer"}))]
    section = {"env": {"one_role": True}} if name == "simple_speaker_listener" else {}
    return {"name": name} | section | {"trainer": trainer, "policy": {role: copy.deepcopy(policy) for role in ROLES.get(name, ("shared",))}}, notes


def run(options):
    given = zoo.load_yaml(options.marl)
    with files.parsing(options.marl):
        found, notes = configuration(given, options.algorithm or options.marl.stem, options.marl)
    zoo.give(found, notes, options.out)
