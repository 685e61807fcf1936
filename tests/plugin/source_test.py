"""source_test.py: an environment is one file: `wdtrain --env ./ants.cu` compiles it, keeps the result, and says what is wrong with it."""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from cli.program import SANITIZED, wdtrain

ROOT = pathlib.Path(os.environ["WD_SOURCE_DIR"])
SMALL = ["--device", "cpu", "--num_envs", 4, "--train_batch_size", 64, "--total_steps", 256]
# One agent, two roles, arrays with masks, streams, continuous actions, an included file.
SHIPPED = ["cartpole", "tag_gridworld", "foraging", "simple_reference", "pendulum", "mountain_car"]
GAME = """
#include <wd/env.h>
#include "reward.h"

struct Ants {
  struct Params {
    int episode_length = 20;
    void describe(auto&& field) { field("episode_length", episode_length, {1, 1000}, "steps of an episode"); }
  };
  struct State {
    wd::PerAgent<float> x;
    void describe(auto&& field) { field("x", x); }
  };
  static wd::Spec spec(const Params& p) {
    return {.roles = {{.name = "ant", .count = 2, .observation = {{"x"}}, .action = wd::ActionSpace::discrete({2})}}, .time_limit = p.episode_length};
  }
  WD_FN static void reset(auto& team, const Params&, State& s, wd::Random random) {
    team.each(2, [&](int i) { s.x[i] = random.uniform(i, 0); });
  }
  WD_FN static void step(auto& team, const Params&, State& s, wd::Actions actions, wd::Random, wd::Outcome& out) {
    team.each(2, [&](int i) {
      s.x[i] += actions.discrete(i, 0) == 1 ? 0.1f : -0.1f;
      out.reward(i) = kReward * s.x[i];
    });
  }
  WD_FN static void observe(auto& team, const Params&, const State& s, wd::Observations obs) {
    team.each(2, [&](int i) { obs(i, 0) = s.x[i]; });
  }
};
"""
REWARD = "#pragma once\nconstexpr float kReward = 1.0f;\n"


