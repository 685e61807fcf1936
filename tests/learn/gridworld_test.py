"""gridworld_test.py: A2C, the default algorithm, learns to catch a runner on a grid in a few seconds."""

import json
import os
import subprocess

WDTRAIN = os.environ["WDTRAIN"]

POLICY = """{algorithm: A2C, lr: 3e-3, gamma: 0.95, gae_lambda: 0.95, n_step: 0, entropy_coeff: 0.01, vf_loss_coeff: 0.5,
  normalize_advantage: false, normalize_return: false, clip_grad_norm: true, max_grad_norm: 0.5, adam_epsilon: 1e-8,
  model: {fc_dims: [64, 64], activation: relu, separate_value: true, init_method: orthogonal}}"""
CONFIG = f"""
name: tag_gridworld
env: {{num_taggers: 4, grid_length: 10, episode_length: 50, wall_hit_penalty: 0.1, tag_reward_for_tagger: 1,
  tag_penalty_for_runner: 1, step_cost_for_tagger: 0.01, use_full_observation: true, start: corner, reset: random}}
trainer: {{num_envs: 50, train_batch_size: 1000, total_steps: 600_000}}
policy:
  tagger: {POLICY}
  runner: {POLICY[:-1]}, to_train: false}}
"""


def test_taggers_need_less_than_half_of_the_steps_of_random_ones(tmp_path):
    (tmp_path / "grid.yaml").write_text(CONFIG)
    run = str(tmp_path / "run")
    seed = os.environ.get("WD_LEARN_SEED", "1")
    subprocess.run([WDTRAIN, "--config", str(tmp_path / "grid.yaml"), "--seed", seed, "--run_dir", run, "--quiet"],
                   check=True, timeout=500)
    played = subprocess.run([WDTRAIN, "eval", "--run", run, "--episodes", "1000", "--opponent", "random", "--json"],
                            check=True, timeout=300, capture_output=True, text=True)
    roles = json.loads(played.stdout)["roles"]
    length = {(role, who): roles[role][who]["length"] for role in roles for who in ("trained", "random")}
    print(f"steps of an episode, seed {seed}: {length}")
    # 95 % intervals. The runner keeps its first weights: taggers that train against a learning runner may be
    # good at catching that runner only, which depends on the seed.
    trained, random = length["tagger", "trained"], length["tagger", "random"]
    assert trained["high"] <= 16
    assert trained["high"] <= 0.5 * random["low"]
