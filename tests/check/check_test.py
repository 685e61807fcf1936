"""`wdtrain check` accepts environments that keep the contract, and detects every broken rule."""

import os
import pathlib
import re
import subprocess
import time

import pytest
from cli.program import SANITIZED

FAULTY = pathlib.Path(os.environ["WD_BUILD_DIR"]) / "faulty"


def check(program, *arguments):
    command = [str(program), "check", "--device", "cpu", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert SANITIZED or done.stderr == "", done.stderr
    return done.returncode, done.stdout


def failed(output):
    """The failed checks and their messages."""
    lines = [line.removeprefix("FAILED").strip() for line in output.splitlines() if line.startswith("FAILED")]
    return "\n".join(lines)


# The checks that must fail and the messages they must print.
FAULTS = {
    "push": ["phases backward", "phases shuffled", "the reward"],
    "neighbour": ["phases backward", "state field 'x' of agent"],
    "outside": ["phases on three threads", "state field 'moves'"],
    "unwritten": ["rows are complete", "player 2: observation entry 2 (part 'others') is not written"],
    "overrun": ["indices stay inside of arrays", "step 0: observation value 4 of player 6 is used: observation values are 0 to 3, by observe(), phase 1, i = 6"],
    "nan": ["rows are complete", "player 5: observation entry 0 (part 'x') is"],
    "mask": ["rows are complete", "player 1: the action mask forbids every choice of head 0"],
    "residue": ["a reset leaves no residue", "state field 'score' of agent 3"],
    "unset": ["a reset leaves no residue", "state field 'food' [8] is"],
    "scratch": ["phases backward", "the reward"],
    "hidden": ["the state is all there is", "state field 'moves'"],
    "derive": ["derive() agrees with reset()", "state field 'score'"],
    "before": ["indices stay", "step 1: state field 'x' is used at agent -1: agents are 0 to 6, by step(), phase 2, i = 0"],
    "behind": ["indices stay", "step 1: state field 'score' is used at agent 7: agents are 0 to 6, by step(), phase 2, i = 6"],
    "late": ["indices stay", "state field 'score' is used at agent 7: agents are 0 to 6, by step(), phase 2, i = 6"],
    "far": ["indices stay", "state field 'x' is used at agent 100000000: agents are 0 to 6, by step(), phase 2, i = 1"],
    "beyond_scratch": ["indices stay", "state field 'total' is used at index 1: there is index 0 alone, by step(), phase 5"],
    "beyond_array": ["indices stay", "state field 'food' is used at index 9: indices are 0 to 8, by step(), phase 4, i = 8"],
    "nobodys_reward": ["indices stay", "outcome.reward(7) is used: agents are 0 to 6, by step(), phase 2, i = 6"],
    "nobodys_row": ["indices stay", "observation values of player 7 are used: players are 0 to 6, by observe(), phase 1, i = 6"],
    "far_entry": ["indices stay", "by observe(), phase 1, i = 0"],
    "mask_entry": ["indices stay", "action mask value 3 of player 0 is used: action mask values are 0 to 2, by observe(), phase 1, i = 0"],
    "no_mask": ["indices stay", "a null pointer is used: obs.action_mask() of a role that declares no action_mask, as player, is null, by observe()"],
    "head": ["indices stay", "actions.discrete(0, 1) is read: 1 head is all that a player has, by step(), phase 2, i = 0"],
    "nobodys_action": ["indices stay", "actions.discrete(7, 0) is read: agents are 0 to 6, by step(), phase 2, i = 6"],
    "kind": ["indices stay", "actions.continuous(0, 0) is read: the actions of players are discrete, by step(), phase 2, i = 0"],
    "box": ["indices stay", "actions.discrete(0, 0) is read: the actions of players are continuous, by step(), phase 2, i = 0"],
    "component": ["indices stay", "actions.continuous(0, 1) is read: 1 component is all that a player has, by step(), phase 2, i = 0"],
    "mixed": ["indices stay", "or the action of another kind or head, affects the result: replica 0: state field 'x' of agent 3"],
    "division": ["indices stay", "an integer is divided by 0, by step(), phase 2, i = "],
    "twins": ["settings have their own variables", "settings 'size' and 'food' change the same variable"],
    "statistic": ["the specification is consistent", "'mvoes' is not a state field"],
}


# Faults that a sanitizer reports itself, on stderr, before the check can.
STOPPED_BY_SANITIZER = ["no_mask", "division"] if SANITIZED else []


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in STOPPED_BY_SANITIZER])
def test_every_fault_is_found(fault):
    code, output = check(FAULTY, "--env", "faulty", "--set", f"env.fault={fault}")
    assert code == 1, output
    for words in FAULTS[fault]:
        assert words in failed(output), output


