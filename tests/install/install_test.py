# install_test.py: a separate project in another folder builds its environment against the installed library
# and trains.
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from build.run_paths import elf_files, unsafe
from cli.program import OnDemand

SOURCE = Path(os.environ["WD_SOURCE_DIR"])
BUILD = Path(os.environ["WD_BUILD_DIR"])


# A user's CMake may be older than ours, so this uses the system's CMake if there is one (Debian 12 has 3.25,
# the oldest supported version).
SYSTEM_CMAKE = next((path for path in ("/usr/bin/cmake", "/usr/local/bin/cmake") if os.access(path, os.X_OK)), "cmake")


def run(*command, **options):
    result = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    assert result.returncode == 0, f"{' '.join(map(str, command))}\n{result.stdout}"
    return result.stdout


EMULATED = "WD_SANITIZE:STRING=\n" in (BUILD / "CMakeCache.txt").read_text()
STEP = "s.heading[i] += p.max_turn"
NO_CUDA = "-DCMAKE_CUDA_COMPILER="  # for projects whose CUDA part is not tested: they configure in half the time
RACE = (STEP, f"s.target[0] = 1;\n      {STEP}")  # every agent writes the same value: no order shows it


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    run("cmake", "--install", BUILD, "--prefix", folder)
    return folder


