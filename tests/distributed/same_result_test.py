"""Several workers learn the same as one worker: the same gradients, the same episodes, and no drift."""

import json

import pytest

from checkpoint.runs import EVERY
from distributed.jobs import distance, iterations, run, tensors, trained

# Runners leave the game at different times, so ranks have different numbers of active agents.
CHASE = ["--env", "tag_continuous", "--set", "env.num_taggers=3", "--set", "env.num_runners=6", "--set", "env.grid_length=4",
         "--set", "env.episode_length=25", "--set", "trainer.staggered_resets=false", "--num_envs", "8", "--train_batch_size", "160", *EVERY, "--set", "saving.checkpoint_freq=1"]
# Metrics that cover the replicas of one worker only, so that their mean over workers differs.
LOCAL = ("action_std_over_envs",)


def policy(algorithm, model="input: observation", **settings):
    """Networks with smooth activations: with ReLU, the last bit of a sum can determine whether a row has a
    gradient."""
    more = "".join(f", {key}: {value}" for key, value in settings.items())
    return ["--set", f"policy={{tagger: {{algorithm: {algorithm}{more}, model: {{activation: tanh, {model}}}}}, "
                     f"runner: {{algorithm: {algorithm}{more}, model: {{activation: tanh, fc_dims: [16], {model}}}}}}}",
            "--set", f"trainer.observations={'table' if 'entities' in model else 'rows'}"]


# max_rows: PPO from a share of the rows; normalized: PPO with values and rewards in units of their own;
# standardized: what networks read is in such units, of rows and of entities from a table.
@pytest.mark.parametrize("case", ["A2C", "PPO", "PQN", "PQN dueling", "DQN", "DQN quantiles", "max_rows", "normalized", "standardized rows", "standardized entities"])
def test_T1_T7_gradients_and_statistics_are_those_of_one_worker(case, tmp_path):
    # Adam divides by the gradient's magnitude: every further step amplifies the last bits of small gradients.
    several = {"num_epochs": 1, "num_minibatches": 4, "adam_epsilon": 1e-3, "lr": 1e-3, "gamma": 0.99}
    ppo = {"normalize_advantage": "true", "gae_lambda": 1, **several}
    dqn = {"buffer_size": 480, "batch_size": 16, "replay_ratio": 0.2, "learning_starts": 0, "target_every": 160, "n_step": 2, "adam_epsilon": 1e-3, "lr": 1e-3}
    steps = {"A2C": {"normalize_advantage": "true"}, "PPO": ppo, "PQN": several,
             "PQN dueling": {**several, "model": "input: observation, dueling: true"}, "DQN": {**dqn, "prioritized": "true"},
             "DQN quantiles": {**dqn, "batch_size": 4, "replay_ratio": 0.05, "model": "input: observation, dueling: true, quantiles: 5"},
             "max_rows": {**ppo, "max_rows": 200},
             "normalized": {**ppo, "normalize_value": "true", "normalize_reward": "true", "normalize_advantage": "false"},
             "standardized rows": {**ppo, "model": "input: observation, normalize_input: true"},
             "standardized entities": {**ppo, "model": "input: entities, normalize_input: true, pool: mean_max, attention: 1"}}[case]
    algorithm = case.split()[0] if case.split()[0] in ("A2C", "PQN", "DQN") else "PPO"
    arguments = [*CHASE, *policy(algorithm, **steps), "--total_steps", "320"]
    one, _ = trained(tmp_path / "1", *arguments, workers=1)
    for workers in (2, 4):
        folder = tmp_path / str(workers)
        rows, _ = trained(folder, *arguments, workers=workers)
        active = tensors(folder, "replicas")["runner/active"]
        shares = active.reshape(workers, -1).sum(axis=1)
        assert len(set(shares)) > 1, "ranks have equal numbers of active agents: the test cannot see a mean of means"
        for name in ("tagger", "runner"):
            for moment in ("first_moment", "second_moment"):
                alone = tensors(tmp_path / "1", f"optimizer/{name}")[moment]
                assert distance(alone, tensors(folder, f"optimizer/{name}")[moment]) < 1e-5, (workers, name, moment)
            if "standardized" in case:
                alone, several_ranks = (tensors(run, f"weights/{name}")["observation_moments"] for run in (tmp_path / "1", folder))
                assert alone[:, 2].max() > 1e-3
                assert several_ranks == pytest.approx(alone, rel=1e-5, abs=1e-7), (workers, name)
            for file, statistic in [("weights", "value_norm"), ("weights", "value_moments"), ("optimizer", "reward_moments"), ("optimizer", "reward_sums")]:
                if case == "normalized":
                    alone = tensors(tmp_path / "1", f"{file}/{name}")[statistic]
                    several_ranks = tensors(folder, f"{file}/{name}")[statistic]
                    # Runners are paid as they leave the game or at its end, so no sum goes on.
                    assert alone.any() or (name, statistic) == ("runner", "reward_sums")
                    assert several_ranks == pytest.approx(alone, rel=1e-5, abs=1e-7), (workers, name, statistic)
        for row, expected in zip(rows, one, strict=True):
            for key, value in expected.items():
                if value is not None and not any(local in key for local in LOCAL):
                    assert row[key] == pytest.approx(value, rel=1e-4, abs=1e-6), (workers, key)


