"""causes_test.py: an error or a warning names what caused it, and what to change."""

import os
import pathlib
import re
import resource
import subprocess

import pytest

from cli.program import SANITIZED, wdtrain

FAULTY = pathlib.Path(os.environ["WD_BUILD_DIR"]) / "faulty"
SHORT = ["--num_envs", 4, "--train_batch_size", 400, "--total_steps", 800, "--device", "cpu", "--threads", 1]
GIB = 1 << 30


def faulty(*arguments):
    return subprocess.run([FAULTY, *map(str, arguments)], capture_output=True, text=True, timeout=120)


def within(gib):
    return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (gib * GIB, gib * GIB))}


@pytest.mark.parametrize("scale, learning", [(1e30, "normalize_value: false"), (1e37, "normalize_value: true")])
def test_huge_rewards_are_named_with_their_place(scale, learning, tmp_path):
    done = faulty("--env", "point_mass", *SHORT, "--set", f"env.scale={scale}", "--set", f"policy={{point: {{{learning}}}}}", "--run_dir", tmp_path / "run")
    assert done.returncode == 1
    found = re.search(r"is not finite; .*; policy 'point': rewards reach ([\d.e+]+), in step \d+ of the rollout, replica [0-3], agent 0: make them smaller", done.stderr)
    assert found and 0.1 < float(found[1]) / scale < 10, done.stderr


def test_rewards_of_usual_size_are_not_blamed(tmp_path):
    done = faulty("--env", "point_mass", *SHORT, "--set", "policy={point: {lr: 10, clip_grad_norm: false, normalize_value: false, vf_loss_coeff: 1e6, num_epochs: 100}}", "--run_dir", tmp_path / "run")
    assert "reach" not in done.stderr, done.stderr


def test_a_game_in_which_nobody_plays_gets_a_word(tmp_path):
    for never, warns in (("true", 1), ("false", 0)):
        done = faulty("--env", "left_then_paid", *SHORT, "--set", f"env.never={never}", "--run_dir", tmp_path / never)
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("no agent was in the game in iteration") == warns, done.stderr


@pytest.mark.parametrize("setting, warns", [("normalize_advantage: true", True), ("normalize_advantage: false", False)])
def test_a_rollout_of_one_row_with_normalized_advantages_gets_a_word(setting, warns, tmp_path):
    done = wdtrain("--env", "cartpole", "--num_envs", 1, "--train_batch_size", 1, "--total_steps", 4, "--device", "cpu", "--run_dir", tmp_path / "run",
                   "--set", f"policy={{cart: {{algorithm: PPO, num_minibatches: 1, {setting}}}}}")
    assert done.returncode == 0, done.stderr
    assert ("policy 'cart' never changes: a rollout is one row" in done.stderr) == warns, done.stderr


def test_seeds_beyond_the_range_are_refused_exactly():
    for seed, code in ((2**53, 0), (2**53 + 1, 2)):
        for given in (["--seed", seed], ["--set", f"trainer.seed={seed}"]):
            done = wdtrain("--env", "cartpole", *given, "--print_config")
            assert done.returncode == code, done.stderr
            assert code == 0 or f"= {seed}: must be in [0, {2**53}]" in done.stderr
            assert code != 0 or f"seed: {seed} " in done.stdout


# --- memory ---


@pytest.mark.skipif(SANITIZED, reason="a sanitizer reserves more address space")
def test_a_replay_memory_that_does_not_fit_is_named_with_one_that_does():
    def needed(size):
        return wdtrain("--env", "cartpole", "--device", "cpu", "--set", f"policy={{cart: {{algorithm: DQN, buffer_size: {size}}}}}", "--max_seconds", 0.1, "--run_dir", "/proc/none", **within(4))

    refused = needed(10**12).stderr
    found = re.search(r"the replay memory is what does not fit: lower policy\.cart\.buffer_size = 1000000000000 to about (\d+)", refused)
    assert found and "train_batch_size" not in refused.split("does not fit")[1], refused
    size = int(found[1])
    assert "not enough memory" in needed(int(1.2 * size)).stderr and "not enough memory" not in needed(int(0.8 * size)).stderr


