"""Completion and the manual page: real shells complete words, zsh and fish if they are there."""

import json
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import time

import pytest

from cli.program import output, wdtrain

ASK = """
source "$1"
COMP_LINE=$2 COMP_POINT=${#2}
_wdtrain_complete
printf '%s\\n' "${COMPREPLY[@]}"
"""

# The widgets of zsh work in an editor only: this prints what they are given.
ASK_ZSH = """
compset() { if [[ $PREFIX == --*=* ]]; then PREFIX=${PREFIX#*=}; fi; }
compdef() { }
_describe() { print -rl -- ${${(P)2}%%:*}; print -r -- "(${@[3,-1]})"; }
_files() { print -r -- "_files $@"; }
compadd() { print -rl -- ${(P)${@[-1]}}; }
source $1
words=(${(z)2}); CURRENT=$#words PREFIX=$words[-1]
_wdtrain
"""

ASK_FISH = "source $argv[1]; complete -C $argv[2]"


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scripts")
    for shell in ("bash", "zsh", "fish"):
        (folder / shell).write_text(output("completion", shell))
    (folder / "wdtrain.1").write_text(output("man"))
    return folder


@pytest.fixture
def in_shell(scripts, tmp_path):
    """Runs a script of a shell, with the arguments, in a folder that is in PATH and has the program."""
    (tmp_path / "wdtrain").symlink_to(pathlib.Path(os.environ["WDTRAIN"]).resolve())
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}

    def run(shell, script, *arguments):
        if not shutil.which(shell):
            pytest.skip(f"there is no {shell}")
        command = {"bash": ["bash", "--norc", "-c", script, "bash"], "zsh": ["zsh", "-f", "-c", script, "zsh"], "fish": ["fish", "--no-config", "-c", script]}[shell]
        done = subprocess.run([*command, scripts / shell, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout.splitlines()
    run.environment = environment
    return run


@pytest.fixture
def complete(in_shell):
    return lambda line: [word for word in in_shell("bash", ASK, line) if word]


def answer(*words, **settings):
    """The kind, and the candidates with their descriptions."""
    kind, *lines = output("complete", *words, **settings).splitlines()
    return kind, dict((line + "\t").split("\t")[:2] for line in lines)


def commands():
    return re.findall(r"^  (\w+) ", output("--help").split("\n\n")[2], re.M)


def options(command):
    """The options that --help lists."""
    return set(re.findall(r"(?:^  |,)(--?\w+)", output(command, "--help"), re.M))


def environments():
    return [one["name"] for one in json.loads(output("envs", "--json"))]


def test_every_command_and_option_of_the_help_is_completed_and_in_the_manual(scripts, complete):
    names = commands()
    assert {"train", "eval", "doctor", "reproduce", "completion", "man"} <= set(names)
    assert list(answer("")[1]) == complete("wdtrain ") == [*names, "export", "convert", "sweep"]
    manual = (scripts / "wdtrain.1").read_text().replace("\\-", "-")
    for command in names:
        listed = options(command)
        assert "--help" in listed
        assert set(answer(command, "-")[1]) == listed, command
        section = manual.split(f"\n.SH WDTRAIN {command.upper()}\n")[1].split("\n.SH ")[0]
        assert {name for name in re.findall(r"\\fB(--?\w+)\\fR", section)} == listed, command


@pytest.mark.parametrize("line, expected", [
    ("wdtrain d", ["doctor"]),
    ("./wdtrain do", ["doctor"]),
    ("wdtrain --vers", ["--version"]),
    ("wdtrain --num_e", ["--num_envs"]),
    ("wdtrain train --num_e", ["--num_envs"]),
    ("wdtrain --env tag_c", ["tag_continuous"]),
    ("wdtrain --env=tag_c", ["tag_continuous"]),
    ("wdtrain -e cart", ["cartpole"]),
    ("wdtrain bench -e cartpole --mode ", ["env", "act", "train"]),
    ("wdtrain envs pen", ["pendulum"]),
    ("wdtrain envs acr", ["acrobot"]),
    ("wdtrain -e mountain", ["mountain_car"]),
    ("wdtrain --env=contin", ["continuous_mountain_car"]),
    ("wdtrain --env acrobot --set env.book_or_nips=", ["book", "nips"]),
    ("wdtrain completion ", ["bash", "zsh", "fish"]),
    ("wdtrain --device ", ["auto", "cpu", "cuda"]),
    ("wdtrain eval --starts f", ["fresh"]),
    ("wdtrain --seed ", []),
    ("wdtrain --set trainer.see", ["trainer.seed="]),
    ("wdtrain --set=trainer.see", ["trainer.seed="]),
    ("wdtrain --set trainer.precision=", ["fp32", "tf32", "bf16"]),
    ("wdtrain -s trainer.precision=b", ["bf16"]),
    ("wdtrain --set=trainer.precision=b", ["bf16"]),
    ("wdtrain --set trainer.cuda_graphs=", ["true", "false"]),
    ("wdtrain --set trainer.stop_return=", ["none"]),
    ("wdtrain --env cartpole --set policy.shared.algo", ["policy.shared.algorithm="]),
    ("wdtrain --env cartpole --set policy.shared.algorithm=P", ["PPO", "PQN", "PQN-QMIX", "PQN-VDN"]),
    ("wdtrain --env cartpole --set policy.shared.clip_p", ["policy.shared.clip_param="]),
    ("wdtrain --env cartpole --set env.grid_l", []),
    ("wdtrain --env tag_gridworld --set env.grid_l", ["env.grid_length="]),
    ("wdtrain --set env.grid_l", ["env.grid_length=", "env.grid_length="]),
    ("wdtrain --algorithm MA", ["MAPPO"]),
    ("wdtrain check --algorithm PQN-", ["PQN-QMIX", "PQN-VDN"]),
    ("wdtrain --env tag_gridworld --set opp", ["opponents.tagger=", "opponents.runner="]),
    ("wdtrain config oppo", ["opponents.NAME"]),
    ("wdtrain train cartp", ["cartpole"]),
    ("wdtrain config trainer.see", ["trainer.seed"]),
    ("wdtrain eval --set trainer.see", []),
    ("wdtrain eval --run r --set env.grid_l", ["env.grid_length=", "env.grid_length="]),
])
def test_words(complete, line, expected):
    assert sorted(set(complete(line))) == sorted(set(expected))


def test_every_setting_of_the_configuration_is_completed():
    for name in ("cartpole", "tag_gridworld"):
        keys = []
        sections = []
        for line in output("--env", name, "--print_config").splitlines():
            indent, key, value = re.match(r"( *)(\w+):(.*)", line).groups()
            sections = sections[:len(indent) // 2] + [key]
            if value:
                keys.append(".".join(sections))
        kind, words = answer("--env", name, "--set", "")
        found = {word.rstrip("=") for word in words}
        assert kind == "prefixes" and all(words.values())
        assert set(keys) - {"name"} <= found, name


def test_folders_of_runs(complete, tmp_path):
    for run in ("runs/pole", "runs/cartpole/2026-1", "elsewhere/one"):
        (tmp_path / run).mkdir(parents=True)
        (tmp_path / run / "config.yaml").write_text("")
    (tmp_path / "elsewhere" / "two").mkdir()
    for line in ("wdtrain play --run ", "wdtrain play ", "wdtrain eval -r ", "wdtrain --resume ", "wdtrain reproduce ", "wdtrain --warm_start ", "wdtrain league random "):
        assert {"runs/pole", "runs/cartpole/2026-1", "runs", "elsewhere"} == set(complete(line)), line
    assert sorted(complete("wdtrain play --run runs/c")) == ["runs/cartpole", "runs/cartpole/2026-1"]
    assert set(complete("wdtrain play --run elsewhere/")) == {"elsewhere/one", "elsewhere/two"}
    (tmp_path / "mine.yaml").write_text("")
    assert complete("wdtrain eval --run=runs/po") == ["runs/pole", "runs/pole"]
    assert complete("wdtrain --config mi") == ["mine.yaml"]
    assert complete("wdtrain --run_dir else") == ["elsewhere"]
    assert "--resume" in complete("wdtrain --resume --re"), "an option whose value may be left out"


@pytest.mark.parametrize("shell, script", [("bash", ASK), ("zsh", ASK_ZSH), ("fish", ASK_FISH)])
def test_the_program_that_was_typed_is_asked(in_shell, tmp_path, shell, script):
    (tmp_path / "build").mkdir()
    (tmp_path / "build/wdtrain").write_text("#!/bin/sh\necho words; echo mine\n")
    (tmp_path / "build/wdtrain").chmod(0o755)
    for line in ("build/wdtrain m", "~/build/wdtrain m"):
        assert in_shell(shell, script, line)[0] == "mine", line


def test_zsh(in_shell, tmp_path):
    (tmp_path / "runs/$(touch evil)").mkdir(parents=True)
    (tmp_path / "runs/$(touch evil)/config.yaml").write_text("")
    def ask(line):
        return in_shell("zsh", ASK_ZSH, line)
    assert ask("wdtrain --dev")[-1] == "()" and "--device" in ask("wdtrain --dev")
    assert ask("./wdtrain --set=trainer.precision=b") == [f"trainer.precision={word}" for word in ("fp32", "tf32", "bf16")] + ["()"]
    assert "trainer.seed=" in ask("wdtrain --set 'trainer.see") and ask("wdtrain --set x")[-1] == "(-S )"
    assert ask("wdtrain --config=mi") == ["_files "] and ask("wdtrain --seed x") == []
    assert ask("wdtrain eval --run ru") == ["runs/$(touch evil)", "_files -/"]
    assert ask("wdtrain $(touch evil) --set '`touch evil`")[-1] == "(-S )"
    assert not (tmp_path / "evil").exists()


def test_fish(in_shell, tmp_path):
    (tmp_path / "runs/$(touch evil)").mkdir(parents=True)
    (tmp_path / "runs/$(touch evil)/config.yaml").write_text("")
    (tmp_path / "mine.yaml").write_text("")
    def ask(line):
        return in_shell("fish", ASK_FISH, line)
    assert [line.split("\t")[0] for line in ask("wdtrain --dev")] == ["--device"]
    assert ask("./wdtrain --set=trainer.precision=b") == ["--set=trainer.precision=bf16"]
    assert ask("wdtrain --set trainer.see") == ["trainer.seed=\tseed of all random numbers"]
    assert ask("wdtrain --config=mi") == ["--config=mine.yaml"] and ask("wdtrain --seed ") == []
    assert ask("wdtrain eval --run=ru") == ["--run=runs/", "--run=runs/$(touch evil)"]
    assert ask("wdtrain (touch evil) $(touch evil) --devi")[0].startswith("--device\t")
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("breaks, before", [(" =", ""), (" =:", ""), (" ", "--env=")])
def test_parts_of_a_word_that_readline_replaces(in_shell, breaks, before):
    assert in_shell("bash", f"COMP_WORDBREAKS='{breaks}'; {ASK}", "wdtrain --env=tag_c") == [before + "tag_continuous"]


def test_nothing_that_was_typed_or_found_is_evaluated(complete, tmp_path):
    name = "runs/$(touch evil)`touch evil`"
    (tmp_path / name).mkdir(parents=True)
    (tmp_path / name / "config.yaml").write_text("")
    (tmp_path / "runs/two\nlines").mkdir()
    (tmp_path / "runs/two\nlines/config.yaml").write_text("")
    assert answer("eval", "--run", "", cwd=tmp_path) == ("folders", {name: ""}), "a candidate is one line"
    assert set(complete("wdtrain eval --run runs/$")) == {name}
    for line in ("wdtrain $(touch evil) --set `touch evil`=", "wdtrain --set=$(touch${IFS}evil)=", "wdtrain --config=$(touch${IFS}evil)", "$(touch${IFS}evil) --dev"):
        assert complete(line) == [], line
    assert complete("wdtrain `touch evil` --dev") == ["--device"]
    assert not (tmp_path / "evil").exists()


def test_the_command_that_shells_ask_is_not_listed(scripts):
    assert " complete " not in output("--help") and "complete" not in answer("")[1]
    assert "WDTRAIN COMPLETE\n" not in (scripts / "wdtrain.1").read_text()
    assert answer("--greedy=") == answer("--seed", "") == answer("doctor", "x") == ("nothing", {})


@pytest.mark.parametrize("command, setup", [
    (["bash", "--norc", "--noprofile", "-i"], ""),
    (["zsh", "-f", "-i"], "autoload -U compinit; compinit -u -D;"),
])
def test_a_terminal_completes(scripts, in_shell, tmp_path, command, setup):
    """Keys typed into an interactive shell: what it inserts."""
    if not shutil.which(command[0]):
        pytest.skip(f"there is no {command[0]}")
    master, slave = pty.openpty()
    environment = {**in_shell.environment, "PS1": "$ ", "TERM": "dumb", "HISTFILE": "", "INPUTRC": "/dev/null"}
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, cwd=tmp_path, env=environment, start_new_session=True) as shell:
        def typed(text, until):
            os.write(master, text.encode())
            seen, end = "", time.monotonic() + 20
            while until not in seen and time.monotonic() < end:
                if select.select([master], [], [], 0.1)[0]:
                    seen += os.read(master, 65536).decode()
            return seen
        typed(f"{setup} source {scripts / command[0]}; wdtrain() {{ echo \"<$*>\"; }}; echo 'rea''dy'\n", "ready\r\n")
        seen = typed("wdtrain --en\ttag_g\t--set trainer.precisi\tbf\t--set=trainer.devi\tcp\t\n", "cpu>")
        shell.kill()
    os.close(master)
    os.close(slave)
    assert "<--env tag_gridworld --set trainer.precision=bf16 --set=trainer.device=cpu>" in seen, seen


@pytest.mark.parametrize("shell, check", [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")])
def test_syntax(scripts, shell, check):
    if not shutil.which(shell):
        pytest.skip(f"there is no {shell}")
    done = subprocess.run([shell, check, scripts / shell], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("tool", [["mandoc", "-Tlint", "-Wwarning"], ["groff", "-man", "-Tutf8", "-ww", "-z"], ["man", "-l", "--warnings=w"]])
def test_manual_has_no_errors(scripts, tool):
    if not shutil.which(tool[0]):
        pytest.skip(f"there is no {tool[0]}")
    done = subprocess.run([*tool, scripts / "wdtrain.1"], capture_output=True, text=True)
    if tool[0] == "mandoc":  # the page has no date, so that builds are reproducible
        assert [line for line in done.stdout.splitlines() if "missing date" not in line] == []
    else:
        assert (done.returncode, done.stderr) == (0, "")


def test_manual_shows_settings_with_range_and_default(scripts):
    text = (scripts / "wdtrain.1").read_text()
    assert re.search(r"\\fBtrainer.num_envs\\fR \(int, \[1, \w+\]\)\nreplicas of the environment; default: \d+\n", text)
    for name in environments():
        assert f".SH SETTINGS OF {name.upper()}\n" in text


def test_wrong_input():
    assert "completion needs a shell: bash, zsh, fish" in wdtrain("completion").stderr
    done = wdtrain("completion", "zhs")
    assert done.returncode == 2 and 'did you mean "zsh"?' in done.stderr


def test_another_name_of_the_program(tmp_path):
    mine = tmp_path / "my-train"
    os.symlink(os.environ["WDTRAIN"], mine)
    for arguments in (["completion", "bash"], ["completion", "fish"], ["completion", "zsh"], ["man"]):
        text = subprocess.run([mine, *arguments], capture_output=True, text=True, check=True).stdout
        assert "wdtrain" not in text.lower() and "my-train" in text.replace("\\-", "-"), arguments
    assert "_my_train_complete my-train\n" in subprocess.run([mine, "completion", "bash"], capture_output=True, text=True).stdout
    assert pathlib.Path(mine).exists()
