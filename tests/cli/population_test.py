"""trainer.population: each member trains as it does alone, through failures, Ctrl-C and kills."""

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess

import pytest
import yaml

from checkpoint.runs import left, wait_for
from cli.program import OnDemand, output, wdtrain

ITERATIONS, LONG = 40, 150
COMMON = ["--device", "cpu", "--num_envs", 8, "--train_batch_size", 64, "--set", "saving.checkpoint_freq=5", "--set", "saving.metrics_log_freq=1"]
CARTPOLE = ["train", "cartpole", *COMMON, "--stop_return", "none", "--total_steps"]  # add how many
SHORT = [*CARTPOLE, 64 * ITERATIONS]
THREE = [*SHORT, "--set", "trainer.population=3"]


def sets(*settings):
    return [word for setting in settings for word in ("--set", setting)]


def members_of(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.isdigit())


def iterations(folder):
    """Those whose lines are whole: the last one may be on its way, or have been cut by a kill."""
    with contextlib.suppress(FileNotFoundError):
        whole = (folder / "metrics.jsonl").read_text().rpartition("\n")[0]
        return [json.loads(line)["iteration"] for line in whole.splitlines()]
    return []


def starts(folder):
    return len((folder / "starts.jsonl").read_text().splitlines())


def summary(folder):
    return json.loads((folder / "summary.json").read_text())


def settings(folder):
    config = yaml.safe_load((folder / "config.yaml").read_text())
    del config["saving"]["run_dir"]
    return config


