#!/usr/bin/env python3
"""bits.py: SHA-256 of what short training runs learn, to check changes of the source that must not change any
bit.

usage: bits.py WDTRAIN > before.txt
       bits.py WDTRAIN --expect before.txt

Each line is a name and the hash of the run's weights, checkpointed moments and metrics (without time
metrics). The hashes are valid only for one type of processor and one version of LibTorch, so compare them
between two builds on one machine.
"""
import argparse
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

SMALL_TAG = ["--env", "tag_continuous", "--set", "env.num_runners=20", "--set", "env.episode_length=15", "--num_envs", "40",
             "--train_batch_size", "800", "--total_steps", "2400"]


def both(settings):
    """The same settings for the two policies of a tag game."""
    return ["--set", f"policy={{tagger: {{{settings}}}, runner: {{{settings}}}}}"]


CASES = {
    "shipped cartpole": ["--env", "cartpole", "--total_steps", "20480"],
    "shipped pendulum": ["--env", "pendulum", "--total_steps", "20480"],
    "shipped acrobot": ["--env", "acrobot", "--total_steps", "20480"],
    "shipped mountain_car": ["--env", "mountain_car", "--total_steps", "20480"],
    "shipped continuous_mountain_car": ["--env", "continuous_mountain_car", "--total_steps", "20480"],
    "shipped memory_chain": ["--env", "memory_chain", "--total_steps", "13440"],
    "shipped t_maze": ["--env", "t_maze", "--total_steps", "7936"],
    "shipped cartpole_memory": ["--config", "configs/cartpole_memory.yaml", "--total_steps", "4096"],
    "shipped simple_tag": ["--env", "simple_tag", "--total_steps", "40000"],
    "shipped tag_gridworld": ["--env", "tag_gridworld", "--total_steps", "40000"],
    "shipped tag_continuous_small": ["--config", "configs/tag_continuous_small.yaml", "--total_steps", "19200"],
    "shipped tag_continuous": ["--env", "tag_continuous", "--num_envs", "8", "--train_batch_size", "80", "--total_steps", "240"],
    "smoke": ["--config", "configs/smoke/tag_continuous.yaml"],
    "ppo": [*SMALL_TAG, *both("algorithm: PPO, num_minibatches: 3")],
    "ppo with value clip, kl stop, schedules": [*SMALL_TAG, *both(
        "algorithm: PPO, vf_clip_param: 0.1, target_kl: 0.002, lr: [[0, 1e-3], [2400, 1e-4]], entropy_coeff: [[0, 0.1], [2400, 0]]")],
    "ppo, one head for policy and value, tanh": [*SMALL_TAG, *both("algorithm: PPO, model: {activation: tanh, init_method: xavier}")],
    "a2c": [*SMALL_TAG, *both("algorithm: A2C")],
    "a2c, separate value, gae": [*SMALL_TAG, *both("algorithm: A2C, gae_lambda: 0.9, model: {separate_value: true, init_method: default}")],
    "a2c, n_step": [*SMALL_TAG, *both("algorithm: A2C, n_step: 4")],
    "a2c, normalize_return": [*SMALL_TAG, *both("algorithm: A2C, normalize_return: true")],
    "a2c, activations kept": [*SMALL_TAG, *both("algorithm: A2C, reuse_activations: true")],
    "a2c beside reinforce": ["--env", "tag_continuous", "--set", "env.num_runners=20", "--set", "env.episode_length=15", "--num_envs", "20",
                             "--train_batch_size", "800", "--total_steps", "2400", "--set",
                             "policy={tagger: {algorithm: A2C}, runner: {algorithm: REINFORCE}}"],
    "one policy frozen": [*SMALL_TAG, "--set", "policy={tagger: {algorithm: PPO}, runner: {algorithm: PPO, to_train: false}}"],
    "one policy for both roles": [*SMALL_TAG, "--set", "policy={shared: {algorithm: PPO}}"],
    "table": [*SMALL_TAG, "--set", "trainer.observations=table"],
    "table, ppo, separate value": [*SMALL_TAG, "--set", "trainer.observations=table",
                                   *both("algorithm: PPO, model: {separate_value: true}")],
    # Networks above read entities; these multiply the table itself.
    "table layer": [*SMALL_TAG, "--set", "trainer.observations=table", *both("algorithm: A2C, model: {input: observation}")],
    "bf16": [*SMALL_TAG, "--set", "trainer.precision=bf16"],
    "bf16, ppo, tanh, separate value": [*SMALL_TAG, "--set", "trainer.precision=bf16",
                                        *both("algorithm: PPO, model: {separate_value: true, activation: tanh}")],
    "gaussian, a2c": ["--env", "pendulum", "--total_steps", "10240", "--set", "policy={shared: {algorithm: A2C}}"],
    "gaussian, bf16": ["--env", "pendulum", "--total_steps", "10240", "--set", "trainer.precision=bf16"],
    "layer norm, ppo, tanh": [*SMALL_TAG, *both("algorithm: PPO, model: {layer_norm: true, activation: tanh, fc_dims: [100, 40]}")],
    "layer norm, table, bf16, activations kept": [*SMALL_TAG, "--set", "trainer.observations=table", "--set", "trainer.precision=bf16",
                                                  *both("algorithm: A2C, reuse_activations: true, model: {layer_norm: true}")],
    "no hidden layer": ["--env", "cartpole", "--total_steps", "10240", "--set", "policy.shared.model.fc_dims=[]"],
    "pqn, schedules": [*SMALL_TAG, *both("algorithm: PQN, epsilon: [[0, 1], [2400, 0.1]], num_minibatches: 3")],
    "pqn, table": [*SMALL_TAG, *both("algorithm: PQN"), "--set", "trainer.observations=table"],
    "pqn, bf16": [*SMALL_TAG, *both("algorithm: PQN"), "--set", "trainer.precision=bf16"],
    "two workers, pqn": [*SMALL_TAG, *both("algorithm: PQN"), "--num_workers", "2"],
    "dqn": [*SMALL_TAG, *both("algorithm: DQN, batch_size: 20, replay_ratio: 0.5, buffer_size: 4000, learning_starts: 100, prioritized: true, n_step: 3")],
    "sac, choices": [*SMALL_TAG, *both("algorithm: SAC, batch_size: 20, replay_ratio: 0.5, buffer_size: 4000, learning_starts: 100")],
    "sac": ["--env", "pendulum", "--total_steps", "10240", "--set", "policy={shared: {algorithm: SAC, batch_size: 64, replay_ratio: 1, buffer_size: 20000, random_steps: 300, model: {separate_value: false}}}"],
    "td3, bf16, quantiles": ["--env", "pendulum", "--total_steps", "10240", "--set", "trainer.precision=bf16", "--set",
                             "policy={shared: {algorithm: TD3, batch_size: 64, replay_ratio: 1, buffer_size: 20000, noise_damping: 0.2, model: {separate_value: false, quantiles: 5}}}"],
    "two workers, ppo": [*SMALL_TAG, *both("algorithm: PPO"), "--num_workers", "2"],
    "two workers, a2c": [*SMALL_TAG, *both("algorithm: A2C"), "--num_workers", "2"],
    "preempted stragglers off, pool": [*SMALL_TAG, "--set", "env.reset=pool", "--set", "env.reset_pool_size=8"],
    "no staggered resets": [*SMALL_TAG, "--set", "trainer.staggered_resets=false"],
}


