// command.h: the commands of the program. Each is in a separate file and returns the exit code.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace wd::cli {

struct OptionInfo {
  std::vector<std::string> names;  // "-e", "--env"; empty for a word without dashes
  std::string type;                // what its value looks like: "FILE", "auto | cpu | cuda"; empty: a flag
  std::string help;
  bool value_optional = false, repeatable = false;
};

struct CommandInfo {
  std::string name, summary, description;
  std::vector<OptionInfo> options;
};

// The program's name and all arguments after the command.
struct CommandLine {
  std::string program;
  std::vector<std::string> arguments;
  CommandInfo* describe = nullptr;  // if set, the command stores its options there and does nothing else
};

struct Command {
  const char* name;
  const char* summary;
  int (*run)(const CommandLine& line);
};
// All commands, in the order of the help. The first is the one that may be left out.
std::span<const Command> commands();
// Options that stand in place of a command.
std::span<const OptionInfo> program_options();

int train(const CommandLine& line);
int eval(const CommandLine& line);
int play(const CommandLine& line);
int league(const CommandLine& line);
int record(const CommandLine& line);
int create(const CommandLine& line);  // `new`
int bench(const CommandLine& line);
int doctor(const CommandLine& line);
int envs(const CommandLine& line);
int explain_config(const CommandLine& line);
int trace(const CommandLine& line);
int check(const CommandLine& line);
int report_runs(const CommandLine& line);
int list_runs(const CommandLine& line);
int show_status(const CommandLine& line);
int reproduce(const CommandLine& line);
int complete(const CommandLine& line);  // for scripts of shells; in no list of commands
int completion(const CommandLine& line);
int man(const CommandLine& line);

}  // namespace wd::cli