@pytest.mark.skipif(SANITIZED, reason="a sanitizer reserves more address space")
@pytest.mark.parametrize("settings, remedy", [(["--num_envs", 10**4, "--steps", 10**9, "--part_mib", 65_536], "lower --part_mib"), (["--num_envs", 10**7, "--steps", 320 * 10**6, "--part_mib", 1], "lower --num_envs")])
def test_a_recording_that_does_not_fit_is_refused_before_it_begins(settings, remedy, tmp_path):
    done = wdtrain("record", "--env", "cartpole", "--random", "--device", "cpu", *settings, "--out", tmp_path / "out", **within(4))
    assert done.returncode == 2 and done.stderr.startswith("error: not enough memory: recording needs at least"), done.stderr
    assert done.stderr.rstrip().endswith(remedy) and not (tmp_path / "out").exists()


@pytest.mark.skipif(SANITIZED, reason="a sanitizer reserves more address space")
def test_the_estimate_contains_a_checkpoints_copies():
    """With rollouts of one step, the copy of the last observations is half of their buffers."""
    done = wdtrain("--env", "simple_tag", "--device", "cpu", "--num_envs", 10**7, "--train_batch_size", 10**7, **within(4))
    sizes = {name: float(number) for name, number in re.findall(r"(observations|copies) ([\d.]+) GiB", done.stderr)}
    assert "not enough memory" in done.stderr and sizes["copies"] > 0.5 * sizes["observations"], done.stderr


@pytest.mark.parametrize("settings, said", [
    (["--set", "policy={cart: {algorithm: DQN, batch_size: 2}}"], "policy.cart.batch_size = 2: must be a multiple of the 4 workers"),
    (["--num_envs", 6, "--train_batch_size", 60], "trainer.num_envs = 6: must be a multiple of the 4 workers"),
    (["--set", "trainer.precision=tf32"], "trainer.precision = tf32: needs a GPU")])
def test_what_workers_cannot_share_is_refused_before_they_start(settings, said, tmp_path):
    done = wdtrain("--env", "cartpole", "--device", "cpu", "--num_workers", 4, *settings, "--run_dir", tmp_path / "run")
    assert done.returncode == 2 and said in done.stderr and "rank" not in done.stderr, done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("folder", ["file/x", "/dev/full", "/proc/x"])
def test_a_recording_needs_a_folder_that_can_be_made(folder, tmp_path):
    (tmp_path / "file").touch()
    done = wdtrain("record", "--env", "cartpole", "--random", "--steps", 64, "--num_envs", 8, "--device", "cpu", "--out", tmp_path / folder)
    assert done.returncode == 2 and ": cannot be made: " in done.stderr and "name a folder" in done.stderr, done.stderr


def test_a_run_without_weights_points_to_its_newest_checkpoint(tmp_path):
    done = wdtrain("--env", "cartpole", *SHORT, "--run_dir", tmp_path / "run", "--quiet")
    assert done.returncode == 0, done.stderr
    (tmp_path / "run/weights").rename(tmp_path / "gone")
    for command in ("eval", "play"):
        refused = wdtrain(command, tmp_path / "run")
        newest = tmp_path / "run/checkpoints/latest"
        assert refused.returncode == 2 and f"the run is under way, or has not saved weights: name {newest}" in refused.stderr, refused.stderr
    assert wdtrain("eval", newest, "--episodes", 4).returncode == 0


# --- other people's words ---


def test_weights_of_another_activation_are_refused(tmp_path):
    """Their shapes are the same, and the actions would be others."""
    short, key = ["--env", "cartpole", *SHORT], "policy.shared.model.activation"
    assert wdtrain(*short, "--set", f"{key}=relu", "--run_dir", tmp_path / "relu").returncode == 0
    weights = ["--set", f"policy.shared.model.model_ckpt_filepath={tmp_path / 'relu/weights/shared.safetensors'}"]
    done = wdtrain(*short, *weights, "--set", f"{key}=tanh", "--run_dir", tmp_path / "tanh")
    assert done.returncode == 2 and not (tmp_path / "tanh").exists()
    assert f"was trained with activation relu, and the network has tanh: set {key} to relu" in done.stderr
    assert wdtrain(*short, *weights, "--set", f"{key}=relu", "--run_dir", tmp_path / "same").returncode == 0


