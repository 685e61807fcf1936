"""`wdtrain check` passes environments that keep the contract, and notices every rule that one breaks."""

import os
import pathlib
import subprocess

import pytest

FAULTY = pathlib.Path(os.environ["WD_BUILD_DIR"]) / "faulty"


def check(program, *arguments):
    command = [str(program), "check", "--device", "cpu", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stderr == "", done.stderr
    return done.returncode, done.stdout


def failed(output):
    """What failed, and with what words."""
    lines = [line.removeprefix("FAILED").strip() for line in output.splitlines() if line.startswith("FAILED")]
    return "\n".join(lines)


# Which checks must fail, and what they must say.
FAULTS = {
    "push": ["phases backward", "phases shuffled", "the reward"],
    "neighbour": ["phases backward", "state field 'x' of agent"],
    "outside": ["phases on three threads", "state field 'moves'"],
    "unwritten": ["rows are complete", "player 2: observation entry 2 (part 'others') is not written"],
    "overrun": ["rows are complete", "player 6: observation entry 4, which is past the row's end was written"],
    "nan": ["rows are complete", "player 5: observation entry 0 (part 'x') is"],
    "mask": ["rows are complete", "player 1: the action mask forbids every choice of head 0"],
    "residue": ["a reset leaves no residue", "state field 'score' of agent 3"],
    "scratch": ["phases backward", "the reward"],
    "hidden": ["the state is all there is", "state field 'moves'"],
    "derive": ["derive() agrees with reset()", "state field 'score'"],
    "statistic": ["the specification is consistent", "'mvoes' is no state field"],
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_found(fault):
    code, output = check(FAULTY, "--env", "faulty", "--set", f"env.fault={fault}")
    assert code == 1, output
    for words in FAULTS[fault]:
        assert words in failed(output), output


def test_without_a_fault_it_passes():
    code, output = check(FAULTY, "--env", "faulty")
    assert code == 0, output
    assert "FAILED" not in output
    assert output.count("ok ") >= 10


@pytest.mark.parametrize("env", ["cartpole", "pendulum", "simple_tag", "tag_continuous", "tag_gridworld"])
def test_our_environments_pass(env):
    code, output = check(os.environ["WDTRAIN"], "--env", env, "--seconds", "5")
    assert code == 0, output


@pytest.mark.parametrize("settings", [["env.use_full_observation=false"], ["env.runner_exits_game_after_tagged=false"]])
def test_variants_of_tag_continuous_pass(settings):
    arguments = [part for setting in settings for part in ("--set", setting)]
    size = ["--set", "env.num_runners=20", "--set", "env.tagging_distance=0.1"]
    code, output = check(os.environ["WDTRAIN"], "--env", "tag_continuous", *size, *arguments)
    assert code == 0, output


def test_training_names_the_agent_whose_mask_forbids_everything(tmp_path):
    done = subprocess.run([str(FAULTY), "--env", "faulty", "--set", "env.fault=mask", "--run_dir", str(tmp_path / "run"), "--num_envs", "4",
                           "--train_batch_size", "80", "--total_steps", "800", "--device", "cpu", "-q"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert ("error: policy 'player': the action mask forbids every choice of head 0 in step 0 of the rollout, replica 0, agent 1, in iteration 1; "
            "nothing was learned from it: look at the environment with `faulty check`") in done.stderr


def test_only_so_long_as_asked():
    code, output = check(FAULTY, "--env", "faulty", "--steps", "25")
    assert code == 0
    assert "25 steps of" in output