class Place:
    """A folder with blanks and umlauts, and a cache and a home of its own."""

    def __init__(self, folder):
        self.folder = folder / "ein Ordner, größer"
        self.folder.mkdir(parents=True)
        self.cache, self.game = folder / "cache", self.folder / "ants.cu"
        self.write()

    def write(self, *replaced, text=GAME, reward=REWARD):
        for before, after in replaced:
            assert before in text
            text = text.replace(before, after, 1)
        self.game.write_text(text)
        (self.folder / "reward.h").write_text(reward)

    def variables(self, **settings):
        mine = {**os.environ, "XDG_CACHE_HOME": str(self.cache), "XDG_STATE_HOME": str(self.folder.parent / "state"), **settings}
        return {key: value for key, value in mine.items() if value is not None}

    def call(self, *words, good=None, **settings):
        done = wdtrain(*words, cwd=self.folder, env=self.variables(**settings))
        assert good is None or (done.returncode == 0) == good, (words, done.stdout, done.stderr)
        return done

    def train(self, *words, **settings):
        return self.call("train", "--env", "./ants.cu", "--run_dir", self.folder / "run", *SMALL, *words, **settings)

    def refused(self, *words, **settings):
        """What a call says that must end with a usage error, of a file that exists."""
        done = self.call("envs", "./ants.cu", *words, good=False, **settings)
        assert done.returncode == 2 and "terminate called" not in done.stderr, done.stderr
        return done.stderr


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The game, with a run in it."""
    place = Place(tmp_path_factory.mktemp("compiled"))
    done = place.train(good=True)
    assert re.search(r"compiled ants\.cu in \d+\.\d s", done.stderr)
    return place


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


@pytest.fixture
def later(compiled, tmp_path):
    """The same with a folder of its own, so that the file may change."""
    place = Place(tmp_path)
    place.train(good=True)
    return place


def weights(folder):
    return {path.name: path.read_bytes() for path in sorted((folder / "weights").iterdir())}


@pytest.mark.parametrize("name", SHIPPED)
def test_a_file_trains_with_the_bits_of_what_cmake_compiled(name, tmp_path):
    place = Place(tmp_path)
    for file in [ROOT / f"envs/{name}.cu", ROOT / f"configs/{name}.yaml", *(ROOT / "envs").glob("*.h")]:
        shutil.copy(file, place.folder)
    place.call("train", f"./{name}.cu", "--run_dir", "file", *SMALL, good=True)
    place.call("train", name, "--run_dir", "cmake", *SMALL, good=True)
    # The metadata name the environment: tensors come after.
    tensors = [{file: data[8 + int.from_bytes(data[:8], "little"):] for file, data in weights(place.folder / run).items()} for run in ("file", "cmake")]
    assert tensors[0] == tensors[1] and tensors[0]


def test_every_command_takes_the_file(compiled):
    for words in (["envs", "./ants.cu"], ["bench", "--env", "./ants.cu", "--seconds", 0.1], ["eval", "run", "--episodes", 2], ["play", "run", "-o", "page.html"],
                  ["record", "run", "--steps", 64, "--out", "data"], ["train", "ants.cu", "--print_config"], ["--resume", "run", "--total_steps", 512],
                  ["reproduce", "run"]):
        done = compiled.call(*words, good=True)
        assert "compiled ants.cu in" not in done.stderr
    script = compiled.folder / "script.json"
    script.write_text(json.dumps([{"actions": {"ant": [[0], [1]]}}]))
    assert (compiled.folder / "run" / "source" / "ants.cu").read_text() == GAME
    assert (compiled.folder / "run" / "source" / "reward.h").read_text() == REWARD
    checked = compiled.call("check", "--env", "./ants.cu", "--steps", 40, good=True)
    assert SANITIZED or ("the emulated GPU: races, same bits" in checked.stdout and "compiled ants.cu for the emulated GPU" in checked.stderr)
    assert 'name: "' + str(compiled.game) in (compiled.folder / "run" / "config.yaml").read_text()


def test_python_takes_the_file(compiled):
    script = ("import wdtrain; env = wdtrain.make('./ants.cu', num_envs=3, device='cpu'); env.reset(); print(env.num_agents)\n"
              "run = wdtrain.train('./ants.cu', run_dir='of_python', device='cpu', num_envs=4, train_batch_size=64, total_steps=64, progress=False)\n"
              "print(run.summary['status'])")
    done = subprocess.run([sys.executable, "-c", script], cwd=compiled.folder, env=compiled.variables(PYTHONPATH=f"{os.environ['WD_BUILD_DIR']}/python"), capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["2", "finished"], done.stderr


def test_the_yaml_beside_it_is_its_configuration(later):
    (later.folder / "ants.yaml").write_text("name: ants\nenv: {episode_length: 7}\ntrainer: {num_envs: 3}\n")
    printed = later.call("--env", "ants.cu", "--print_config", good=True).stdout
    assert re.search(r"episode_length: 7 .*ants\.yaml", printed) and "source: " in printed
    (later.folder / "ants.yaml").write_text("name: spiders\n")
    assert "must be" in later.refused()


def test_programs_that_begin_at_once_compile_once(place):
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        runs = list(pool.map(lambda k: place.call("envs", "./ants.cu", good=True), range(3)))
    assert sum("compiled ants.cu" in done.stderr for done in runs) == 1
    done = place.train("--num_workers", 2, good=True)
    assert "compiled ants.cu" not in done.stderr


def test_a_killed_compiler_leaves_nothing_half(place):
    program = subprocess.Popen([os.environ["WDTRAIN"], "envs", "./ants.cu"], cwd=place.folder, env=place.variables(), stderr=subprocess.PIPE, text=True)
    while not list(place.cache.rglob("unit.cpp")):
        time.sleep(0.01)
    time.sleep(0.3)
    program.send_signal(signal.SIGKILL)
    program.wait()
    assert not list(place.cache.rglob("list.json"))
    assert "compiled ants.cu" in place.call("envs", "./ants.cu", good=True).stderr


def test_what_was_compiled_is_used_only_as_it_was_written(compiled):
    (module,) = (path for path in compiled.cache.rglob("cpu-*/*.so"))
    whole = module.read_bytes()
    module.write_bytes(whole[: len(whole) // 2])
    assert "compiled ants.cu" in compiled.call("envs", "./ants.cu", good=True).stderr
    (listed,) = compiled.cache.rglob("cpu-*/list.json")
    listed.write_text(listed.read_text()[:-20])
    assert "compiled ants.cu" in compiled.call("envs", "./ants.cu", good=True).stderr


def test_a_changed_file_is_refused_where_a_run_goes_on_and_taken_where_the_user_says_so(later):
    before = weights(later.folder / "run")
    later.write(reward=REWARD.replace("1.0f", "2.0f"))  # a file that it includes
    for words in (["eval", "run"], ["play", "run"], ["--resume", "run", "--total_steps", 320], ["reproduce", "run"]):
        done = later.call(*words, good=False)
        assert done.returncode == 2 and "has changed since" in done.stderr and "give --env" in done.stderr, done.stderr
    assert weights(later.folder / "run") == before
    done = later.call("--env", "./ants.cu", "--resume", "run", "--total_steps", 320, good=False)
    assert re.search(r'source: "\w{16}" -> "\w{16}"', done.stderr) and "--allow_drift" in done.stderr
    for words in (["eval", "run", "--episodes", 2], ["record", "run", "--steps", 64, "--out", "data"]):
        later.call(*words, "--env", "ants.cu", good=True)
    done = later.call("reproduce", "run", "--env", "ants.cu")
    assert done.returncode == 1 and "not as it was: the environment's file has changed" in done.stderr and "other bytes" in done.stdout
    later.call("--resume", "run", "--total_steps", 320, "--allow_drift", good=True)
    assert "2.0f" in (later.folder / "run" / "source" / "reward.h").read_text()
    later.call("eval", "run", "--episodes", 2, good=True)


def test_a_project_may_move(later, tmp_path):
    moved = later.folder.rename(tmp_path / "moved")
    later.folder, later.game = moved, moved / "ants.cu"
    done = later.call("eval", "run", good=False)
    assert "there is no such file" in done.stderr and "--env" in done.stderr
    later.call("--env", "./ants.cu", "--resume", "run", "--total_steps", 320, good=True)
    # An opponent's policy plays in this game, wherever that one's file was, and whoever's it is.
    config = later.folder / "run" / "config.yaml"
    config.write_text(config.read_text().replace(str(later.game), "/nowhere/ants.cu"))
    later.call("--env", "./ants.cu", "--run_dir", "next", *SMALL, "--set", "opponents.ant=[run]", good=True)
    config.write_text(config.read_text().replace("/nowhere/ants.cu", "/nowhere/bees.cu"))
    done = later.call("--env", "./ants.cu", "--run_dir", "other", *SMALL, "--set", "opponents.ant=[run]", good=False)
    assert done.returncode == 2 and "is a run of /nowhere/bees.cu, and this game is" in done.stderr


# --- what is wrong ------------------------------------------------------------------------------------------------


def test_a_compilers_error_shows_the_users_line_first(place):
    for before, after, said in (("s.x[i] += actions.discrete(i, 0)", "s.y[i] += actions.discrete(i, 0)", r"ants\.cu:\d+: .*has no member named.*y"),
                                ("s.x[i] = random.uniform(i, 0);", "s.x[i] = random.uniform(i, 0)", r"ants\.cu:\d+: expected"),
                                ("out.reward(i) =", "out.rewards[i] =", r"ants\.cu:\d+: .*rewards"),
                                ("static wd::Spec spec(const Params& p)", "wd::Spec spec(const Params& p)", r"ants\.cu: .*spec\(const Params&\) is missing"),
                                ('obs(i, 0) =', 's.x[i] = 0.0f; obs(i, 0) =', r"ants\.cu:\d+: ")):
        place.write((before, after))
        said_now = place.refused()
        assert re.match(rf"error: [^\n]*{said}", said_now), said_now
        assert len(said_now.splitlines()) <= 12 and "log.txt" in said_now, said_now
        assert after in said_now or "spec" in said, said_now


@pytest.mark.parametrize(("replaced", "said"), [
    ([("struct Ants", "struct Bees")], None),
    ([("struct Ants", "class Ants")], "has no struct, and the environment is struct Ants"),
    ([("struct Params", "struct Parameters")], r"ants\.cu:\d+: 'Params' does not name a type"),
    ([("struct Ants {", "struct Wasps {};\nstruct Bees {")], "has the structs Wasps, Bees, and the environment is struct Ants, as the file is named, or the only one"),
    ([("WD_FN static void step", "static void step")], r"ants\.cu:20: step\(\) lacks WD_FN"),
    ([("return {.roles", 'throw std::out_of_range("seven"); return {.roles')], r"spec\(\) of .*ants\.cu has thrown seven: throw wd::UsageError"),
    ([("return {.roles", 'throw wd::UsageError("no ants today"); return {.roles')], "env: no ants today"),
], ids=["another name", "none", "no Params", "two", "no WD_FN", "exception", "usage error"])
def test_a_file_that_is_no_environment(replaced, said, place):
    place.write(*replaced)
    if said is None:
        place.call("envs", "./ants.cu", good=True)
    else:
        assert re.search(said, place.refused())


def fake(folder, name, text):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n" + text)
    (folder / name).chmod(0o755)
    return str(folder)


def test_machines_that_cannot_compile(place, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "needs a C++ compiler, and none is in PATH: install one (apt-get install g++)" in place.refused(PATH=str(empty), CXX=None)
    assert "CXX is no-such-compiler, which is not a program" in place.refused(CXX="no-such-compiler")
    old = fake(tmp_path / "old", "c++", 'case "$1" in -dumpversion) echo 9.4.0;; --version) echo "c++ (GCC) 9.4.0";; *) echo "c++: error: unrecognized" >&2; exit 1;; esac\n')
    assert "is version 9.4.0, too old for it: install g++ 11 or clang++ 16 or later" in place.refused(PATH=f"{old}:{os.environ['PATH']}", CXX=None)
    full = fake(tmp_path / "full", "c++", 'echo "/usr/bin/ld: final link failed: No space left on device" >&2; exit 1\n')
    assert "No space left on device: free some in " in place.refused(PATH=f"{full}:{os.environ['PATH']}", CXX=None)
    assert "/proc/nowhere" in (said := place.refused(XDG_CACHE_HOME="/proc/nowhere")) and "XDG_CACHE_HOME" in said
    assert "neither HOME nor XDG_CACHE_HOME" in place.refused(XDG_CACHE_HOME=None, HOME=None)


def test_a_module_of_other_types_is_refused_by_name(place, tmp_path):
    other = fake(tmp_path / "other", "c++", 'exec /usr/bin/g++ -D_GLIBCXX_USE_CXX11_ABI=0 "$@"\n')
    assert "std::string is 8 there and 32 here: install both anew" in place.refused(PATH=f"{other}:{os.environ['PATH']}", CXX=None)


def test_names_that_are_no_files(place):
    done = place.call("--env", "./bees.cu", good=False)
    assert done.returncode == 2 and "bees.cu: there is no such file" in done.stderr
    (place.folder / 'a"b.cu').write_text(GAME)
    done = place.call("--env", 'a"b.cu', good=False)
    assert done.returncode == 2 and "without quotes" in done.stderr
    done = place.call("--env", "ants", good=False)
    assert done.returncode == 2 and "./ants.cu" in done.stderr


def test_a_script_that_crashes_says_where(place):
    place.write(("  WD_FN static void observe", "  static void scripted(const Params&, const State& s, int, wd::ScriptedAction& action) {\n"
                 "    int* volatile nowhere = nullptr;\n    action.discrete(0, *nowhere);\n  }\n  WD_FN static void observe"))
    place.train(good=True)
    done = place.call("eval", "run", "--policy", "ant=scripted", "--episodes", 1, good=False)
    assert "segmentation fault" in done.stderr and re.search(r"ants-\w{16}\.so", done.stderr) and "check --env NAME` says" in done.stderr, done.stderr