def config(tmp_path, text):
    (tmp_path / "c.yaml").write_text(text)
    return wdtrain("--config", tmp_path / "c.yaml", "--print_config")


@pytest.mark.parametrize("text, hint", [
    ("policy: {cart: {algorithm: PPO, batch_size: 64}}", "unknown key; in place of rows per minibatch, set num_minibatches = trainer.train_batch_size / batch_size"),
    ("policy: {cart: {algorithm: PPO, n_steps: 64}}", "unknown key; in place of steps per rollout, set trainer.train_batch_size = n_steps * trainer.num_envs"),
    ("policy: {cart: {algorithm: DQN, n_steps: 3}}", 'unknown key; did you mean "n_step"?'),
    ("policy: {cart: {algorithm: A2C, batch_size: 64}}", "is a key of"),
    ("trainer: {n_steps: 64}", "unknown key; in place of steps per rollout, set train_batch_size = n_steps * num_envs")])
def test_numbers_that_other_libraries_count_otherwise_are_explained(text, hint, tmp_path):
    done = config(tmp_path, f"name: cartpole\n{text}\n")
    assert done.returncode == 2 and hint in done.stderr, done.stderr


def test_a_schedule_may_end_at_its_bound_and_not_begin_there(tmp_path):
    for points, code in (("[[0, 0.2], [1e5, 0]]", 0), ("[[0, 0], [1e5, 0.2]]", 2), ("0", 2), ("[[0, 0.2], [1e5, -1]]", 2)):
        done = config(tmp_path, f"name: cartpole\npolicy: {{cart: {{algorithm: PPO, clip_param: {points}}}}}\n")
        assert done.returncode == code, (points, done.stderr)


@pytest.mark.parametrize("name", ["tag_continuous", "tag_gridworld", "single_cartpole"])
def test_the_form_of_warpdrives_notebooks_gives_the_settings_of_the_complete_file(name, tmp_path):
    """Notebooks leave out env.seed, trainer.num_gpus and trainer.env_backend; with our name of the game, no other mark is left."""
    text = (pathlib.Path(os.environ["WD_SOURCE_DIR"]) / "tests/data/warpdrive" / f"{name}.yaml").read_text()
    (tmp_path / "complete.yaml").write_text(text)
    short = re.sub(r"^ +(seed|num_gpus|env_backend):.*\n", "", text, flags=re.M).replace("single_", "")
    assert "seed" not in short and "num_gpus" not in short
    (tmp_path / "notebook.yaml").write_text(short)
    (tmp_path / "counts_steps.yaml").write_text(re.sub(r"num_episodes:.*", "total_steps: 100000", short))
    printed = [wdtrain("--config", tmp_path / f"{form}.yaml", "--seed", 1, "--print_config") for form in ("complete", "notebook", "counts_steps")]
    complete, notebook, ours = ([re.sub(r" *#.*|single_", "", line) for line in done.stdout.splitlines()] for done in printed)
    assert complete == notebook, "\n".join(sorted(set(complete) ^ set(notebook)))
    assert ours != notebook, "a file without the mark is ours"


def test_a_file_says_which_keys_the_environments_own_file_adds(tmp_path):
    (tmp_path / "c.yaml").write_text("name: cartpole\ntrainer: {num_envs: 16}\n")
    own = ["--total_steps", 1024, "--device", "cpu", "--run_dir"]
    said = wdtrain("--config", tmp_path / "c.yaml", *own, tmp_path / "run").stderr + wdtrain("--env", "cartpole", *own, tmp_path / "none").stderr
    lines = [line for line in said.splitlines() if "leaves out" in line]
    assert len(lines) == 1 and " trainer.num_envs" not in lines[0] and " policy.shared," not in lines[0] and "trainer.train_batch_size" in lines[0], said
    again = wdtrain("--config", tmp_path / "run/config.yaml", *own, tmp_path / "again").stderr
    assert "leaves out" not in again