def line_of(text, source="racy.cu"):
    """Where racy.cu has this text, as messages say it."""
    lines = (pathlib.Path(os.environ["WD_SOURCE_DIR"]) / "tests/check" / source).read_text().splitlines()
    (number,) = [k + 1 for k, line in enumerate(lines) if text in line]
    return f"{source}:{number}"


def warned(fault):
    """What the check warns of, in an environment that keeps the contract."""
    code, output = check(FAULTY, "--env", "faulty", "--set", f"env.fault={fault}")
    assert code == 0 and "FAILED" not in output, output
    return [line for line in output.splitlines() if line.startswith("warning")], output


@pytest.mark.skipif(SANITIZED, reason="builds with a sanitizer have no emulated GPU")
def test_a_random_number_that_is_drawn_twice_is_named_with_both_places():
    (line,), _ = warned("purpose")
    assert "each random number is drawn once" in line
    assert re.search(r"reset\(\) draws agent \d, purpose 0 twice", line), line
    for place in ("s.x[i] = random", "kPurpose) s.score"):
        assert line_of(place, "faulty.cu") in line, line


def test_the_range_of_every_part_of_the_observation_is_shown():
    none, output = warned("none")
    assert none == [], output
    rows = re.findall(r"^ +player: (\w+) +minimum (\S+) +mean (\S+) +maximum (\S+)$", output, re.M)
    assert [name for name, *_ in rows] == ["x", "others", "score"]
    for name, *numbers in rows:
        low, mean, high = map(float, numbers)
        assert 0 <= low < mean < high, (name, numbers)
    (_, low, _, high), (_, others_low, _, others_high), _ = rows
    assert (low, high) == (others_low, others_high)  # the same numbers, of other agents


@pytest.mark.parametrize("fault, words", [("constant", "part 'score' of player: it is always 0.5"), ("huge", "part 'score' of player: reaches ")])
def test_constants_and_huge_numbers_of_the_observation_are_named(fault, words):
    (line,), output = warned(fault)
    assert "observations change, none is huge" in line and words in line, output


# Races that change no bit on the CPU, and the words that must be reported: data, both items, the line.
RACES = {
    "flag": ["state field 'flag'", "f(0) writes it", "f(1) writes it", line_of("p.race == kFlag")],
    "late": ["state field 'flag'", "writes it", line_of("p.race == kFlag")],
    "last": ["state field 'flag'", "writes it", line_of("p.race == kFlag")],
    "count": ["state field 'moves'", line_of("p.race == kCount")],
    "max": ["state field 'best'", line_of("p.race == kMax")],
    "twins": ["state field 'seen' of agent 1", "f(0) writes it", "f(1) writes it", line_of("p.race == kTwins")],
    "rewrite": ["state field 'x' of agent", "reads it", "writes it", line_of("p.race == kRewrite")],
    "array": ["state field 'cells' [1]", "f(0) writes it", line_of("p.race == kArray")],
    "scratch": ["scratch field 'limit'", line_of("p.race == kScratch")],
    "reward": ["scratch memory of the executor", line_of("p.race == kReward")],
    "row": ["the observation of player", "racy.cu:"],
    "pair": ["state field 'seen' of agent 0", "f(0, 0) writes it", "f(0, 1) writes it", line_of("p.race == kPair")],
    "plain": ["state field 'flag'", line_of("p.race == kPlain")],
}


@pytest.mark.skipif(SANITIZED, reason="builds with a sanitizer look for no races")
@pytest.mark.parametrize("race", RACES)
def test_every_race_is_found_on_the_emulated_gpu(race):
    code, output = check(FAULTY, "--env", "racy", "--set", f"env.race={race}")
    assert code == 1, output
    # Real threads come upon some of them by chance.
    failures = [line for line in output.splitlines() if line.startswith("FAILED") and "on three threads" not in line]
    assert len(failures) == 1 and "the emulated GPU" in failures[0], output  # no other check sees it
    for words in RACES[race]:
        assert words in failures[0], failures[0]


@pytest.mark.skipif(SANITIZED, reason="builds with a sanitizer look for no races")
def test_a_game_without_races_passes_on_the_emulated_gpu():
    code, output = check(FAULTY, "--env", "racy")
    assert code == 0, output
    assert re.search(r"^ok +the emulated GPU: races, same bits +\d+ steps", output, re.M), output


