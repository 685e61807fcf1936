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
    "export almost": (["exprot"], 'did you mean "export"?'),
    "environment as command": (["cartpole"], 'did you mean "--env cartpole"?'),
    "environment": (["--env", "cart_pole"], 'unknown environment \'cart_pole\'; did you mean "cartpole"?'),
    "option": (["--env", "cartpole", "--num_env", "3"], 'unknown option --num_env; did you mean "--num_envs"?'),
    "a setting as an option": (["--env", "cartpole", "--lr", "1e-3"], "unknown option --lr; did you mean --set policy.shared.lr=1e-3?\n"),
    "a setting as an option, with =": (["train", "cartpole", "--lr=1e-3"], "did you mean --set policy.shared.lr=1e-3?\n"),
    "a setting of several policies": (["--env", "tag_continuous", "--lr", "1"], "did you mean --set policy.tagger.lr=1 or --set policy.runner.lr=1?\n"),
    "a setting without an environment": (["--lr", "1e-3"], "did you mean --set policy.NAME.lr=1e-3?\n"),
    "a setting almost": (["--env", "cartpole", "--num_epoch", "3"], "did you mean --set policy.shared.num_epochs=3?\n"),
    "a setting in several sections": (["--env", "cartpole", "--every", "3"], "did you mean --set eval.every=3 or --set play.every=3?\n"),
    "a setting for a shell": (["--env", "cartpole", "--fc_dims", "[64, 64]"], "did you mean --set 'policy.shared.model.fc_dims=[64, 64]'?\n"),
    "another library's option": (["--env", "cartpole", "--steps", "1000"], "unknown option --steps; did you mean --total_steps 1000?\n"),
    "another library's setting": (["--env", "cartpole", "--epochs", "3"], "did you mean --set policy.shared.num_epochs=3?\n"),
    "dashes": (["--env", "cartpole", "--max-seconds", "3"], "did you mean --max_seconds 3?\n"),
    "an option for a number": (["--env", "cartpole", "--sed", "3"], 'unknown option --sed; did you mean "--seed"?\n'),
    "an option for a setting": (["--env", "cartpole", "--sed", "a.b=3"], 'unknown option --sed; did you mean "--set"?\n'),
    "no such option": (["--env", "cartpole", "--zzzzzz", "3"], "unknown option --zzzzzz; see wdtrain train --help\n"),
    "the option of tests": (["--env", "cartpole", "--faul", "3"], "unknown option --faul; see wdtrain train --help\n"),
    "no such option of a command": (["eval", "x", "--lr", "3"], "unknown option --lr; see wdtrain eval --help\n"),
    "a key of a model": (["--env", "cartpole", "-s", "model.fc_dims=[64]"], 'model: unknown section; did you mean "policy.NAME.model.fc_dims"?\n'),
    "a key of another network": (["--env", "cartpole", "-s", "model.width=64"], 'model: unknown section; did you mean "policy.NAME.model.width"?\n'),
    "a key of a policy": (["--env", "cartpole", "-s", "shared.lr=1"], 'shared: unknown section; did you mean "policy.shared.lr"?\n'),
    "a key of a policy's model": (["--env", "cartpole", "-s", "shared.model.fc_dims=[1]"], 'did you mean "policy.shared.model.fc_dims"?\n'),
    "a section without quotes": (["--env", "cartpole", "--set", "policy={shared:", "{lr:", "1e-3}}"], "quote it: --set 'policy={shared: {lr: 1e-3}}'; see"),
    "a list without quotes": (["train", "--set=policy.shared.model.fc_dims=[64,", "64]", "-e", "cartpole"], "quote it: --set 'policy.shared.model.fc_dims=[64, 64]'; see"),
    "a word that is no environment": (["train", "cartpol"], 'there is no environment of that name; did you mean "cartpole"? ('),
    "two environments": (["train", "cartpole", "--env", "acrobot"], "give cartpole or --env acrobot, not both\n"),
    "two words": (["train", "cartpole", "acrobot"], "unexpected argument 'acrobot'; see wdtrain train --help\n"),
    "a week": (["--env", "cartpole", "--max_seconds", "1w"], "trainer.max_seconds = 1w: must be seconds, or as 90s, 10m, 1.5h, 1h30m, 01:30:00; in seconds [0, 1e9]\n"),
    "less than no time": (["--env", "cartpole", "--max_seconds=-1h"], "trainer.max_seconds = -1h: must be in [0, 1e9] seconds\n"),
    "a duration of an option": (["--env", "cartpole", "--step_seconds", "1x"], "--step_seconds 1x: must be seconds, or as 90s, 10m, 1.5h, 1h30m, 01:30:00; in seconds [0.1, 1e6]\n"),
    "the beginning of an option": (["--env", "cartpole", "--algo", "PPO"], 'unknown option --algo; did you mean "--algorithm"?\n'),
    "minutes": (["--env", "cartpole", "--max_minutes", "5"], "unknown option --max_minutes; did you mean --max_seconds 5m?\n"),
    "opponents as an option": (["--env", "cartpole", "--opponents", "runs/a"], "did you mean --set 'opponents.shared=[runs/a]'?\n"),
    "opponents as an option, of several": (["--env", "tag_gridworld", "--opponents", "runs/a"], "did you mean --set 'opponents.tagger=[runs/a]' or --set 'opponents.runner=[runs/a]'?\n"),
    "opponents within a policy": (["--env", "tag_gridworld", "--set", "policy.runner.opponents=[self]"], "policy.runner.opponents: unknown key; it is a section of its own, opponents: {NAME of the policy: [RUN, ...]}\n"),
    "seats": (["--env", "tag_gridworld", "--set", "policy={a: {seats: [tagger]}, runner: {}}"], 'policy.a.seats: unknown key; did you mean "agents"?\n'),
    "oneself, misspelled": (["--env", "tag_gridworld", "--set", "opponents.runner=[selfs]"], 'opponents.runner = [selfs]: selfs: is none of self, random, scripted, and no folder of a run or a checkpoint; did you mean "self"?\n'),
    "PyMARL's name": (["--env", "simple_spread", "--algorithm", "QMIX", "--set", "policy.shared.mixing_embed_dim=32"], 'unknown key; did you mean "mixer_dim"?\n'),
    "PyMARL's other name": (["--env", "simple_spread", "--algorithm", "QMIX", "--set", "policy.shared.hypernet_embed=64"], 'unknown key; did you mean "hypernet_dims"?\n'),
    "an algorithm that is not here": (["--env", "simple_spread", "--algorithm", "HAPPO"], "HAPPO is not here (docs/design/0035-teams.md): take MAPPO\n"),
    "MAPPO without a state": (["--env", "tag_gridworld", "--algorithm", "MAPPO"], "this environment has no stream of replicas (Spec::streams; in Python state() and state_space): take IPPO\n"),
    "QMIX without a state": (["--env", "tag_gridworld", "--algorithm", "QMIX"], "this environment has no stream of replicas (Spec::streams; in Python state() and state_space): take VDN or PQN-VDN\n"),
    "MAPPO without its state": (["--env", "simple_spread", "--algorithm", "MAPPO", "--set", "policy.shared.model.critic_reads=[observation]"], "name a stream of replicas, with separate_value: true, or take IPPO\n"),
    "a stream, almost": (["--env", "simple_spread", "--algorithm", "QMIX", "--set", "policy.shared.model.critic_reads=[sate]"], "which has observation, state, agent_id; did you mean \"state\"?"),
    "another part, almost": (["--env", "simple_spread", "--set", "policy.shared.model.reads=[observations]"], "which has observation, state, agent_id; did you mean \"observation\"?"),
    "a path of other letters": (["--env", "cartpole", "--run_dir", "runs/\udcff"], "saving.run_dir = 'runs/\\xff': must be UTF-8, paths too: give it another name\n"),
    "no such setting": (["config", "lrr"], "there is no setting 'lrr'; did you mean \"lr\"? ("),
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
    "network": (["--env", "cartpole", "--set", "policy.shared.model.type=fully_conected"], 'must be one of fully_connected, mingru, gru, lstm; did you mean "fully_connected"?'),
    "bench mode": (["bench", "--env", "cartpole", "--mode", "trian"], 'did you mean "train"?'),
    "bench seconds": (["bench", "--env", "cartpole", "--seconds", "0"], "--seconds 0: must be in (0, 1e6]"),
    "eval without a run": (["eval"], "eval needs RUN, a run's folder"),
    "eval of no run": (["eval", "--run", "."], "it has no config.yaml"),
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