def expect_the_same_with_more_workers(folder, arguments, one):
    """one: rows of the training with one worker, whose run is in folder/1."""
    for workers in (2, 4):
        rows, _ = trained(folder / str(workers), *arguments, workers=workers)
        for moment in ("first_moment", "second_moment"):
            alone, together = (tensors(folder / run, "optimizer/shared")[moment] for run in ("1", str(workers)))
            assert distance(alone, together) < 1e-5, (workers, moment)
        for row, expected in zip(rows, one, strict=True):
            for key, value in expected.items():
                if value is not None and not any(local in key for local in LOCAL):
                    assert row[key] == pytest.approx(value, rel=1e-4, abs=1e-6), (workers, key)


@pytest.mark.parametrize("reads", ["[observation, state]", "[state, agent_id]"])
def test_a_critic_of_the_state_learns_as_with_one_worker(reads, tmp_path):
    spread = ["--env", "simple_spread", "--set", "trainer.staggered_resets=false", "--num_envs", "8", "--train_batch_size", "200", *EVERY,
              "--set", "saving.checkpoint_freq=1", "--set",
              "policy={shared: {algorithm: MAPPO, num_epochs: 1, num_minibatches: 4, adam_epsilon: 1e-3, lr: 1e-3, normalize_value: true, "
              f"model: {{fc_dims: [24], activation: tanh, separate_value: true, critic_reads: {reads}}}}}}}", "--total_steps", "400"]
    one, _ = trained(tmp_path / "1", *spread, workers=1)
    expect_the_same_with_more_workers(tmp_path, spread, one)


TEAMS = {"PQN-VDN": "num_epochs: 1, num_minibatches: 4", "PQN-QMIX": "num_epochs: 1, num_minibatches: 4, mixer_dim: 4, hypernet_dims: [9]",
         "VDN": "buffer_size: 600, batch_size: 16, replay_ratio: 0.2, learning_starts: 0, prioritized: true",
         "QMIX": "buffer_size: 600, batch_size: 16, replay_ratio: 0.2, learning_starts: 0, n_step: 2, mixer_dim: 4, hypernet_dims: [9]"}


@pytest.mark.parametrize("algorithm", TEAMS)
def test_teams_learn_as_with_one_worker(algorithm, tmp_path):
    reads = ", critic_reads: [state]" if "QMIX" in algorithm else ""
    spread = ["--env", "simple_spread", "--set", "trainer.staggered_resets=false", "--num_envs", "8", "--train_batch_size", "200", *EVERY,
              "--set", "saving.checkpoint_freq=1", "--set",
              f"policy={{shared: {{algorithm: {algorithm}, {TEAMS[algorithm]}, adam_epsilon: 1e-3, lr: 1e-3, "
              f"model: {{fc_dims: [24], activation: tanh, separate_value: false{reads}}}}}}}", "--total_steps", "400"]
    one, _ = trained(tmp_path / "1", *spread, workers=1)
    assert one[-1]["shared/updates"] > 0 and one[-1]["shared/grad_norm"] > 0
    expect_the_same_with_more_workers(tmp_path, spread, one)


