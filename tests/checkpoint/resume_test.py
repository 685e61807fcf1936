"""Resuming a run: the same bits as without an interruption, and the cases that are refused."""

import fcntl
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import time

import pytest
from safetensors.numpy import load_file

from checkpoint.runs import EVERY, WDTRAIN, left, options, resume, run

GAMES = [("tag_gridworld", "PPO"), ("tag_continuous", "PQN, epsilon: [[0, 1], [672, 0.1]]"), ("tag_continuous", "A2C"), ("cartpole", "PPO"), ("tag_continuous", "PPO", 12, "trainer.precision=bf16"),
         ("tag_gridworld", "DQN, batch_size: 16, replay_ratio: 0.6, buffer_size: 300, learning_starts: 150, target_every: 112, prioritized: true, n_step: 2", 12, "trainer.intervals=iterations"),
         ("tag_gridworld", "VDN, batch_size: 16, replay_ratio: 0.6, buffer_size: 300, learning_starts: 150, target_every: 112", 12, "trainer.intervals=iterations"),
         ("pendulum", "TD3, batch_size: 16, replay_ratio: 0.9, buffer_size: 300, learning_starts: 150, random_steps: 120, noise_damping: 0.2, model: {separate_value: false}", 12, "trainer.intervals=iterations"),
         ("pendulum", "SAC, batch_size: 16, replay_ratio: 0.6, buffer_size: 300, learning_starts: 150, prioritized: true, model: {separate_value: false, distribution: gsde, noise_every: 5}", 12, "trainer.intervals=iterations"),
         ("tag_continuous", "PPO", 12, "trainer.observations=table"), ("tag_continuous", "PPO, normalize_value: true, normalize_reward: true"),
         ("pendulum", "PPO, model: {distribution: gsde, noise_every: 5}")]
POINTS = ["checkpoint.begun:3", "checkpoint.file:9", "checkpoint.manifest:2", "checkpoint.staged:3", "checkpoint.renamed:4",
          "checkpoint.complete:3", "checkpoint.linked:5", "checkpoint.removing:1", "write:150", "fsync:40", "rename:33"]