@pytest.fixture(scope="module")
def program(prefix, tmp_path_factory):
    project = tmp_path_factory.mktemp("elsewhere") / "custom_env"
    shutil.copytree(SOURCE / "examples" / "custom_env", project)
    run(SYSTEM_CMAKE, "-G", "Ninja", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run(SYSTEM_CMAKE, "--build", project / "build")
    lines = (project / "CMakeLists.txt").read_text().splitlines()
    assert len(lines) < 15
    (name,) = [path.stem for path in project.glob("*.cu")]
    return project / "build" / name


def register_game(example, folder):
    """The program of an example whose environment wdtrain's commands know instead."""
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text((example / "CMakeLists.txt").read_text().replace(example.name, folder.name))
    game = (example / "main.cpp").read_text().split("// Plays one episode")[0]
    (folder / "main.cpp").write_text(f"#include <wd/main.h>\n{game}WD_REGISTER_ENVIRONMENT(CorridorEnvironment);\n}}\n"
                                     "int main(int argc, char** argv) { return wd::main(argc, argv); }\n")


@pytest.fixture(scope="module")
def loops(prefix, tmp_path_factory):
    """The build folder of the examples with torch, which share it: each configures alone in the same way, and is built on demand."""
    project = tmp_path_factory.mktemp("loops")
    names = ["distributed_loop", "training_loop", "host_environment", "custom_algorithm", "off_policy"]
    for name in names:
        shutil.copytree(SOURCE / "examples" / name, project / name)
    register_game(project / "host_environment", project / "registered")
    names.append("registered")
    (project / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(loops LANGUAGES CXX)\n" + "".join(f"add_subdirectory({name})\n" for name in names))
    run("cmake", "-G", "Ninja", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={prefix}", NO_CUDA)
    return OnDemand(project / "build", lambda name, _: run("cmake", "--build", project / "build", "--target", name))


def test_nothing_that_is_installed_looks_into_the_working_folder(prefix):
    assert any(path.name == "wdtrain" for path in elf_files(prefix)) and unsafe(prefix) == {}


def test_manual_and_completions_are_where_shells_look_for_them(prefix):
    share = prefix / "share"
    assert (share / "man/man1/wdtrain.1").read_text().startswith(".TH WDTRAIN 1 ")
    assert "complete -F " in (share / "bash-completion/completions/wdtrain").read_text()
    assert (share / "zsh/site-functions/_wdtrain").read_text().startswith("#compdef wdtrain\n")
    assert "complete -c wdtrain " in (share / "fish/vendor_completions.d/wdtrain.fish").read_text()


def test_example_trains(program, tmp_path):
    run(program, "--env", program.name, "--device", "cpu", "--set", "trainer.num_envs=4",
        "--set", "trainer.train_batch_size=400", "--total_steps", "800", "--run_dir", tmp_path / "run")
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["status"] == "finished"
    assert summary["env"] == program.name
    assert summary["iterations"] == 2


def test_settings_beside_the_environment_are_found(program):
    assert f"{program.name}.yaml" in run(program, "--env", program.name, "--print_config")


def test_example_keeps_the_contract(program):
    found = run(program, "check", "--env", program.name, "--seconds", "1")
    if EMULATED:
        assert re.search(r"^ok +the emulated GPU: races, same bits", found, re.M), found


@pytest.mark.skipif(not EMULATED, reason="builds with a sanitizer have no emulated GPU")
def test_installed_environments_are_checked_on_the_emulated_gpu(prefix, tmp_path):
    found = run(prefix / "bin" / "wdtrain", "check", "--env", "cartpole", "--seconds", "1", cwd=tmp_path)
    assert re.search(r"^ok +the emulated GPU: races, same bits", found, re.M), found


@pytest.mark.skipif(not EMULATED, reason="builds with a sanitizer have no emulated GPU")
def test_a_race_in_ones_own_environment_is_found(prefix, tmp_path):
    project = tmp_path / "chase"
    result = changed_example(prefix, project, *RACE, NO_CUDA)
    assert result.returncode == 0, result.stderr
    with (project / "CMakeLists.txt").open("a") as lists:  # another program of the folder has the same environment
        lists.write("add_executable(loop main.cpp)\ntarget_link_libraries(loop PRIVATE wd::wd)\nwd_add_environment(chase.cu TARGET loop)\n")
    for program in ("loop", "chase"):  # each builds the module that both load
        (project / "build" / "wd_emulated" / "chase.so").unlink(missing_ok=True)
        run("cmake", "--build", project / "build", "--target", program)
        command = [project / "build" / program, "check", "--env", "chase", "--seconds", "1"]
        found = subprocess.run(command, text=True, capture_output=True)
        assert found.returncode == 1 and "state field 'target' of agent 0" in found.stdout, found.stdout + found.stderr


def test_example_knows_its_own_and_the_bundled_environments(program):
    listed = run(program, "envs")
    assert program.name in listed
    assert "cartpole" in listed


def test_a_loop_of_ones_own_runs_on_several_workers(loops):
    for workers in ("1", "3"):
        told = run(loops / "distributed_loop" / "distributed_loop", workers)
        assert [line.split(",")[0] for line in told.splitlines()] == ["step 50", "step 100", "step 150", "step 200"]
        assert float(told.split()[-1]) < 1e-4


def test_a_training_loop_on_the_public_api_learns(loops, tmp_path):
    told = run(loops / "training_loop" / "training_loop", "cartpole", "trainer.total_steps=61440", "trainer.device=cpu", cwd=tmp_path)
    returns = [float(line.split()[-1]) for line in told.splitlines()]
    assert len(returns) == 3 and returns[0] < returns[-1] and returns[-1] > 150, told
    for setting in ("policy.shared.model={type: gru, width: 8}", "trainer.precision=bf16"):
        told = run(loops / "training_loop" / "training_loop", "cartpole", "trainer.total_steps=4096", "trainer.device=cpu", setting, cwd=tmp_path)
        assert told.startswith("4096 steps, mean return "), told


def test_a_game_of_plain_cpp_is_learned(loops, tmp_path):
    program = loops / "host_environment" / "host_environment"
    told = run(program, "trainer.device=cpu", cwd=tmp_path)
    mean, share = re.fullmatch(r"\d+ steps, mean return (0\.\d+), both arrive in (\d+) % of episodes\n", told).groups()
    assert float(mean) >= 0.7 and int(share) >= 95, told
    fewer = ["trainer.total_steps=16384", "policy.walker.model={type: gru, width: 8}", "trainer.precision=bf16"]
    assert run(program, "trainer.device=cpu", *fewer, cwd=tmp_path).startswith("16384 steps, ")
    refused = subprocess.run([program, "trainer.cuda_graphs=true"], text=True, capture_output=True)
    assert refused.returncode == 2 and "the host steps frozen_corridor: leave it out" in refused.stderr, refused.stderr


def test_commands_know_a_game_that_is_registered(loops, tmp_path):
    program = loops / "registered" / "registered"
    assert "frozen_corridor" in run(program, "envs")
    run(program, "--env", "frozen_corridor", "--device", "cpu", "--num_workers", "2", "--total_steps", "16384", "--run_dir", tmp_path / "run")
    run(program, "--resume", tmp_path / "run", "--total_steps", "32768")
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["env_steps"] == 32768
    assert "walker" in run(program, "eval", tmp_path / "run", "--episodes", "20")
    refused = subprocess.run([program, "check", "--env", "frozen_corridor"], text=True, capture_output=True)
    assert refused.returncode == 2 and "its game lives elsewhere" in refused.stderr, refused.stderr


def test_an_algorithm_of_ones_own_learns_on_two_workers(loops, tmp_path):
    program = loops / "custom_algorithm" / "custom_algorithm"
    run(program, "--env", "cartpole", "--device", "cpu", "--num_workers", "2", "--set", "policy={shared: {algorithm: GROUP}}", "--num_envs", "64",
        "--train_batch_size", "8192", "--total_steps", "131072", "--run_dir", tmp_path / "run")
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert rows[0]["shared/recent_return"] < 60 and rows[-1]["shared/recent_return"] > 150
    assert rows[-1]["shared/updates"] == 16
    assert "algorithm: GROUP" in run(program, "--env", "cartpole", "--set", "policy={shared: {algorithm: GROUP}}", "--print_config")
    refused = subprocess.run([program, "--env", "cartpole", "--set", "policy={shared: {algorithm: GRUP}}"], text=True, capture_output=True)
    assert refused.returncode == 2 and "must be one of A2C, BC, DDPG, DQN, GROUP, IPPO, MAPPO, PPO, PQN, PQN-QMIX, PQN-VDN, QMIX, REINFORCE, SAC, TD3, VDN" in refused.stderr, refused.stderr


HYSTERETIC = ["--env", "cartpole", "--device", "cpu", "--num_envs", 4, "--train_batch_size", 16, "--set", "policy={shared: {algorithm: HYSTERETIC, model: {fc_dims: [64, 64], activation: tanh}}}",
              "--set", "saving.metrics_log_freq=800"]


def test_an_off_policy_algorithm_with_a_kernel_of_ones_own_learns_and_resumes(loops, tmp_path):
    program = loops / "off_policy" / "off_policy"
    train = lambda folder, steps, *more: run(program, *map(str, [*HYSTERETIC, "--total_steps", steps, "--run_dir", tmp_path / folder, *more]))  # noqa: E731
    train("two", 24_000, "--num_workers", 2)
    rows = [json.loads(line) for line in (tmp_path / "two" / "metrics.jsonl").read_text().splitlines()]
    assert max(row["shared/recent_return"] or 0 for row in rows) > 100
    assert 0.2 < rows[-1]["shared/negative_errors"] < 0.8
    train("whole", 3200)
    train("parts", 1600)
    run(program, "--resume", tmp_path / "parts", "--total_steps", "3200")
    weights = [(tmp_path / name / "weights" / "shared.safetensors").read_bytes() for name in ("whole", "parts")]
    assert weights[0] == weights[1]


def test_installed_program_runs_without_the_build_folder(prefix, tmp_path):
    listed = run(prefix / "bin" / "wdtrain", "envs", cwd=tmp_path)
    assert "tag_continuous" in listed


@pytest.mark.parametrize(
    "call, message",
    [
        ("absent.cu", "there is no file"),
        ("good.cu STRUCT Other", "has no 'struct Other'"),
        ("good.cu NAME Good", "must be snake_case"),
        ("good.cu CONFIG absent.yaml", "there is no file"),
        ("good.cu TARGET absent", "no target 'absent'"),
        ("good.cu TARGET archive", "'archive' is a static library"),
        ("good.cu STRCT Good", "unknown argument 'STRCT"),
        ("good.cu)\nadd_executable(other main.cpp)\nfile(COPY good.cu DESTINATION other)\nwd_add_environment(${CMAKE_CURRENT_BINARY_DIR}/other/good.cu TARGET other", "give one of them another NAME"),
    ],
)
def test_wrong_call_of_wd_add_environment_is_explained(prefix, tmp_path, call, message):
    (tmp_path / "good.cu").write_text("struct Good {};\n")
    (tmp_path / "main.cpp").write_text("int main() {}\n")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(good LANGUAGES CXX)\nfind_package(wd REQUIRED)\n"
        f"add_executable(good main.cpp)\nadd_library(archive STATIC main.cpp)\nwd_add_environment({call})\n"
    )
    result = subprocess.run(["cmake", "-G", "Ninja", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}", NO_CUDA],
                            text=True, capture_output=True)
    assert result.returncode != 0
    assert message in " ".join(result.stderr.split())


def changed_example(prefix, folder, before, after, *options):
    """Copies the example with a change in its source, configures it and returns the result of CMake."""
    shutil.copytree(SOURCE / "examples" / "custom_env", folder)
    source = (folder / "chase.cu").read_text()
    assert before in source
    (folder / "chase.cu").write_text(source.replace(before, after, 1))
    command = ["cmake", "-G", "Ninja", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}", *options]
    return subprocess.run(command, text=True, capture_output=True)


WRONG_FUNCTIONS = {
    "InGame": ("in_game", "WD_FN static bool in_game(const State&, int) { return true; }"),
    "Hidden": ("in_game", "private: WD_FN static bool in_game(const Params&, const State&, int) { return true; }"),
    "Derive": ("derive", "WD_FN static void derive(auto&, State&) {}"),
    "Scripted": ("scripted", "static void scripted(const Params&, State&, int, wd::ScriptedAction&) {}"),
    "Rows": ("streams", "WD_FN static void streams(auto&, const Params&, State&, wd::Streams) {}"),
}
RIGHT_FUNCTIONS = """WD_FN static bool in_game(const auto&, const auto&, auto) { return true; }
  static void scripted(const Params&, const State&, int, wd::ScriptedAction&) {}
  WD_FN static void streams(auto&, const Params&, const State&, wd::Streams) {}"""


def compiles(prefix, folder, structs):
    """Each struct with one more function is checked as an environment; the lines of errors."""
    source = f'#include "{SOURCE / "examples/custom_env/chase.cu"}"\n#include <wd/detail/cpu_executor.h>\n'
    source += "template <typename Env> constexpr bool checked() { return wd::detail::check_contract<Env>(); }\n"
    source += "".join(f"struct {head} : Chase {{ {body} }};\nstatic_assert(checked<{head.split()[0]}>());\n" for head, body in structs.items())
    (folder / "unit.cpp").write_text(source)
    done = subprocess.run(["g++", "-std=c++20", f"-I{prefix / 'include'}", "-fsyntax-only", folder / "unit.cpp"], capture_output=True, text=True)
    return [line.split("static assertion failed: ")[1] for line in done.stderr.splitlines() if "static assertion failed: " in line] + ["ok"] * (done.returncode == 0)


def test_an_optional_function_with_other_arguments_is_refused(prefix, tmp_path):
    assert compiles(prefix, tmp_path, {"Chased": "", "Right": RIGHT_FUNCTIONS}) == ["ok"]
    told = compiles(prefix, tmp_path, {name: body for name, (_, body) in WRONG_FUNCTIONS.items()} | {"Last final": ""})
    assert [line.split(" is not public or has other arguments than ")[0] for line in told[:-1]] == [function for function, _ in WRONG_FUNCTIONS.values()]
    assert told[0].endswith("WD_FN static bool in_game(const Params&, const State&, int)"), told
    assert told[-1] == "an environment must not be final: remove the word"


@pytest.mark.parametrize("function", ["reset", "step", "observe", "streams"])
def test_a_function_that_lacks_WD_FN_is_named(function, prefix, tmp_path):
    if function == "streams":
        body = "static void streams(auto& team, const Params&, const State&, wd::Streams) {}"
        result = changed_example(prefix, tmp_path / "chase", "WD_FN static void reset(", f"{body}\n  WD_FN static void reset(", NO_CUDA)
        assert result.returncode != 0 and "chase.cu): streams() lacks WD_FN" in " ".join(result.stderr.split())
        return
    result = changed_example(prefix, tmp_path / "chase", f"WD_FN static void {function}(", f"static void {function}(", NO_CUDA)
    assert result.returncode != 0
    assert f"chase.cu): {function}() lacks WD_FN" in " ".join(result.stderr.split())


def test_a_function_marked_by_a_macro_of_ones_own_is_not_refused(prefix, tmp_path):
    result = changed_example(prefix, tmp_path / "chase", "WD_FN static void step(", "MY_FN\n  static void step(", NO_CUDA)
    assert result.returncode == 0, result.stderr


@pytest.mark.skipif('CMAKE_CUDA_COMPILER:' not in (BUILD / "CMakeCache.txt").read_text(), reason="this build has no CUDA")
def test_nvcc_refuses_to_leave_a_function_out_of_a_kernel(prefix, tmp_path):
    project = tmp_path / "chase"
    result = changed_example(prefix, project, "WD_FN static void step(", "HOST_FN static void step(")
    assert result.returncode == 0, result.stderr
    (project / "chase.cu").write_text("#define HOST_FN inline\n" + (project / "chase.cu").read_text())
    built = subprocess.run(["cmake", "--build", project / "build"], text=True, capture_output=True)
    assert built.returncode != 0
    assert 'calling a __host__ function("void Chase::step' in built.stdout and "is not allowed" in built.stdout, built.stdout
