// program.cpp: runs the command that main() is given, and turns exceptions into exit codes.
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "src/base/program_name.h"
#include "src/base/streams.h"
#include "src/base/suggest.h"
#include "src/cli/command.h"
#include "src/cli/output.h"
#include "src/cli/programs.h"
#include "src/cli/setup.h"
#include "src/worker/guarded.h"
#include "wd/error.h"
#include "wd/heartbeat.h"
#include "wd/main.h"

namespace wd {
namespace cli {
namespace {

constexpr Command kCommands[] = {
    {"train", "train policies in an environment (the command may be left out)", train},
    {"eval", "play fresh episodes with a run's policies: returns and statistics", eval},
    {"play", "record episodes, and write a page that shows them in a browser", play},
    {"league", "play runs against each other, and rate them", league},
    {"record", "write the transitions of play to files, to learn from", record},
    {"report", "write a page about one or several runs: curves, returns with intervals, settings",
     report_runs},
    {"list", "list the runs below a folder", list_runs},
    {"status", "say what a run is doing, in this terminal or elsewhere", show_status},
    {"reproduce", "train a run again, and compare the results", reproduce},
    {"new", "write an environment that learns as it is, to be changed into your own", create},
    {"bench", "measure speed", bench},
    {"doctor", "examine this machine", doctor},
    {"envs", "list the environments, or describe one", envs},
    {"config", "explain settings: type, range, default and meaning", explain_config},
    {"trace", "play a script of actions and write down every observation, reward and state", trace},
    {"check", "test an environment: order of agents, resets, observations, devices", check},
    {"completion", "print a script that completes this program's options in a shell", completion},
    {"man", "print the manual page", man},
};

const std::vector<OptionInfo> kProgramOptions = {{.names = {"-h", "--help"}, .help = "list the commands"},
                                                 {.names = {"--version"}, .help = "show the version"}};

constexpr const char* kHelpEnd =
    R"(
Examples:
  @ train cartpole --max_seconds 1m
  @ play latest --open     watch the newest run's policies in a browser
  @ config lr              explain a setting

`@ COMMAND --help` lists the options of a command. `@ config` lists all other settings, which --set and
YAML files take, `@ envs NAME` those of an environment, and --print_config shows their values
(docs/configuration.md). --version shows the version.
)";

std::string help(const std::string& program) {
  std::string text =
      "usage: " + program + " [COMMAND] OPTIONS\n\n  " + program + " --env NAME           train\n\n";
  std::vector<std::vector<std::string>> rows;
  for (const Command& command : kCommands) rows.push_back({command.name, command.summary});
  text += table(rows, 2) + "\n";
  rows.clear();
  for (const PythonTool& tool : kPythonTools) rows.push_back({tool.command, tool.summary});
  return text + table(rows, 2) + filled(kHelpEnd, {{"@", program}});
}

// Suggests what the word may have meant: a command, or an environment given without --env.
std::string command_hint(const std::string& word) {
  if (contains(environment_names(), word)) return "; did you mean \"--env " + word + "\"?";
  std::vector<std::string> names;
  for (const Command& command : kCommands) names.push_back(command.name);
  for (const PythonTool& tool : kPythonTools) names.push_back(tool.command);
  return suggestion(word, names);
}

int run(const std::string& program, std::vector<std::string> arguments) {
  const std::string first = arguments.empty() ? "" : arguments.front();
  if (first == "--version") {
    print(program + " " WD_VERSION "\n");
    return 0;
  }
  if (first == "--help" || first == "-h" || first == "help") {
    for (const Command& command : kCommands) {
      if (arguments.size() == 2 && arguments[1] == command.name) return command.run({program, {"--help"}});
    }
    print(help(program));
    return 0;
  }
  if (first.empty()) throw UsageError("no environment: give --env NAME or --config FILE\n\n" + help(program));
  if (first.front() == '-') return train({program, std::move(arguments)});
  arguments.erase(arguments.begin());
  if (first == "complete") return complete({program, std::move(arguments)});
  for (const Command& command : kCommands) {
    if (first == command.name) return command.run({program, std::move(arguments)});
  }
  for (const PythonTool& tool : kPythonTools)
    if (first == tool.command) run_python_tool(tool, std::move(arguments));
  throw UsageError("there is no command '" + first + "'" + command_hint(first));
}

}  // namespace

std::span<const Command> commands() { return kCommands; }
std::span<const OptionInfo> program_options() { return kProgramOptions; }

}  // namespace cli

int main(int argc, char** argv) {
  // MKL and torch read these variables in their first call, which comes later. Without MKL_CBWR, the bits of
  // networks that are torch modules depend on the number of threads. With THP_MEM_ALLOC_ENABLE, torch's large
  // buffers use huge pages: 250 replicas of 5 taggers and 100 runners run at 63 thousand steps per second
  // instead of 57 thousand (2 cores of an EPYC 7003, wdtrain bench --env tag_continuous).
  ::setenv("MKL_CBWR", "AVX2,STRICT", 0);
  ::setenv("THP_MEM_ALLOC_ENABLE", "1", 0);
  survive_closed_streams();
  // A parent that ignores it hands this on, and then no child can be waited for.
  std::signal(SIGCHLD, SIG_DFL);
  heartbeat::watch_crashes();
  return guarded([&] {
    if (argc > 0) set_program(argv[0]);
    return cli::run(program_name(), {argv + (argc > 0 ? 1 : 0), argv + argc});
  });
}

}  // namespace wd