def test_a_missing_gpu_of_evaluations_is_refused_before_training_begins(tmp_path):
    done = wdtrain("--env", "cartpole", "--device", "cpu", "--set", "eval.device=cuda", "--run_dir", tmp_path / "run",
                   env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode == 2 and not list(tmp_path.iterdir())
    assert re.search(r"--set: eval.device = cuda: no GPU can be used: .+: set it to cpu, or to same for the device of training", done.stderr), done.stderr


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


def test_help_of_training_has_groups_examples_and_the_way_to_settings():
    text = output("train", "--help")
    titles = re.findall(r"^(\w[\w ]*):$", text, re.M)
    assert sorted(titles) == sorted(["Positionals", "Run", "Machine", "Training", "Workers", "Time limits of workers", "Examples", "Other settings"])
    assert "--fault" not in text and "\n\n\n" not in text
    examples = text.split("Examples:\n")[1].split("\n\n")[0].splitlines()
    assert len(examples) == 3
    for way in ("wdtrain config ", "wdtrain envs NAME", "--print_config", "docs/configuration.md"):
        assert way in text.split("Other settings:\n")[1]
        assert way in output("--help")


def test_examples_of_the_help_are_accepted(tmp_path):
    lines = output("train", "--help").split("Examples:\n")[1].splitlines()[:2] + output("--help").split("Examples:\n")[1].splitlines()[:1]
    for line in lines:
        words = line.split("   into")[0].split()[1:]
        output(*words, "--print_config", cwd=tmp_path)


def test_an_environment_may_be_a_word(tmp_path):
    settings = output("train", "cartpole", "--print_config", "--seed", 3)
    assert settings == output("--env", "cartpole", "--print_config", "--seed", 3)
    assert settings == output("train", "--seed", 3, "cartpole", "--env", "cartpole", "--print_config")
    output("train", "cartpole", "--total_steps", 1024, "--run_dir", tmp_path / "run", "--quiet", "--device", "cpu")
    assert (tmp_path / "run" / "summary.json").exists()


@pytest.mark.parametrize("text, seconds", [("90", "90"), ("90s", "90"), ("10m", "600"), ("1h", "3600"), ("1.5h", "5400"), ("1d", "86400"), ("1k", "1000"), ("0", "0"), ("2m30s", "150"), ("01:30:00", "5400")])
def test_durations(tmp_path, text, seconds):
    (tmp_path / "mine.yaml").write_text(f"name: cartpole\ntrainer: {{max_seconds: {text}}}\n")
    for arguments in (["--env", "cartpole", "--max_seconds", text], ["--env", "cartpole", "--set", f"trainer.max_seconds={text}"], ["--config", tmp_path / "mine.yaml"]):
        assert re.search(rf"^  max_seconds: {seconds} ", output(*arguments, "--step_seconds", text if seconds != "0" else "1m", "--print_config"), re.M), arguments


def test_a_setting_is_explained():
    text = output("config", "policy.*.clip_param")
    assert text.startswith("policy.NAME.clip_param\n  meaning  ") and "\n  default  " in text and "PPO 0.2" in text
    assert text == output("config", "clip_param") == output("config", "policy.runner.clip_param") == output("config", "clip_range")
    assert output("config", "trainer.max_seconds") == "trainer.max_seconds\n  meaning  stop after this time [s]; 0: no limit\n  type     duration\n" \
        "  range    [0, 1e9]\n  default  0\n  set it   --set trainer.max_seconds=VALUE\n"
    assert output("config", "max_seconds").count("set it") == 2, "of training and of its search"
    assert "  default  20\n" in output("config", "env.grid_length", "--env", "tag_gridworld")
    assert "policy.shared.lr\n" in output("config", "lr", "--env", "cartpole")


def test_opponents_are_a_setting_like_others(tmp_path):
    text = output("config", "opponents")
    assert text.startswith("opponents.NAME\n  meaning  who acts in the place of this policy") and "  set it   --set opponents.NAME=VALUE\n" in text
    assert text == output("config", "opponents.runner")
    assert re.findall(r"^opponents\.\w+", output("config", "opponents", "--env", "tag_gridworld"), re.M) == ["opponents.tagger", "opponents.runner"]
    assert "opponents.NAME" not in output("config", "lr")
    assert re.search(r"^opponents:\n  shared: \[\] +# default$", output("--env", "cartpole", "--print_config"), re.M)
    output("train", "cartpole", "--total_steps", 1024, "--run_dir", tmp_path / "run", "--quiet", "--device", "cpu")
    assert "\nopponents:" not in (tmp_path / "run" / "config.yaml").read_text(), "another policy section would not fit it"
    assert r"\fBopponents.shared\fR" in output("man").replace("\\-", "-")


def test_all_settings_are_listed_with_the_keys_of_the_documentation():
    listed = [line.split()[0] for line in output("config").splitlines()[1:]]
    for path in ("trainer.num_envs", "policy.NAME.lr", "policy.NAME.model.fc_dims", "policy.NAME.model.width", "autoscale.objective"):
        assert path in listed
    keys = re.findall(r"^\| `(\w+)` \|", open(os.path.join(os.environ["WD_SOURCE_DIR"], "docs/configuration.md")).read().split("<!-- begin generated -->")[1], re.M)
    assert {path.rsplit(".", 1)[1] for path in listed} >= set(keys) - {"algorithm_settings"}


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
