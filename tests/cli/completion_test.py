"""Completion scripts and the manual page: real bash completes words; zsh and fish check the syntax if they are there."""

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


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scripts")
    for shell in ("bash", "zsh", "fish"):
        (folder / shell).write_text(output("completion", shell))
    (folder / "wdtrain.1").write_text(output("man"))
    return folder


@pytest.fixture
def complete(scripts, tmp_path):
    def ask(line):
        done = subprocess.run(["bash", "--norc", "-c", ASK, "bash", scripts / "bash", line], cwd=tmp_path, capture_output=True, text=True, timeout=20)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout.split()
    return ask


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
    assert complete("wdtrain ") == names
    fish, zsh = (scripts / "fish").read_text(), (scripts / "zsh").read_text()
    manual = (scripts / "wdtrain.1").read_text().replace("\\-", "-")
    for command in names:
        listed = options(command)
        assert "--help" in listed
        assert set(complete(f"wdtrain {command} -")) == listed, command
        section = manual.split(f"\n.SH WDTRAIN {command.upper()}\n")[1].split("\n.SH ")[0]
        assert {name for name in re.findall(r"\\fB(--?\w+)\\fR", section)} == listed, command
        assert re.search(rf"-a {command} -d", fish)
        branch = re.search(rf"^    {command}\) _arguments(.*?) ;;$", zsh, re.M | re.S).group(1)
        for option in listed:
            assert f"{option}" in branch, (command, option)
            seen = f"__fish_seen_subcommand_from {command}'" if command != "train" else "not __fish_seen"
            dashed = f" -l {option[2:]} " if option.startswith("--") else f" -s {option[1:]} "
            assert any(seen in line and dashed in line for line in fish.splitlines()), (command, option)


@pytest.mark.parametrize("line, expected", [
    ("wdtrain d", ["doctor"]),
    ("build/wdtrain do", ["doctor"]),
    ("wdtrain --vers", ["--version"]),
    ("wdtrain --num_e", ["--num_envs"]),
    ("wdtrain train --num_e", ["--num_envs"]),
    ("wdtrain --env tag_c", ["tag_continuous"]),
    ("wdtrain --env=tag_c", ["tag_continuous"]),
    ("wdtrain -e cart", ["cartpole"]),
    ("wdtrain bench -e cartpole --mode ", ["env", "act", "train"]),
    ("wdtrain envs pen", ["pendulum"]),
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
    ("wdtrain --env cartpole --set policy.shared.algorithm=P", ["PPO"]),
    ("wdtrain --env cartpole --set policy.shared.clip_p", ["policy.shared.clip_param="]),
    ("wdtrain --env cartpole --set env.grid_l", []),
    ("wdtrain --env tag_gridworld --set env.grid_l", ["env.grid_length="]),
    ("wdtrain --set env.grid_l", ["env.grid_length=", "env.grid_length="]),
    ("wdtrain eval --set trainer.see", []),
    ("wdtrain eval --run r --set env.grid_l", ["env.grid_length=", "env.grid_length="]),
])
def test_words(complete, line, expected):
    assert sorted(set(complete(line))) == sorted(set(expected))


def test_every_setting_of_the_configuration_is_completed(complete):
    for name in ("cartpole", "tag_gridworld"):
        keys = []
        sections = []
        for line in output("--env", name, "--print_config").splitlines():
            indent, key, value = re.match(r"( *)(\w+):(.*)", line).groups()
            sections = sections[:len(indent) // 2] + [key]
            if value:
                keys.append(".".join(sections))
        found = {word.rstrip("=") for word in complete(f"wdtrain --env {name} --set ")}
        assert set(keys) - {"name"} <= found, name


def test_folders_of_runs(complete, tmp_path):
    for run in ("runs/pole", "runs/cartpole/2026-1", "elsewhere/one"):
        (tmp_path / run).mkdir(parents=True)
        (tmp_path / run / "config.yaml").write_text("")
    (tmp_path / "elsewhere" / "two").mkdir()
    for line in ("wdtrain play --run ", "wdtrain play ", "wdtrain eval -r ", "wdtrain --resume ", "wdtrain reproduce ", "wdtrain --warm_start "):
        assert {"runs/pole", "runs/cartpole/2026-1", "runs", "elsewhere"} == set(complete(line)), line
    assert complete("wdtrain play --run runs/c") == ["runs/cartpole", "runs/cartpole/2026-1"]
    assert set(complete("wdtrain play --run elsewhere/")) == {"elsewhere/one", "elsewhere/two"}
    (tmp_path / "mine.yaml").write_text("")
    assert complete("wdtrain --config mi") == ["mine.yaml"]
    assert complete("wdtrain --run_dir else") == ["elsewhere"]
    assert "--resume" in complete("wdtrain --resume --re"), "an option whose value may be left out"


def test_a_terminal_completes(scripts, tmp_path):
    """Keys typed into an interactive bash: what readline inserts."""
    master, slave = pty.openpty()
    environment = {**os.environ, "PS1": "$ ", "TERM": "dumb", "HISTFILE": "", "INPUTRC": "/dev/null"}
    with subprocess.Popen(["bash", "--norc", "--noprofile", "-i"], stdin=slave, stdout=slave, stderr=slave, cwd=tmp_path, env=environment, start_new_session=True) as bash:
        def typed(text, until):
            os.write(master, text.encode())
            seen, end = "", time.monotonic() + 20
            while until not in seen and time.monotonic() < end:
                if select.select([master], [], [], 0.1)[0]:
                    seen += os.read(master, 65536).decode()
            return seen
        typed(f"source {scripts / 'bash'}; wdtrain() {{ echo \"<$*>\"; }}; echo 'rea''dy'\n", "ready\r\n")
        seen = typed("wdtrain --en\ttag_g\t--set trainer.precisi\tbf\t--set=trainer.devi\tcp\t\n", "cpu>")
        bash.kill()
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