def begin(*words):
    return subprocess.Popen([os.environ["WDTRAIN"], *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def is_like_alone(member, alone):
    assert settings(member) == settings(alone)
    assert iterations(member) == iterations(alone)
    assert left(member) == left(alone)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Single trainings: "0", with the seed of member 0, and "0 of two workers"."""
    def train(name, folder):
        member, workers = name[0], [] if len(name) == 1 else ["--num_workers", 2]
        output(*SHORT, *workers, "--seed", 1 + int(member), "--run_dir", folder, "--quiet")
    return OnDemand(tmp_path_factory.mktemp("alone"), train)


# --- bits -----------------------------------------------------------------------------------------------------

TRAININGS = {
    "cartpole_ppo": ["cartpole", *sets("policy.shared.normalize_value=true", "policy.shared.normalize_reward=true")],
    "pendulum_a2c": ["pendulum", "--algorithm", "A2C"],
    "two_policies": ["simple_tag", *sets("policy.adversary.model.fc_dims=[16]", "eval.every=4")],
}


@pytest.mark.parametrize("name", TRAININGS)
def test_members_have_the_bits_of_single_trainings(name, tmp_path):
    words = ["train", *TRAININGS[name], *COMMON, "--stop_return", "none", "--total_steps", 64 * 12]
    text = output(*words, *sets("trainer.population=8"), "--seed", 5, "--run_dir", tmp_path / "all of them")
    for member in (0, 3, 7):
        output(*words, "--seed", 5 + member, "--run_dir", tmp_path / str(member), "--quiet")
        is_like_alone(tmp_path / "all of them" / str(member), tmp_path / str(member))
    assert members_of(tmp_path / "all of them") == list("01234567")
    ends = [json.dumps(left(tmp_path / "all of them" / member)[0][-1]) for member in "01234567"]
    assert len(set(ends)) == 8, "each member has its own seed"
    assert "8 of 8 done, 0 running, 0 failed | 6.14k of 6.14k steps" in text
    for member in "07":
        linked = tmp_path / "all of them" / "weights" / member
        assert os.readlink(linked) == f"../{member}/weights" and linked.is_dir()


BY_MEMBER = {
    "policy.shared.lr": [1e-3, 3e-4, 3e-3], "policy.shared.entropy_coeff": [0.0, 0.01, 0.03], "policy.shared.clip_param": [0.1, 0.2, 0.3],
    "policy.shared.gamma": [0.9, 0.99, 0.95], "policy.shared.gae_lambda": [0.8, 0.95, 1.0], "env.length": [0.25, 0.5, 1.0],
    "env.episode_length": [20, 500, 37], "trainer.seed": [9, 9, 4],
}


def test_settings_by_member_are_those_of_single_trainings(tmp_path):
    words = [*SHORT, *sets("policy.shared.normalize_value=true", "policy.shared.normalize_reward=true", "policy.shared.model.normalize_input=true", "eval.every=10")]
    output(*words, *sets("trainer.population=3", *(f"members.{path}={values}" for path, values in BY_MEMBER.items())), "--run_dir", tmp_path / "all", "--quiet")
    for member in range(3):
        own = sets(*(f"{path}={values[member]}" for path, values in BY_MEMBER.items()))
        output(*words, *own, "--run_dir", tmp_path / str(member), "--quiet")
        is_like_alone(tmp_path / "all" / str(member), tmp_path / str(member))
    written = yaml.safe_load((tmp_path / "all" / "config.yaml").read_text())
    assert written["trainer"]["population"] == 3 and written["members"]["policy.shared.lr"] == BY_MEMBER["policy.shared.lr"]


def test_a_file_gives_settings_by_member_too(tmp_path):
    (tmp_path / "some.yaml").write_text("name: cartpole\ntrainer: {population: 2}\nmembers: {policy: {shared: {lr: [1e-3, 2e-3]}}, trainer.seed: [3, 1]}\n")
    output("train", "--config", tmp_path / "some.yaml", *COMMON, "--total_steps", 640, "--run_dir", tmp_path / "run", "--quiet")
    configs = [settings(tmp_path / "run" / member) for member in "01"]
    assert [(one["policy"]["shared"]["lr"], one["trainer"]["seed"]) for one in configs] == [(1e-3, 3), (2e-3, 1)]


def test_members_that_reach_the_return_end_and_others_go_on(tmp_path):
    words, lengths = ["train", "cartpole", *COMMON, "--stop_return", 9.5, "--total_steps", 64 * ITERATIONS], [12, 500, 30, 10]
    text = output(*words, *sets("trainer.population=4", f"members.env.episode_length={lengths}"), "--run_dir", tmp_path / "all")
    ended = [iterations(tmp_path / "all" / member)[-1] for member in "0123"]
    assert ended[3] < ended[0] < ended[1] == ITERATIONS, ended
    for member, length in enumerate(lengths):
        output(*words, *sets(f"env.episode_length={length}"), "--seed", 1 + member, "--run_dir", tmp_path / str(member), "--quiet")
        is_like_alone(tmp_path / "all" / str(member), tmp_path / str(member))
    assert text.count("stop_return 9.5: reached by 1 of 1 member") == 2 and "4 of 4 done" in text


# --- kills and signals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["auto", "run"])
def test_killed_at_any_moment_it_goes_on_to_the_same_results(how, alone, tmp_path):
    folder, chance = tmp_path / "run", random.Random(how)

    def command():
        if how == "run" and (folder / "config.yaml").exists():
            return ["train", "--resume", folder, "--quiet"]
        return [*THREE, "--run_dir", folder, "--resume", "auto", "--quiet"]

    def made():
        return sum(len(iterations(folder / member)) for member in "012")

    for _ in range(4):
        process, wanted = begin(*command()), made() + chance.randrange(30)
        wait_for(lambda process=process, wanted=wanted: made() > wanted or process.poll() is not None)
        process.kill()
        process.communicate()
    assert output(*command()) == ""
    for member in "012":
        is_like_alone(folder / member, alone / member)
        assert iterations(folder / member) == list(range(1, ITERATIONS + 1))
    before = [starts(folder / member) for member in "012"]
    assert output(*command()) == "" and [starts(folder / member) for member in "012"] == before, "what has finished begins no more"


def test_a_member_goes_on_alone(alone, tmp_path):
    process = begin(*THREE, "--run_dir", tmp_path / "run", "--quiet")
    wait_for(lambda: len(iterations(tmp_path / "run" / "1")) > 5)
    process.kill()
    process.communicate()
    output("train", "--resume", tmp_path / "run" / "1", "--quiet")
    is_like_alone(tmp_path / "run" / "1", alone / "1")


def test_ctrl_c_ends_all_that_have_begun_in_good_order(tmp_path):
    folder = tmp_path / "some run"
    words = [*CARTPOLE, 64 * LONG, "--threads", 2]
    process = begin(*words, *sets("trainer.population=3"), "--run_dir", folder)
    wait_for(lambda: all(len(iterations(folder / member)) > 3 for member in "01"))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert f"--resume '{folder}' goes on\n" in err and "0 failed" in out and "member 2 | waiting" in out
    for member in "01":
        assert (summary(folder / member)["status"], summary(folder / member)["stop_reason"]) == ("stopped", "signal")
        assert int(os.readlink(folder / member / "checkpoints" / "latest").split("_")[-1]) == iterations(folder / member)[-1] < LONG
    assert not (folder / "2").exists()
    output("train", "--resume", folder, "--quiet")
    for member in "012":
        assert iterations(folder / member) == list(range(1, LONG + 1))
    output(*words, "--seed", 2, "--run_dir", tmp_path / "1", "--quiet")
    is_like_alone(folder / "1", tmp_path / "1")


# --- workers --------------------------------------------------------------------------------------------------


def test_members_of_two_workers_go_on_after_a_kill_and_a_restart(alone, tmp_path):
    words = [*THREE, "--num_workers", 2, "--run_dir", tmp_path / "run", "--quiet"]
    killed = wdtrain(*words, "--fault", "rank=0,iter=7,kind=kill")
    assert killed.returncode == 137 and len(iterations(tmp_path / "run" / "0")) < 10
    output("train", "--resume", tmp_path / "run", "--num_workers", 2, "--quiet", "--max_restarts", 1, "--fault", "rank=1,iter=23,kind=kill")
    for member in "02":
        is_like_alone(tmp_path / "run" / member, alone / f"{member} of two workers")
    for member in "012":
        assert iterations(tmp_path / "run" / member) == list(range(1, ITERATIONS + 1)) and starts(tmp_path / "run" / member) == 3


def test_a_member_that_fails_ends_its_worker(tmp_path):
    (tmp_path / "run" / "1").mkdir(parents=True)
    (tmp_path / "run" / "1" / "precious").write_text("x")
    done = wdtrain(*THREE, "--num_workers", 2, "--run_dir", tmp_path / "run", "--resume", "auto", "--quiet", timeout=60)
    assert done.returncode == 2 and "member 1: this member has failed" in done.stderr and "it holds precious" in done.stderr, done.stderr


# --- failures -------------------------------------------------------------------------------------------------


def test_a_member_that_fails_is_named_and_the_others_end(alone, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(alone / "1", folder / "1")
    for path in (folder / "1" / "checkpoints").glob("*/manifest.json"):
        path.write_text("{}")
    done = wdtrain(*THREE, "--run_dir", folder, "--resume", "auto")
    assert done.returncode == 1 and re.search(r"^error: member 1: .*checkpoints can be read", done.stderr, re.M), done.stderr
    assert re.search(r"^member 1 \| failed", done.stdout, re.M) and "2 of 3 done, 0 running, 1 failed" in done.stdout
    for member in "02":
        is_like_alone(folder / member, alone / member)


def test_a_folder_of_something_else_is_left_alone(alone, tmp_path):
    (tmp_path / "run" / "1").mkdir(parents=True)
    (tmp_path / "run" / "1" / "precious").write_text("x")
    done = wdtrain(*THREE, "--run_dir", tmp_path / "run", "--resume", "auto", "--quiet")
    assert done.returncode == 2 and re.search(r"^error: member 1: .* is not empty \(it holds precious\)", done.stderr, re.M), done.stderr
    assert os.listdir(tmp_path / "run" / "1") == ["precious"]
    is_like_alone(tmp_path / "run" / "2", alone / "2")
    refused = wdtrain(*THREE, "--run_dir", tmp_path / "run", "--quiet")
    assert refused.returncode == 2 and "is not empty" in refused.stderr and starts(tmp_path / "run" / "2") == 1


@pytest.mark.parametrize("more, words", [
    (sets("members.policy.shared.lr=[1e-3]"), "has 1 values, and trainer.population is 3"),
    (sets("members.policy.shared.lr=1e-3"), "must be a list with a value for each member"),
    (sets("members.policy.shared.lrr=[1, 2, 3]"), "members.policy.shared.lrr, member 0: policy.shared.lrr: unknown key"),
    (sets("members.policy.other.lr=[1, 2, 3]"), "no policy of that name; known: shared"),
    (sets("members.env.lenght=[1, 2, 3]"), "env.lenght: unknown key"),
    (sets("members.policy.shared.lr=[1e-3, 1e-3, 1e30]"), "members.policy.shared.lr, member 2: policy.shared.lr = 1e30: must be in [0, 10]"),
    ([*sets("members.env.length=[1, 2, -1]"), "--num_workers", 2], "members.env.length, member 2: env.length = -1: must be in"),
    (sets("members.trainer.total_steps=[1, 2, 3]"), "only settings of env and policy and trainer.seed may differ"),
    ([*sets("members.policy.shared.lr=[1, 2]", "trainer.population=0")], "has 2 values, and trainer.population is 0"),
    (["--seeds", "1..2"], "trainer.population excludes --seeds"), (["--auto_scale"], "trainer.population excludes --auto_scale"),
    (["--profile"], "trainer.population excludes --profile"), (["--strict_device"], "trainer.population excludes --strict_device"),
    (["--strict_device", "--num_workers", 2], "trainer.population excludes --strict_device"),
    (sets("trainer.population=-1"), "must be in [0, 1000]"), (["--resume", "nowhere"], "nowhere"),
])
def test_what_is_wrong_is_one_error_and_begins_nothing(more, words, tmp_path):
    done = wdtrain("train", "cartpole", "--device", "cpu", *sets("trainer.population=3"), *more, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("error: ")) == (2, "", 1), done.stderr
    assert words in done.stderr and not list(tmp_path.iterdir()), done.stderr


# --- commands about them --------------------------------------------------------------------------------------


def test_commands_tell_a_population_from_a_run(tmp_path):
    output(*CARTPOLE, 640, *sets("trainer.population=2", "members.policy.shared.lr=[1e-3, 2e-3]"), "--quiet", cwd=tmp_path)
    (folder,) = (tmp_path / "runs" / "cartpole").iterdir()
    assert re.fullmatch(r"\d{8}-\d{6}-population", folder.name)
    for words in (["eval", folder], ["status", folder], ["play", "--run", folder], ["train", "cartpole", "--warm_start", folder]):
        done = wdtrain(*words)
        assert done.returncode == 2 and f"{folder}: holds 2 runs: name one of them" in done.stderr, done.stderr
    assert len(re.findall(r"^[01] +finished +cartpole", output("list", folder), re.M)) == 2
    assert "2 runs in 2 groups" in output("report", folder, cwd=tmp_path) and (tmp_path / "report.html").stat().st_size > 1000
    assert "episodes" in output("eval", folder / "1", "--episodes", 2)
    assert re.search(r"population: 2\b", output("train", "--resume", folder, "--print_config"))
    assert "folder RUN/k" in output("config", "trainer.population") and "for each member of trainer.population" in output("config", "members.policy.shared.lr")
