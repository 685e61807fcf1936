"""Wrong input ends with exit code 2 and a helpful message on stderr; help and version are readable."""

import os
import re
import subprocess

import pytest

from cli.program import output, wdtrain

WRONG = {
    "nothing": ([], "no environment: give --env NAME or --config FILE\n\nusage: wdtrain [COMMAND] OPTIONS"),
    "no environment": (["train"], "no environment: give --env NAME"),
    "two settings after one --set": (["--env", "cartpole", "-s", "trainer.seed=1", "trainer.seed=2"], "unexpected argument 'trainer.seed=2': each setting takes a --set of its own"),
    "another library's key": (["--env", "cartpole", "-s", "policy.shared.learning_rate=1"], 'unknown key; did you mean "lr"?'),
    "a folder as a file": (["--config", "/tmp"], "/tmp: is a folder: name a file"),
    "command": (["envz"], 'there is no command \'envz\'; did you mean "envs"?'),
    "environment as command": (["cartpole"], 'did you mean "--env cartpole"?'),
    "environment": (["--env", "cart_pole"], 'unknown environment \'cart_pole\'; did you mean "cartpole"?'),
    "option": (["--env", "cartpole", "--num_env", "3"], 'unknown option --num_env; did you mean "--num_envs"?'),
    "option of a command": (["trace", "--skript", "x"], 'unknown option --skript; did you mean "--script"?'),
    "stray word": (["--env", "cartpole", "stray"], "unexpected argument 'stray'"),
    "no value": (["--env"], "--env"),
    "empty value": (["--env", "cartpole", "--seed", ""], "--seed: must not be empty"),
    "twice": (["--env", "cartpole", "--seed", "1", "--seed", "2"], "--seed is given 2 times"),
    "negative seed": (["--env", "cartpole", "--seed", "-1"], "--seed: trainer.seed = -1: must be in [0, 9007199254740992]"),
    "seed of 2^64": (["--env", "cartpole", "--seed", "18446744073709551616"], "--seed: trainer.seed"),
    "nan": (["--env", "cartpole", "--max_seconds", "nan"], "--max_seconds: trainer.max_seconds = nan"),
    "infinite": (["--env", "cartpole", "--max_seconds", "1e309"], "--max_seconds: trainer.max_seconds"),
    "fraction": (["--env", "cartpole", "--num_envs", "1.5"], "--num_envs: trainer.num_envs = 1.5"),
    "word for a number": (["--env", "cartpole", "--threads", "two"], "--threads: trainer.threads = two"),
    "device": (["--env", "cartpole", "--device", "gpu"], "--device: trainer.device = gpu: must be one of auto, cpu, cuda"),
    "precision": (["--env", "cartpole", "--set", "trainer.precision=fp16"], "trainer.precision = fp16: must be one of fp32, tf32, bf16"),
    "tf32 on a CPU": (["--env", "cartpole", "--device", "cpu", "--set", "trainer.precision=tf32"], "trainer.precision = tf32: needs a GPU"),
    "set without a value": (["--env", "cartpole", "--set", "trainer.lr"], "--set trainer.lr: must be section.key=value"),
    "unknown setting": (["--env", "cartpole", "--set", "trainer.num_env=3"], 'did you mean "num_envs"?'),
    "parameter out of range": (["trace", "--env", "tag_continuous", "--set", "env.num_taggers=0", "--script", "x", "--out", "y"], "env.num_taggers = 0: must be in [1, 16384]"),
    "no file": (["--config", "nowhere.yaml"], "nowhere.yaml: cannot be read: No such file or directory"),
    "trace without a script": (["trace", "--env", "cartpole"], "trace needs --script FILE and --out FILE"),
    "network": (["--env", "cartpole", "--set", "policy.shared.model.type=fully_conected"], 'must be one of fully_connected, gru; did you mean "fully_connected"?'),
    "bench mode": (["bench", "--env", "cartpole", "--mode", "trian"], 'did you mean "train"?'),
    "bench seconds": (["bench", "--env", "cartpole", "--seconds", "0"], "--seconds 0: must be in (0, 1e6]"),
    "eval without a run": (["eval"], "eval needs RUN, a run's folder"),
    "eval of no run": (["eval", "--run", "/"], "it has no config.yaml"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_ends_with_2_and_says_what_was_meant(case, tmp_path):
    arguments, message = WRONG[case]
    done = wdtrain(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done
    assert message in done.stderr
    assert done.stdout == ""
    assert not list(tmp_path.iterdir()), "nothing was begun"


def test_a_missing_gpu_ends_with_2_and_says_what_was_found():
    done = wdtrain("--env", "tag_continuous", "--device", "cuda", env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode == 2
    assert re.search(r"--device cuda: no GPU can be used: .+; use --device cpu", done.stderr)


def test_a_missing_gpu_that_a_file_asks_for_is_traced_to_its_line(tmp_path):
    (tmp_path / "mine.yaml").write_text("name: cartpole\ntrainer:\n  device: cuda\n")
    done = wdtrain("--config", tmp_path / "mine.yaml", env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode == 2
    assert re.search(r"mine.yaml:3: device cuda: no GPU can be used: ", done.stderr)


@pytest.mark.parametrize("command", [[], ["train"], ["eval"], ["bench"], ["envs"], ["trace"], ["check"]])
def test_help_lists_options(command):
    text = output(*command, "--help")
    assert "usage:" in text.lower()
    if command:
        assert "--help" in text
    assert max(map(len, text.splitlines())) <= 160


@pytest.mark.parametrize("command", ["train", "check"])
def test_help_may_stand_before_the_command(command):
    assert output("--help", command) == output(command, "--help")


def test_help_does_not_promise_several_settings_for_one_option():
    assert "SECTION.KEY=VALUE ..." not in output("train", "--help")


def test_help_names_every_command():
    text = output("--help")
    for command in ["train", "eval", "bench", "envs", "trace", "check"]:
        assert re.search(rf"^  {command} ", text, re.MULTILINE)


def test_version():
    assert re.fullmatch(r"wdtrain \d+\.\d+\.\d+\n", output("--version"))


def test_more_threads_than_make_sense_are_warned_of(tmp_path):
    (tmp_path / "in.json").write_text('{"actions": []}')
    for threads, warned in ((999, True), (4, False)):
        done = wdtrain("trace", "--env", "cartpole", "--threads", threads, "--script", tmp_path / "in.json", "--out", "-")
        assert done.returncode == 0
        found = re.search(r"warning: trainer.threads = 999: this process may use \d+ processors?; more threads", done.stderr)
        assert bool(found) == warned, done.stderr


def test_a_reader_that_leaves_is_no_error():
    command = f"set -o pipefail; {os.environ['WDTRAIN']} envs tag_continuous | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("tag_continuous: ")
