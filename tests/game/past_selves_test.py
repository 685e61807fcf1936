"""A pool of past selves goes on where it was: killed and resumed, by one worker and by two."""

import shutil

import pytest

from checkpoint.runs import left, options, run

LIST = "[{{pool: {{size: {0}, every: {1}, draw: {2}, win_above: 0.5}}, share: 0.5}}, {{player: self, share: 0.4}}, random]"
SHARED = ["--set", "policy={shared: {roles: [tagger, runner], model: {fc_dims: [16]}}}"]
CASES = {
    "ppo": ("PPO", "runner", (3, 60, "pfsp"), 12, []),
    "gru, many copies": ("PPO, num_minibatches: 1", "tagger", (30, 56, "uniform"), 24, ["--set", "policy.tagger.model={type: gru}"]),
    "dqn": ("DQN, batch_size: 16, replay_ratio: 0.6, buffer_size: 300, learning_starts: 60", "runner", (2, 100, "latest"), 12, ["--set", "trainer.intervals=iterations"]),
    "two workers": ("A2C", "runner", (3, 60, "pfsp"), 12, ["--num_workers", "2"]),
    "two workers, one policy, played starts": ("PPO", "shared", (3, 60, "pfsp"), 12, ["--num_workers", "2", "--set", "env.reset=played", "--set", "env.played_moves=[0, 3]"]),
}


def training(case):
    algorithm, policy, pool, iterations, more = CASES[case]
    arguments = options("tag_gridworld", algorithm, iterations, "env.episode_length=6")
    if policy == "shared":
        arguments[arguments.index("--set"):arguments.index("--set") + 2] = SHARED
    arguments += ["--set", f"opponents={{{policy}: {LIST.format(*pool)}}}"]
    return arguments + more


@pytest.mark.parametrize("case", CASES)
def test_it_goes_on_with_the_same_bits(case, tmp_path):
    whole = run(*training(case), "--run_dir", tmp_path / "whole")
    assert whole.returncode == 0, whole.stderr
    killed = run(*training(case), "--run_dir", tmp_path / "killed", failpoint="checkpoint.complete:4")
    assert killed.returncode != 0 and (tmp_path / "killed/checkpoints/latest").exists(), killed.stderr
    workers = [word for word in CASES[case][4] if word in ("--num_workers", "2")]
    done = run("--resume", tmp_path / "killed", *workers)
    assert done.returncode == 0, done.stderr
    assert left(tmp_path / "killed") == left(tmp_path / "whole")


def test_another_size_is_refused(tmp_path):
    assert run(*training("ppo"), "--run_dir", tmp_path / "run").returncode == 0
    done = run("--resume", tmp_path / "run", "--allow_drift", "--total_steps", 2000, "--set", f"opponents={{runner: {LIST.format(5, 60, 'pfsp')}}}")
    assert done.returncode == 2 and "this pool has 4 slots" in done.stderr and "keep its size" in done.stderr
    done = run("--resume", tmp_path / "run", "--allow_drift", "--total_steps", 2000, "--set", f"opponents={{runner: {LIST.format(3, 90, 'latest')}}}")
    assert done.returncode == 0, done.stderr
    done = run("--resume", tmp_path / "run", "--allow_drift", "--total_steps", 3000, "--set", "opponents.runner=[random, self]")
    assert done.returncode == 0, done.stderr


def test_the_runs_that_a_pool_began_with_may_go(tmp_path):
    assert run(*training("ppo"), "--run_dir", tmp_path / "first").returncode == 0
    shutil.copytree(tmp_path / "first", tmp_path / "copy")
    words = training("ppo")
    words[-1] = words[-1].replace("size: 3", f"size: 3, from: [{tmp_path}/copy]")
    done = run(*words, "--run_dir", tmp_path / "second")
    assert done.returncode == 0, done.stderr
    shutil.rmtree(tmp_path / "copy")
    done = run("--resume", tmp_path / "second", "--total_steps", 2000, "--allow_drift")
    assert done.returncode == 0, done.stderr


def test_ranks_draw_for_their_replicas_what_one_rank_draws_for_all(tmp_path):
    """The table of results, and so every draw, is that of one worker as long as the weights are."""
    found = []
    for workers in (1, 2):
        done = run(*training("ppo"), "--num_workers", workers, "--set", "policy.runner.lr=0", "--set", "policy.tagger.lr=0", "--run_dir", tmp_path / str(workers))
        assert done.returncode == 0, done.stderr
        metrics, _ = left(tmp_path / str(workers))
        found.append([{k: v for k, v in row.items() if "past" in k or k == "episodes"} for row in metrics])
    assert found[0] == found[1] and any(row["runner/past_share"] for row in found[0])