ACTORS = {"DDPG": "noise_damping: 0.3, model: {separate_value: false, activation: tanh}", "TD3": "prioritized: true, n_step: 2, model: {separate_value: false, activation: tanh, fc_dims: [32, 16], quantiles: 3}",
          "TD3 windows": "prioritized: true, burn_in: 3, n_step: 2, model: {type: gru, width: 12, sequence_length: 2}",
          "SAC": "model: {separate_value: false, activation: tanh, critic_dims: [40]}", "SAC spaced": "batch_size: 4, replay_ratio: 0.05, model: {separate_value: false, activation: tanh}"}


@pytest.mark.parametrize("case", ACTORS)
def test_T1_actors_and_critics_are_those_of_one_worker(case, tmp_path):
    """Actions, noise and the draws of the update are those of one worker; both, and the temperature, learn the same."""
    common = "" if "batch_size" in ACTORS[case] else "batch_size: 16, replay_ratio: 0.2, "
    learning = f"algorithm: {case.split()[0]}, buffer_size: 480, {common}learning_starts: 0, random_steps: 100, tau: 0.1, adam_epsilon: 1e-3, lr: 1e-3, {ACTORS[case]}"
    arguments = ["--env", "pendulum", "--set", "env.episode_length=25", "--set", "trainer.staggered_resets=false", "--num_envs", "8", "--train_batch_size", "160", *EVERY,
                 "--set", "saving.checkpoint_freq=1", "--set", f"policy={{shared: {{{learning}}}}}", "--total_steps", "480"]
    one, _ = trained(tmp_path / "1", *arguments, workers=1)
    assert one[-1]["shared/updates"] == 2 and one[-1]["shared/grad_norm"] > 0
    parts = ["actor", "critics"] + (["temperature"] if "SAC" in case else [])
    for workers in (2, 4):
        folder = tmp_path / str(workers)
        rows, _ = trained(folder, *arguments, workers=workers)
        alone, together = (tensors(run, "optimizer/shared") for run in (tmp_path / "1", folder))
        for name in [f"{part}.{moment}" for part in parts for moment in ("first_moment", "second_moment")] + ["target_critics"]:
            assert distance(alone[name], together[name]) < 1e-5, (workers, name)
        for row, expected in zip(rows, one, strict=True):
            for key, value in expected.items():
                if value is not None and not any(local in key for local in LOCAL):
                    assert row[key] == pytest.approx(value, rel=1e-4, abs=1e-6), (workers, key)


def test_critics_of_a_warm_start_reach_all_workers(tmp_path):
    learning = "algorithm: SAC, buffer_size: 480, batch_size: 16, replay_ratio: 0.2, learning_starts: 0, adam_epsilon: 1e-3, model: {separate_value: false, activation: tanh}"
    arguments = ["--env", "pendulum", "--num_envs", "8", "--train_batch_size", "160", *EVERY, "--set", "saving.checkpoint_freq=1", "--set", "trainer.staggered_resets=false",
                 "--set", f"policy={{shared: {{{learning}}}}}", "--total_steps", "480"]
    trained(tmp_path / "start", *arguments, "--seed", "5", workers=1)
    again = [*arguments, "--warm_start", str(tmp_path / "start"), "--set", "trainer.canary_freq=1"]
    one, _ = trained(tmp_path / "1", *again, workers=1)
    two, _ = trained(tmp_path / "2", *again, workers=2)
    for key in ("shared/value_loss", "shared/policy_loss"):
        assert two[-1][key] == pytest.approx(one[-1][key], rel=1e-4), key
    alone, both = (tensors(tmp_path / run, "weights/shared") for run in ("1", "2"))
    for name in alone:
        assert both[name] == pytest.approx(alone[name], abs=1e-5), name