@pytest.fixture(scope="module", params=GAMES, ids=lambda game: "-".join(map(str, game)))
def unharmed(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unharmed") / "run"
    assert run(*options(*request.param), "--run_dir", folder).returncode == 0
    return options(*request.param), left(folder)


def event_steps(folder):
    """Steps of the events, parsed from the records: length, its checksum, the event, its checksum."""
    (path,) = folder.glob("events.out.tfevents.*")
    data, steps, at = path.read_bytes(), [], 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        event = data[at + 12 : at + 12 + length]
        if event[9] == 0x10:  # field 2 is the step; it follows nine bytes of wall time
            step, shift, k = 0, 0, 10
            while True:
                step |= (event[k] & 0x7F) << shift
                shift, k = shift + 7, k + 1
                if event[k - 1] < 0x80:
                    break
            steps.append(step)
        at += 12 + length + 4
    return steps


def test_C1_C4_killed_at_any_point_of_a_save_it_goes_on_to_the_same_bits(unharmed, tmp_path):
    arguments, expected = unharmed
    for point in POINTS if "tag_gridworld" in arguments else POINTS[::4]:
        folder = tmp_path / point.replace(":", "-")
        assert run(*arguments, "--run_dir", folder, failpoint=point).returncode == -signal.SIGKILL, point
        assert resume(folder) == expected, point
        assert event_steps(folder) == [row["env_steps"] for row in expected[0]], point
        shutil.rmtree(folder)


def test_arrays_of_the_state_are_in_a_checkpoint(tmp_path):
    """An episode of 25 steps goes on after each of them, between the same landmarks."""
    arguments = ["--env", "simple_tag", "--set", "env.num_landmarks=6", "--num_envs", 8, "--train_batch_size", 56, "--total_steps", 56 * 6, *EVERY]
    assert run(*arguments, "--run_dir", tmp_path / "unharmed").returncode == 0
    assert run(*arguments, "--run_dir", tmp_path / "killed", failpoint="checkpoint.complete:2").returncode == -signal.SIGKILL
    assert resume(tmp_path / "killed") == left(tmp_path / "unharmed")


def test_C4_killed_again_and_again(unharmed, tmp_path):
    arguments, expected = unharmed
    folder = tmp_path / "run"
    assert run(*arguments, "--run_dir", folder, "--fault", "iter=4,kind=kill").returncode == -signal.SIGKILL
    for iteration in (5, 8, 11):
        assert run("--resume", folder, "--fault", f"iter={iteration},kind=kill").returncode == -signal.SIGKILL
    assert resume(folder) == expected


def test_C4_stopped_by_a_signal_or_by_time_it_goes_on_to_the_same_bits(unharmed, tmp_path):
    arguments, expected = unharmed
    for number in (signal.SIGINT, signal.SIGTERM):
        folder = tmp_path / number.name
        process = subprocess.Popen([WDTRAIN, *arguments, "--run_dir", str(folder), "--quiet", "--fault", "iter=5,kind=slow:300"],
                                   stderr=subprocess.PIPE, text=True)
        while len(lines_of(folder)) < 5:
            time.sleep(0.02)
        process.send_signal(number)
        assert process.wait(timeout=60) == 128 + number
        assert json.loads((folder / "summary.json").read_text())["stop_reason"] == "signal"
        assert len(lines_of(folder)) < 12
        assert resume(folder) == expected
    folder = tmp_path / "time"
    done = run(*arguments, "--run_dir", folder, "--max_seconds", 0.6, "--fault", "iter=4,kind=slow:200")
    assert (done.returncode, json.loads((folder / "summary.json").read_text())["stop_reason"]) == (0, "max_seconds")
    assert run("--resume", folder, "--max_seconds", 0).returncode == 0
    metrics, files = left(folder)
    assert metrics == expected[0]
    assert {k: v for k, v in files.items()} == expected[1]


def lines_of(folder):
    path = folder / "metrics.jsonl"
    return path.read_text().splitlines() if path.exists() else []


def test_C2_a_call_that_fails_leaves_the_old_checkpoints_and_an_error(tmp_path):
    for cause in ("ENOSPC", "EIO", "short"):
        for call in ("write:50", "fsync:40", "rename:40"):
            if cause == "short" and not call.startswith("write"):
                continue
            folder = tmp_path / f"{call}-{cause}".replace(":", "-")
            done = run(*options("cartpole", "PPO"), "--run_dir", folder, failpoint=f"{call}:{cause}")
            assert done.returncode == 0, done.stderr
            assert "older checkpoints are unchanged" in done.stderr or "training goes on without" in done.stderr, done.stderr
            assert json.loads((folder / "checkpoints" / "latest" / "manifest.json").read_text())["checkpoint"]["iteration"] == 12


def test_the_first_checkpoint_stands_before_the_first_step(tmp_path):
    folder = tmp_path / "run"
    assert run(*options("tag_gridworld", "A2C"), "--run_dir", folder, "--fault", "iter=1,kind=exit:7").returncode == 7
    assert (folder / "checkpoints" / "latest").resolve().name == "00000000"
    assert run("--resume", folder).returncode == 0


def test_a_folder_without_checkpoints_ends_with_2(tmp_path):
    done = run("--resume", tmp_path)
    assert (done.returncode, "there is no checkpoint to go on from" in done.stderr) == (2, True)


def test_damaged_checkpoints_are_left_out_with_a_warning_each_and_without_any_good_one_it_ends_with_1(tmp_path):
    folder = tmp_path / "run"
    assert run(*options("cartpole", "A2C"), "--run_dir", folder, "--fault", "iter=9,kind=kill").returncode < 0
    newest, *others = sorted((p for p in (folder / "checkpoints").iterdir() if p.name.isdigit()), reverse=True)
    (newest / "replicas.safetensors").write_bytes(b"")
    done = run("--resume", folder, "--fault", "iter=9,kind=kill")
    assert f"checkpoint {newest.name} is left out" in done.stderr
    assert done.returncode < 0
    for other in (p for p in (folder / "checkpoints").iterdir() if p.name.isdigit()):
        (other / "manifest.json").write_text("{}")
    done = run("--resume", folder)
    assert (done.returncode, "can be read; nothing was changed" in done.stderr) == (1, True)


def test_a_finished_run_says_so_and_longer_training_is_no_drift(tmp_path):
    folder = tmp_path / "run"
    assert run(*options("cartpole", "PPO", 4), "--run_dir", folder).returncode == 0
    before = left(folder)
    done = subprocess.run([WDTRAIN, "--resume", str(folder)], capture_output=True, text=True)
    assert (done.returncode, "has finished (total_steps after 224 steps)" in done.stderr) == (0, True), done.stderr
    assert left(folder) == before
    assert run("--resume", folder, "--total_steps", 560).returncode == 0
    assert run(*options("cartpole", "PPO", 10), "--run_dir", tmp_path / "at_once").returncode == 0
    metrics, files = left(folder)
    expected = left(tmp_path / "at_once")
    assert metrics == expected[0]
    assert {k: v for k, v in files.items() if "replicas" not in k} == {k: v for k, v in expected[1].items() if "replicas" not in k}


def test_drift_is_refused_field_by_field_unless_allowed(tmp_path):
    folder = tmp_path / "run"
    assert run(*options("cartpole", "PPO"), "--run_dir", folder, "--fault", "iter=5,kind=kill").returncode < 0
    changes = ["--seed", "9", "--set", "policy.shared.gamma=0.5", "--threads", "1"]
    done = run("--resume", folder, *changes)
    assert done.returncode == 2
    assert "trainer.seed: 1 -> 9" in done.stderr and "policy.shared.gamma: 0.98 -> 0.5" in done.stderr
    assert "threads" not in done.stderr
    done = run("--resume", folder, *changes, "--allow_drift")
    assert (done.returncode, "differ from the checkpoint's" in done.stderr) == (0, True)
    assert run("--resume", folder, "--set", "policy.shared.model.fc_dims=[8]", "--allow_drift", "--total_steps", "1000").returncode == 1


@pytest.mark.parametrize("setting, before, now", [("precision", "bf16", "fp32"), ("precision", "fp32", "bf16"),
                                                  ("observations", "rows", "table"), ("observations", "table", "rows")])
def test_what_lays_out_a_checkpoint_is_not_changed_even_where_drift_is_allowed(tmp_path, setting, before, now):
    folder = tmp_path / "run"
    assert run(*options("tag_continuous", "PPO", 4, f"trainer.{setting}={before}"), "--run_dir", folder, "--fault", "iter=3,kind=kill").returncode < 0
    change = ["--set", f"trainer.{setting}={now}"]
    done = run("--resume", folder, *change)
    assert (done.returncode, f"trainer.{setting}: {before} -> {now}" in done.stderr) == (2, True), done.stderr
    done = run("--resume", folder, *change, "--allow_drift")
    assert done.returncode == 2
    assert "it was made with, or begin a new run with its weights (--warm_start)" in done.stderr
    assert run("--resume", folder).returncode == 0
    assert run(*options("tag_continuous", "PPO", 1, f"trainer.{setting}={now}"), "--run_dir", tmp_path / "second", "--warm_start", folder).returncode == 0


def test_resume_alone_takes_the_run_that_wrote_last(tmp_path):
    for name in ("old", "new"):
        assert run(*options("cartpole", "PPO", 2), "--run_dir", tmp_path / "runs" / "cartpole" / name, cwd=tmp_path).returncode == 0
        time.sleep(0.05)
    done = subprocess.run([WDTRAIN, "--resume"], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, "runs/cartpole/new has finished" in done.stderr) == (0, True), done.stderr
    assert run("--resume", "latest", "--total_steps", 300, cwd=tmp_path).returncode == 0
    assert len(lines_of(tmp_path / "runs" / "cartpole" / "new")) == 6


def test_options_that_contradict_each_other_are_refused(tmp_path):
    for arguments in (["--resume", "a", "--config", "b"], ["--resume", "a", "--warm_start", "b"], ["--allow_drift", "--env", "cartpole"],
                      ["--resume", "a", "--run_dir", "b"], ["--env", "cartpole", "--fault", "iter=0,kind=kill"],
                      ["--env", "cartpole", "--warm_start", str(tmp_path / "none")]):
        done = run(*arguments, cwd=tmp_path)
        assert done.returncode == 2, done
        assert done.stderr.startswith("error: "), done


def test_a_run_that_is_under_way_is_locked(tmp_path):
    folder = tmp_path / "run"
    process = subprocess.Popen([WDTRAIN, *options("cartpole", "PPO"), "--run_dir", str(folder), "--quiet", "--fault", "iter=3,kind=hang"])
    while len(lines_of(folder)) < 2:
        time.sleep(0.02)
    done = run("--resume", folder)
    assert (done.returncode, f"is in use by process {process.pid} on " in done.stderr) == (2, True), done.stderr
    process.kill()
    process.wait()
    assert run("--resume", folder).returncode == 0, "a dead holder's lock is taken over"


@pytest.mark.parametrize("workers", [0, 2])
def test_the_lock_comes_before_the_choice_of_a_checkpoint(workers, tmp_path):
    """While another process holds the lock, it may write and remove checkpoints: none of them is looked at."""
    folder, more = tmp_path / "run", ["--num_workers", "2"] if workers else []
    assert run(*options("cartpole", "PPO"), "--run_dir", folder, "--fault", "iter=9,kind=kill").returncode < 0
    manifests = {path: path.read_text() for path in (folder / "checkpoints").glob("[0-9]*/manifest.json")}
    with open(folder / ".lock", "r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for path in manifests:
            path.write_text("half written")
        done = run("--resume", folder, *more)
    assert done.returncode == 2 and "is in use by process" in done.stderr and "left out" not in done.stderr, done.stderr
    for path, text in manifests.items():
        path.write_text(text)
    assert run("--resume", folder, *more).returncode == 0
    assert not list((folder / "checkpoints").glob(".aside*"))


def test_other_ranks_learn_from_rank_0_what_it_has_chosen(tmp_path):
    """The run's own configuration, with which they begin, may be of a later start than the checkpoint."""
    folder = tmp_path / "run"
    assert run(*options("cartpole", "PPO"), "--run_dir", folder, "--fault", "iter=9,kind=kill").returncode < 0
    changed = (folder / "config.yaml").read_text().replace("total_steps: 672", "total_steps: 1344")
    (folder / "config.yaml").write_text(changed)
    assert "total_steps: 1344" in changed
    done = run("--resume", folder, "--num_workers", 2)
    assert done.returncode == 0, done.stderr
    assert len(lines_of(folder)) == 12


def test_a_run_that_ends_while_another_waits_for_it_goes_on_from_its_last_checkpoint(tmp_path):
    """A preempted job and its successor, which is stopped where it may have chosen a checkpoint already."""
    folder = tmp_path / "run"
    for delay in (0.02, 0.05, 0.1):
        shutil.rmtree(folder, ignore_errors=True)
        first = subprocess.Popen([WDTRAIN, *options("cartpole", "PPO", 10**6), "--run_dir", str(folder), "--quiet"], stderr=subprocess.DEVNULL)
        while len(lines_of(folder)) < 4:
            time.sleep(0.01)
        second = subprocess.Popen([WDTRAIN, "--resume", str(folder), "--quiet", "--max_seconds", "0.2"], stderr=subprocess.PIPE, text=True)
        time.sleep(delay)
        second.send_signal(signal.SIGSTOP)
        first.send_signal(signal.SIGTERM)
        assert first.wait(timeout=30) == 143
        second.send_signal(signal.SIGCONT)
        _, text = second.communicate(timeout=60)
        assert second.returncode == 0 or (second.returncode == 2 and "is in use by process" in text), text
        assert not list((folder / "checkpoints").glob(".aside*")), text


def test_warm_start_takes_weights_only(tmp_path):
    assert run(*options("cartpole", "PPO", 4), "--run_dir", tmp_path / "first").returncode == 0
    assert run(*options("cartpole", "PPO", 1), "--set", "policy.shared.lr=0", "--run_dir", tmp_path / "second",
               "--warm_start", tmp_path / "first").returncode == 0
    weights = [load_file(tmp_path / name / "weights" / "shared.safetensors") for name in ("first", "second")]
    assert weights[0].keys() == weights[1].keys()
    assert all((weights[0][name] == weights[1][name]).all() for name in weights[0])
    assert len(lines_of(tmp_path / "second")) == 1
    done = run(*options("tag_gridworld", "PPO", 1), "--run_dir", tmp_path / "third", "--warm_start", tmp_path / "first")
    assert (done.returncode, "has no policy 'tagger'" in done.stderr) == (2, True)
    assert not (tmp_path / "third").exists()
    assert run(*options("tag_gridworld", "PPO", 1), "--set", "env.num_taggers=3", "--run_dir", tmp_path / "fourth").returncode == 0
    done = run(*options("tag_gridworld", "PPO", 1), "--run_dir", tmp_path / "fifth", "--warm_start", tmp_path / "fourth")
    assert (done.returncode, "weights of another network" in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "fifth").exists()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_file_of_weights_wins_over_warm_start(workers, tmp_path):
    """Taggers of one run against runners of another."""
    plain = ["--set", "policy.tagger.normalize_value=false", "--set", "policy.runner.normalize_value=false"]  # no statistics that follow training
    for seed, name in enumerate(("start", "others")):
        assert run(*options("tag_gridworld", "A2C", 2), *plain, "--seed", seed, "--run_dir", tmp_path / name).returncode == 0
    file = tmp_path / "others" / "weights" / "runner.safetensors"
    new = [*options("tag_gridworld", "A2C", 1), *plain, "--warm_start", tmp_path / "start", "--set", "policy.tagger.lr=0", "--set", "policy.runner.to_train=false",
           "--set", f"policy.runner.model.model_ckpt_filepath={file}", *(["--num_workers", "2"] if workers else [])]
    done = subprocess.run([WDTRAIN, *map(str, new), "--run_dir", str(tmp_path / "new")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"policy 'runner' begins with the weights of its model_ckpt_filepath, {file}, and not with those of --warm_start" in done.stderr
    weights = {(name, policy): load_file(tmp_path / name / "weights" / f"{policy}.safetensors") for name in ("start", "others", "new") for policy in ("tagger", "runner")}
    for policy, source, other in (("tagger", "start", "others"), ("runner", "others", "start")):
        mine = weights["new", policy]
        for tensor in mine:
            assert (mine[tensor] == weights[source, policy][tensor]).all(), (policy, tensor)
        assert any((mine[tensor] != weights[other, policy][tensor]).any() for tensor in mine), policy
    done = run(*new, "--set", f"policy.tagger.model.model_ckpt_filepath={tmp_path / 'others/weights/tagger.safetensors'}", "--run_dir", tmp_path / "none")
    assert (done.returncode, "has nothing to do: every policy has a model_ckpt_filepath" in done.stderr) == (2, True), done.stderr


PARTS = ("policy={{first: {{agents: [tagger 0-1], algorithm: A2C, {0}}}, second: {{agents: [tagger 2-3], algorithm: A2C, {0}}}, "
         "runner: {{algorithm: A2C, {0}, model: {{fc_dims: [16]}}}}}}").format("lr: 0, normalize_value: false")


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    """A run of a policy for all taggers and one for the runner, in a folder whose name looks like a map."""
    folder = tmp_path_factory.mktemp("taught") / "a=b:c,d=e"
    plain = ["--set", "policy.tagger.normalize_value=false", "--set", "policy.runner.normalize_value=false"]
    assert run(*options("tag_gridworld", "A2C", 2), *plain, "--run_dir", folder).returncode == 0
    return folder


def in_parts(folder, *starts, command=()):
    done = run(*options("tag_gridworld", "A2C", 1), "--set", PARTS, *(word for start in starts for word in ("--warm_start", start)), *command, "--run_dir", folder)
    return done, {path.stem: load_file(path) for path in (folder / "weights").glob("*")}


def equal(a, b):
    return a.keys() == b.keys() and all((a[name] == b[name]).all() for name in a)


def test_a_warm_start_maps_policies(taught, tmp_path):
    link, weights = tmp_path / "taught", {name: load_file(taught / "weights" / f"{name}.safetensors") for name in ("tagger", "runner")}
    link.symlink_to(taught)
    newest = f"{link}/checkpoints/latest"
    for k, starts in enumerate(([f"first={link}:tagger", f"second={link}:tagger", f"runner={link}"],
                                [f"first={link}:tagger", f"second={newest}:tagger", f"runner={newest}:runner"],
                                [f"first={taught}:tagger", f"second={taught}:tagger", f"runner={taught}"])):
        done, found = in_parts(tmp_path / str(k), *starts)
        assert done.returncode == 0, done.stderr
        assert equal(found["first"], weights["tagger"]) and equal(found["second"], weights["tagger"]) and equal(found["runner"], weights["runner"])
    again = subprocess.run([WDTRAIN, "reproduce", str(tmp_path / "1")], capture_output=True, text=True)
    assert (again.returncode, again.stdout.count(": the same bytes")) == (0, 3), again.stderr


def test_a_policy_that_a_warm_start_does_not_name_begins_anew(taught, tmp_path):
    done = subprocess.run([WDTRAIN, *map(str, options("tag_gridworld", "A2C", 1)), "--set", PARTS, "--warm_start", f"second={taught}:tagger", "--run_dir", str(tmp_path / "new")],
                          capture_output=True, text=True)
    assert done.returncode == 0 and "policy 'first' begins with first weights of its own: --warm_start does not name it" in done.stderr, done.stderr
    plain, first = in_parts(tmp_path / "plain")
    found = {path.stem: load_file(path) for path in (tmp_path / "new" / "weights").glob("*")}
    assert plain.returncode == 0 and equal(found["first"], first["first"]) and not equal(found["second"], first["second"])


def test_a_warm_start_of_the_only_policy(tmp_path):
    algorithm = "PPO, lr: {}, normalize_value: false, model: {{fc_dims: [8], activation: relu, separate_value: false}}"
    assert run(*options("cartpole", algorithm.format(0.01), 2), "--run_dir", tmp_path / "first").returncode == 0
    cart = ["--env", "cartpole", "--set", f"policy={{cart: {{algorithm: {algorithm.format(0)}}}}}", "--total_steps", "512", *EVERY]
    assert run(*cart, "--warm_start", f"cart={tmp_path / 'first'}", "--run_dir", tmp_path / "second").returncode == 0
    old, new = load_file(tmp_path / "first/weights/shared.safetensors"), load_file(tmp_path / "second/weights/cart.safetensors")
    assert all((new[name] == old[name]).all() for name in new)


@pytest.mark.parametrize("start, message", [
    ("{}", "has no policy 'first', but runner, tagger: name the one with which each policy begins, as --warm_start first={0}:runner --warm_start second={0}:runner --warm_start runner={0}:runner"),
    ("first={}", "has no policy 'first', but runner, tagger: name the one"),
    ("first={}:taggers", "has no policy 'taggers', but runner, tagger: name the one"),
    ("frist={}:tagger", "there is no policy 'frist' here; did you mean \"first\"?"),
    ("first={}:runner", "policy 'first' cannot begin with the weights of 'runner': "),
    ("first=nowhere:tagger", "nowhere: there is no such folder"),
    ("first=", "must be RUN or POLICY=RUN:NAME"),
    ("={}", "must be RUN or POLICY=RUN:NAME"),
    (["first={}:tagger", "first={}:tagger"], "names the policy a second time"),
    (["{}", "first={}:tagger"], "one run is for all policies: give it alone"),
])
def test_a_warm_start_that_cannot_be(start, message, taught, tmp_path):
    starts = [start] if isinstance(start, str) else start
    done, _ = in_parts(tmp_path / "new", *(each.format(taught) for each in starts))
    assert (done.returncode, message.format(taught) in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "new").exists()


def test_a_file_of_weights_and_a_part_of_a_warm_start(taught, tmp_path):
    done, _ = in_parts(tmp_path / "new", f"first={taught}:tagger", command=["--set", f"policy.first.model.model_ckpt_filepath={taught}/weights/tagger.safetensors"])
    assert (done.returncode, "policy 'first' has a model_ckpt_filepath" in done.stderr) == (2, True), done.stderr


def test_C5_a_checkpoint_can_be_evaluated_as_a_run_can(tmp_path):
    assert run(*options("tag_gridworld", "PPO", 4), "--run_dir", tmp_path / "run").returncode == 0
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "latest" / "optimizer")
    done = subprocess.run([WDTRAIN, "eval", "--run", str(tmp_path / "run" / "checkpoints" / "latest"), "--episodes", "3", "--json"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["episodes"] == 3


def test_C5_python_reads_the_tensors(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    assert run(*options("cartpole", "PPO", 4), "--run_dir", tmp_path / "run").returncode == 0
    checkpoint = tmp_path / "run" / "checkpoints" / "latest"
    weights = numpy.load_file(checkpoint / "weights" / "shared.safetensors")
    moments = numpy.load_file(checkpoint / "optimizer" / "shared.safetensors")
    assert moments["first_moment"].size >= sum(w.size for w in weights.values())
    assert moments["steps"] == 4 * 10 * 4  # iterations, epochs, minibatches
    assert numpy.load_file(checkpoint / "replicas.safetensors")["shared/observation"].shape == (8, 1, 4)


@pytest.mark.parametrize("tensor, words", [
    ("observation", "observation nan in step 0 of the rollout, replica 0, agent 0, entry 0"),
    ("reward", "reward nan in step 0 of the rollout, replica 0, agent 0"),
    ("loss", "the policy loss is not finite"),
    ("gradient", "the gradient of 'layers.0.weight'[0] is not finite"),
    ("weight", "weight 'layers.0.weight'[0] is nan"),
])
def test_T10_what_is_not_finite_stops_training_before_anything_is_learned_from_it(tmp_path, tensor, words):
    folder = tmp_path / "run"
    done = run(*options("tag_gridworld", "PPO"), "--run_dir", folder, "--fault", f"iter=5,kind=nan:{tensor}")
    assert done.returncode == 1
    assert f"policy 'tagger': {words}" in done.stderr
    assert json.loads((folder / "summary.json").read_text())["status"] == "failed"
    assert (folder / "checkpoints" / "latest").resolve().name == "00000004", "the last finite one is kept"
    assert run("--resume", folder).returncode == 0


@pytest.mark.parametrize("kind, code", [("throw", 1), ("oom", 1), ("segv", -signal.SIGSEGV), ("exit:9", 9), ("kill", -signal.SIGKILL)])
def test_faults_strike_as_they_are_told(tmp_path, kind, code):
    done = run(*options("cartpole", "A2C", 3), "--run_dir", tmp_path / "run", "--fault", f"iter=2,kind={kind}")
    assert done.returncode == code, done.stderr
    assert len(lines_of(tmp_path / "run")) == 1


def test_the_same_bits_with_checkpoints_and_without(tmp_path):
    for name, every in (("with", "2"), ("without", "0")):
        assert run(*options("tag_continuous", "PPO", 5), "--run_dir", tmp_path / name, "--set", f"saving.checkpoint_freq={every}").returncode == 0
    assert left(tmp_path / "with") == left(tmp_path / "without")