def tensors(path: pathlib.Path) -> bytes:
    """A safetensors file without its metadata."""
    content = path.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    header.pop("__metadata__", None)
    return json.dumps(header, sort_keys=True).encode() + content[end:]


def digest(run: pathlib.Path) -> str:
    sha = hashlib.sha256()
    for path in sorted(run.glob("weights/*")) + sorted(run.glob("checkpoints/*/*.safetensors")):
        if "replica" not in path.name:
            sha.update(path.name.encode() + tensors(path))
    for line in (run / "metrics.jsonl").read_text().splitlines():
        row = {key: value for key, value in json.loads(line).items() if not key.startswith("time/")}
        sha.update(json.dumps(row, sort_keys=True).encode())
    return sha.hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wdtrain")
    parser.add_argument("--expect", type=pathlib.Path, help="output of an earlier run; the exit status is 1 where a hash differs")
    parser.add_argument("--only", default="", help="part of a name")
    given = parser.parse_args()
    expected = {}
    if given.expect:
        expected = dict(reversed(line.split("  ", 1)) for line in given.expect.read_text().splitlines())
    different = 0
    for name, options in CASES.items():
        if given.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            run = pathlib.Path(folder) / "run"
            command = [given.wdtrain, *options, "--device", "cpu", "--quiet", "--run_dir", str(run),
                       "--set", "saving.metrics_log_freq=1", "--set", "trainer.seed=7"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            result = digest(run) if done.returncode == 0 else "failed: " + done.stderr.strip().replace("\n", " | ")
        print(f"{result}  {name}", flush=True)
        if expected and expected.get(name) != result:
            different += 1
            print(f"bits.py: '{name}' differs", file=sys.stderr)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