def test_T1_noise_of_the_state_is_that_of_one_worker(tmp_path):
    """Pendulum with gSDE, whose noise matrices are drawn again every 3 steps."""
    arguments = ["--env", "pendulum", "--num_envs", "8", "--train_batch_size", "160", "--total_steps", "320", *EVERY,
                 "--set", "saving.checkpoint_freq=1", "--set", "trainer.staggered_resets=false", "--set",
                 "policy={shared: {algorithm: PPO, num_epochs: 1, num_minibatches: 4, adam_epsilon: 1e-3, lr: 1e-3, model: "
                 "{activation: tanh, fc_dims: [16], distribution: gsde, noise_every: 3}}}"]
    one, _ = trained(tmp_path / "1", *arguments, workers=1)
    rows, _ = trained(tmp_path / "2", *arguments, workers=2)
    for moment in ("first_moment", "second_moment"):
        alone, both = (tensors(tmp_path / run, "optimizer/shared")[moment] for run in ("1", "2"))
        assert distance(alone, both) < 1e-5, moment
    alone, both = (tensors(tmp_path / run, "weights/shared")["log_std"] for run in ("1", "2"))
    assert alone.shape == (1, 16) and len(set(alone.ravel().tolist())) == 16, "log_std did not learn"
    assert both == pytest.approx(alone, abs=1e-6)
    for row, expected in zip(rows, one, strict=True):
        for key, value in expected.items():
            if value is not None and not any(local in key for local in LOCAL):
                assert row[key] == pytest.approx(value, rel=1e-4, abs=1e-6), key


def test_T1_without_the_others_the_gradient_is_another(tmp_path):
    """The gradient of rank 0 alone, as if it were not summed with that of rank 1. It must differ, so that
    the test above would detect a missing sum."""
    trained(tmp_path / "all", *CHASE, *policy("A2C"), "--total_steps", "160", workers=1)
    half = ["--num_envs", "4", "--train_batch_size", "80", "--total_steps", "80"]
    arguments = [a for a in CHASE if a not in ("--num_envs", "--train_batch_size", "8", "160")]
    trained(tmp_path / "half", *arguments, *half, *policy("A2C"), workers=1)
    # Rank 0's replicas did the same in both runs, so the only difference is that the other rows are missing.
    blocks, half_blocks = (tensors(tmp_path / run, "replicas")["blocks"] for run in ("all", "half"))
    assert len(half_blocks) == 4 and (half_blocks == blocks[:4]).all()
    for name in ("tagger", "runner"):
        one, other = (tensors(tmp_path / run, f"optimizer/{name}")["first_moment"] for run in ("all", "half"))
        assert distance(one, other) > 1e-2


def test_T4_parts_without_data_neither_hang_nor_drift(tmp_path):
    """Minibatches of two transitions over four ranks, so most parts are empty. One policy is not trained."""
    arguments = ["--env", "tag_gridworld", "--num_envs", "4", "--train_batch_size", "8", "--total_steps", "64", *EVERY,
                 "--set", "policy={tagger: {lr: 0.001, gamma: 0.99, gae_lambda: 1, normalize_advantage: false, adam_epsilon: 1e-8, "
                          "model: {fc_dims: [256, 256]}}, runner: {to_train: false}}", "--set", "trainer.canary_freq=1"]
    trained(tmp_path / "1", *arguments, workers=1)
    trained(tmp_path / "4", *arguments, workers=4)
    one, four = (tensors(tmp_path / run, "optimizer/tagger")["first_moment"] for run in ("1", "4"))
    assert distance(one, four) < 1e-5


@pytest.mark.parametrize("env", ["tag_continuous", "tag_gridworld", "cartpole"])
def test_T5_replicas_play_the_same_episodes_on_any_number_of_workers(env, tmp_path):
    """With a learning rate of 0 the policies never change, so everything about the episodes is equal to
    the bit."""
    roles = "shared: {lr: 0}" if env == "cartpole" else "tagger: {lr: 0}, runner: {lr: 0}"
    length = ["--set", "env.episode_length=13"] if env != "cartpole" else ["--stop_return", "none"]
    arguments = ["--env", env, "--num_envs", "8", "--train_batch_size", "160", "--total_steps", "1280", *EVERY, *length,
                 "--set", f"policy={{{roles}}}"]
    one, _ = trained(tmp_path / "1", *arguments, workers=1)
    assert sum(row["episodes"] for row in one) > 8
    for workers in (2, 4):
        rows, _ = trained(tmp_path / str(workers), *arguments, workers=workers)
        for row, expected in zip(rows, one, strict=True):
            same = [k for k in expected if k == "episodes" or k.startswith("env/") or
                    k.split("/")[-1] in ("mean_return", "max_return", "episode_length", "reward_min", "reward_max")]
            assert {k: row[k] for k in same} == {k: expected[k] for k in same}, workers
        for name in ("blocks",):
            assert (tensors(tmp_path / "1", "replicas")[name] == tensors(tmp_path / str(workers), "replicas")[name]).all()


