"""`wdtrain record` writes transitions, and trainer.offline learns from them without playing."""

import json

import pytest
from safetensors.numpy import load_file

from cli.program import output, wdtrain
from distributed.jobs import distance, tensors, trained

DQN = "policy={shared: {algorithm: DQN, lr: 1e-3, batch_size: 64, replay_ratio: 8, target_every: 500, gamma: 0.98, cql_alpha: 1, model: {fc_dims: [64, 64], separate_value: false}}}"
BC = "policy={shared: {algorithm: BC, batch_size: 64, replay_ratio: 2, model: {fc_dims: [64, 64], activation: tanh}}}"
OFFLINE = ["--env", "cartpole", "--device", "cpu", "--num_envs", "8", "--train_batch_size", "64", "--stop_return", "none", "--quiet"]


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    """PPO in cartpole, for about 10 s."""
    folder = tmp_path_factory.mktemp("runs") / "teacher"
    output("--env", "cartpole", "--run_dir", folder, "--total_steps", "200k", "--device", "cpu", "--quiet")
    return folder


@pytest.fixture(scope="module")
def recorded(teacher, tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded") / "of_teacher"
    output("record", teacher, "--out", folder, "--steps", "20k", "--num_envs", 8, "--device", "cpu")
    return folder


def mean_return(run, *arguments):
    return json.loads(output("eval", run, "--json", "--device", "cpu", "--episodes", 100, *arguments))["returns"]["cart"]["mean"]


def test_a_recording_is_what_was_asked_for(recorded, teacher, tmp_path):
    assert [path.relative_to(recorded).as_posix() for path in recorded.rglob("*.*")] == ["shared/part-00000.safetensors"]
    rows = load_file(recorded / "shared/part-00000.safetensors")
    assert rows["observation"].shape == (8, 2500, 1, 4) and rows["action"].shape == (8, 2500, 1, 1)
    played = rows["reset_step"] == 0
    assert (rows["reward"][..., 0][played] == 1).all() and (rows["reward"][..., 0][~played] == 0).all()
    again = tmp_path / "again"
    other = tmp_path / "other"
    output("record", teacher, "--out", again, "--steps", "20k", "--num_envs", 8, "--device", "cpu", "--part_mib", 1)
    output("record", teacher, "--out", other, "--steps", "20k", "--num_envs", 8, "--device", "cpu", "--seed", 2)
    assert (load_file(again / "shared/part-00000.safetensors")["action"] == rows["action"]).all()
    assert (load_file(other / "shared/part-00000.safetensors")["action"] != rows["action"]).any()


def test_random_play_needs_no_run(tmp_path):
    output("record", "--random", "--env", "pendulum", "--out", tmp_path / "random", "--steps", 1000, "--num_envs", 4, "--device", "cpu")
    rows = load_file(tmp_path / "random/shared/part-00000.safetensors")
    action = rows["action"]
    assert action.dtype == "float32" and -1 <= action.min() < -0.9 and 0.9 < action.max() <= 1, "half-widths of the bounds"


def test_a_clone_plays_like_its_teacher(teacher, recorded, tmp_path):
    output(*OFFLINE, "--set", BC, "--set", f"trainer.offline={recorded}", "--run_dir", tmp_path / "clone", "--total_steps", "100k",
           "--set", "eval.every=50k", "--set", "eval.episodes=20")
    rows = [json.loads(line) for line in (tmp_path / "clone/metrics.jsonl").read_text().splitlines()]
    assert rows[-1]["shared/policy_loss"] < rows[0]["shared/policy_loss"]
    assert any("eval/cart/return" in key or key.startswith("eval") for key in rows[-1])
    of_teacher, of_clone = mean_return(teacher), mean_return(tmp_path / "clone")
    print(f"teacher {of_teacher}, clone {of_clone}")
    assert of_teacher > 150 and of_clone > 0.8 * of_teacher


def test_q_learning_from_a_recording_is_far_better_than_random(teacher, recorded, tmp_path):
    output(*OFFLINE, "--set", DQN, "--set", f"trainer.offline={recorded}", "--run_dir", tmp_path / "dqn", "--total_steps", "30k")
    random, learned = mean_return(teacher, "--policy", "cart=random"), mean_return(tmp_path / "dqn")
    print(f"random {random}, DQN {learned}")
    assert random < 30 and learned > 5 * random


@pytest.mark.parametrize("policy", [DQN.replace("gamma", "prioritized: true, adam_epsilon: 1e-3, n_step: 3, gamma"), BC.replace("batch_size: 64", "batch_size: 64, adam_epsilon: 1e-3")], ids=["DQN", "BC"])
def test_workers_learn_the_same_from_their_shares(policy, recorded, tmp_path):
    arguments = [*OFFLINE[:-1], "--set", policy.replace("relu", "tanh"), "--set", f"trainer.offline={recorded}", "--total_steps", "320",
                 "--set", "saving.metrics_log_freq=64", "--set", "saving.checkpoint_freq=64"]
    one, _ = trained(tmp_path / "1", *arguments, workers=1)
    for workers in (2, 4):
        rows, _ = trained(tmp_path / str(workers), *arguments, workers=workers)
        for moment in ("first_moment", "second_moment"):
            alone = tensors(tmp_path / "1", "optimizer/shared")[moment]
            assert distance(alone, tensors(tmp_path / str(workers), "optimizer/shared")[moment]) < 1e-4, (workers, moment)
        for row, expected in zip(rows, one, strict=True):
            assert row["shared/total_loss"] == pytest.approx(expected["shared/total_loss"], rel=1e-4)


def test_what_is_used_is_said(recorded, tmp_path):
    """Three replicas: two steps are left over."""
    arguments = ["--env", "cartpole", "--device", "cpu", "--num_envs", "3", "--train_batch_size", "96", "--total_steps", 96, "--stop_return", "none"]
    done = wdtrain(*arguments, "--set", BC.replace("64,", "96,", 1), "--set", f"trainer.offline={recorded}", "--run_dir", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    said = "policy 'shared' learns from 19998 of 20000 recorded steps (8 replicas, 2500 steps each, 1 file): 6666 for each of 3 replicas"
    assert said in (tmp_path / "run/log.txt").read_text()


@pytest.mark.parametrize("steps, part_mib", [(2000, 64), (80_000, 64), (80_000, 1), (1600, 64)])
@pytest.mark.parametrize("policy", [DQN.replace("gamma", "prioritized: true, gamma"), BC], ids=["DQN", "BC"])
def test_another_recording_in_its_place_is_noticed(policy, steps, part_mib, tmp_path):
    """One of the same sizes; in several parts, longer than what is read of each; and one of other sizes."""
    place, run = tmp_path / "place", tmp_path / "run"
    random = ["record", "--random", "--env", "cartpole", "--num_envs", 8, "--device", "cpu", "--part_mib", part_mib]
    output(*random, "--out", place, "--steps", 2000 if steps == 1600 else steps)
    output(*random, "--out", tmp_path / "other", "--steps", steps, "--seed", 2)
    started = wdtrain(*OFFLINE, "--set", policy, "--set", f"trainer.offline={place}", "--run_dir", run, "--total_steps", 1280, "--fault", "iter=11,kind=kill",
                      "--set", "saving.checkpoint_freq=256")
    assert started.returncode == -9, started.stderr
    place.rename(tmp_path / "first")
    (tmp_path / "other").rename(place)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file() and path.name != ".lock"}
    done = wdtrain("--resume", run, "--quiet")
    said = f"{place}/shared: holds another recording than the one that checkpoint "
    assert done.returncode == 2 and said in done.stderr and "put that one back" in done.stderr and "--allow_drift" in done.stderr, done.stderr
    assert {path: path.read_bytes() for path in before} == before, "nothing was changed"
    place.rename(tmp_path / "other")
    (tmp_path / "first").rename(place)
    output("--resume", run, "--quiet", "--total_steps", 1024)
    place.rename(tmp_path / "first")
    (tmp_path / "other").rename(place)
    drifted = wdtrain("--resume", run, "--quiet", "--total_steps", 1280, "--allow_drift")
    assert (drifted.returncode, said in drifted.stderr) == (0, True), drifted.stderr


@pytest.mark.parametrize("arguments, reason", [
    ([], "record needs --out FOLDER and --steps INT"),
    (["--out", "x", "--steps", 10], "record needs RUN"),
    (["--out", "x", "--steps", 10, "--random"], "no environment"),
    (["--out", "x", "--steps", 10, "--random", "--greedy", "--env", "cartpole"], "give one of them"),
    (["--out", "x", "--steps", 10, "--random", "--env", "cartpole", "--num_envs", 4], "--steps 10: must be a multiple of the 4 replicas (--num_envs), as 8"),
    (["nowhere", "--out", "x", "--steps", 10], "nowhere: there is no such folder"),
])
def test_refusals(arguments, reason, tmp_path):
    done = wdtrain("record", *arguments, cwd=tmp_path)
    assert done.returncode == 2 and reason in done.stderr, done.stderr


def test_a_recording_is_not_mixed_with_another(recorded, teacher):
    done = wdtrain("record", teacher, "--out", recorded, "--steps", 800, "--num_envs", 8, "--device", "cpu")
    assert done.returncode == 2 and "is not empty: name a new folder" in done.stderr