@pytest.mark.skipif(SANITIZED, reason="builds with a sanitizer have no modules for the emulated GPU")
def test_no_module_is_loaded_from_the_working_folder(tmp_path):
    """The program is found through PATH, so the word that starts it has no folder."""
    (tmp_path / "wd_emulated").mkdir()
    source = '#include <stdio.h>\n__attribute__((constructor)) static void load(void) { puts("planted"); }'
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", tmp_path / "wd_emulated" / "racy.so"], input=source, text=True, check=True)
    path = {**os.environ, "PATH": f"{FAULTY.parent}:{os.environ['PATH']}"}
    done = subprocess.run([FAULTY.name, "check", "--device", "cpu", "--env", "racy"], capture_output=True, text=True, cwd=tmp_path, env=path, timeout=120)
    assert done.returncode == 0 and "planted" not in done.stdout, done.stdout
    assert re.search(r"^ok +the emulated GPU", done.stdout, re.M), done.stdout


# Calls that do not end, and the location that must be reported.
ENDLESS = {
    "loop": "step 1: step(), phase 1: has not ended for 5 s",
    "apart": "phases on three threads, which must all come to the same phases: has not ended for 5 s",
}


@pytest.mark.parametrize("fault", ENDLESS)
def test_a_call_that_does_not_end_is_named_and_ended(fault):
    begin = time.monotonic()
    code, output = check(FAULTY, "--env", "faulty", "--set", f"env.fault={fault}", "--seconds", "1")
    assert code == 1, output
    assert "every call ends" in failed(output) and ENDLESS[fault] in failed(output), output
    assert output.endswith("faulty has faults\n")
    assert time.monotonic() - begin < 60


def test_a_difference_is_shown_with_digits_that_differ_and_its_usual_cause():
    _, output = check(FAULTY, "--env", "faulty", "--set", "env.fault=push")
    for line in failed(output).splitlines():
        if line.startswith("the emulated GPU"):  # it finds the race before a difference
            continue
        x, y = re.search(r" is (\S+), and ([^;]+)", line).groups()
        assert x != y, line
        assert line.endswith("; a phase reads or writes what another of its iterations writes") or "three threads" in line


def test_columns_are_in_line():
    _, output = check(FAULTY, "--env", "faulty")
    for line in output.splitlines():
        assert line[43:45] == "  " and line[45] != " ", output


def test_without_a_fault_it_passes():
    code, output = check(FAULTY, "--env", "faulty")
    assert code == 0, output
    assert "FAILED" not in output
    assert output.count("ok ") >= 10


@pytest.mark.parametrize("env", ["acrobot", "cartpole", "continuous_mountain_car", "foraging", "memory_chain", "mountain_car", "pendulum", "simple_adversary",
                                 "simple_reference", "simple_speaker_listener", "simple_spread", "simple_tag",
                                 "t_maze", "tag_continuous", "tag_gridworld"])
def test_our_environments_pass(env):
    code, output = check(os.environ["WDTRAIN"], "--env", env, "--seconds", "5")
    assert code == 0, output


@pytest.mark.parametrize("settings", [["env.observe_self=false"], ["env.use_full_observation=false", "trainer.observations=rows"], ["env.observe_self=false", "env.use_full_observation=false", "trainer.observations=rows"], ["env.runner_exits_game_after_tagged=false"]])
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


def check_algorithm(name, *arguments):
    return check(FAULTY, "--algorithm", name, *arguments)


@pytest.mark.parametrize("name, env", [("PPO", "cartpole"), ("DQN", "cartpole"), ("TD3", "pendulum"), ("BASELINE", "cartpole")])
def test_algorithms_resume_and_share_their_work(name, env):
    """BASELINE is one of the program's own, whose value is learned by torch's autograd."""
    code, output = check_algorithm(name)
    assert code == 0, output
    assert re.search(rf"^ok +it learns +{env}: ", output, re.M), output
    assert re.search(r"^ok +resumed equals uninterrupted +\d+ tensors after \d+ and \d+ iterations, bit by bit$", output, re.M), output
    assert re.search(r"^ok +two workers equal one +within \S+ of what training changed", output, re.M), output


OWN_FAULTS = {
    "state": ["resumed equals uninterrupted", "tensors differ after 2 and 2 iterations (", "Algorithm::state() names first_moment", "add what else"],
    "sum": ["two workers equal one", " of what training changed after 1 iteration", "over all workers"],
    "autograd": ["it learns", "training in cartpole fails: element 0 of tensors does not require grad"],
    "idle": ["it learns", "change no weight", "learn_at_once()"],
}


@pytest.mark.parametrize("fault", OWN_FAULTS)
def test_every_fault_of_an_algorithm_is_found(fault):
    code, output = check_algorithm("BASELINE", "--env", "cartpole", "--set", f"policy.shared.fault={fault}")
    assert code == 1 and output.endswith("BASELINE has faults\n"), output
    found = failed(output)
    assert len(found.splitlines()) == 1, output
    for words in OWN_FAULTS[fault]:
        assert words in found, output