def test_T6_sizes_are_of_the_whole_job(tmp_path):
    arguments = ["--env", "tag_gridworld", *EVERY]
    done = run(*arguments, "--num_envs", 7, "--train_batch_size", 70, "--run_dir", tmp_path / "run", workers=2)
    assert done.returncode == 2
    assert "trainer.num_envs = 7: must be a multiple of the 2 workers, as 6 or 8" in done.stderr_text
    assert not (tmp_path / "run").exists()
    rows, _ = trained(tmp_path / "run", *arguments, "--num_envs", 8, "--train_batch_size", 56, "--total_steps", 100, workers=2)
    assert [row["env_steps"] for row in rows] == [56, 112]  # rounded up to whole iterations
    assert [row["agent_steps"] for row in rows] == [280, 560]


def test_T2_a_rank_that_drifts_is_found_and_named(tmp_path):
    arguments = ["--env", "tag_gridworld", "--num_envs", "8", "--train_batch_size", "56", "--total_steps", "1120", *EVERY]
    done = run(*arguments, "--run_dir", tmp_path / "run", "--set", "trainer.canary_freq=4", "--fault", "rank=1,iter=6,kind=drift")
    assert done.returncode == 1
    assert "after iteration 8 parameters, moments or counters of rank 1 are not those of rank 0" in done.stderr_text
    silent = run(*arguments, "--run_dir", tmp_path / "silent", "--set", "trainer.canary_freq=0", "--fault", "rank=1,iter=6,kind=drift")
    assert silent.returncode == 0, "only the comparison finds it"


def test_T8_decisions_come_from_what_all_ranks_know(tmp_path):
    """A hundred iterations with early stopping by KL divergence, schedules and normalized returns; ranks
    are compared after each iteration."""
    settings = {"target_kl": 0.004, "lr": "[[0, 0.003], [5600, 0.0001]]", "normalize_return": "true", "gae_lambda": 1, "entropy_coeff": "[[0, 0.1], [5600, 0]]"}
    arguments = ["--env", "tag_gridworld", "--num_envs", "8", "--train_batch_size", "56", "--total_steps", "5600", *EVERY,
                 "--set", "saving.checkpoint_freq=0", "--set", "trainer.canary_freq=1", *policy("PPO", **settings)]
    rows, _ = trained(tmp_path / "run", *arguments)
    updates = {row["tagger/updates"] for row in rows}
    assert len(rows) == 100 and len(updates) > 1, "no early stop was ever made"


@pytest.mark.parametrize("tensor", ["observation", "reward", "loss", "gradient", "weight"])
def test_T10_a_number_that_is_not_finite_names_its_rank_and_place(tensor, tmp_path):
    folder = tmp_path / "run"
    done = run("--env", "tag_gridworld", "--num_envs", "8", "--train_batch_size", "56", "--total_steps", "560", *EVERY,
               "--run_dir", folder, "--fault", f"rank=1,iter=5,kind=nan:{tensor}")
    assert done.returncode == 1, done.stderr_text
    error = json.loads((folder / "error.json").read_text())
    assert error["rank"] == 1 and error["iteration"] == 5
    assert "policy 'tagger'" in error["message"] and tensor in error["message"]
    if tensor in ("observation", "reward"):
        assert "replica 4, agent 0" in error["message"]  # the first replica of rank 1
    assert iterations(folder) == 4
    newest = json.loads((folder / "checkpoints" / "latest" / "manifest.json").read_text())["checkpoint"]
    assert newest["iteration"] == 4
