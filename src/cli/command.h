// command.h: the commands of the program. Each is in a separate file and returns the exit code.
#pragma once

#include <string>
#include <vector>

namespace wd::cli {

// The program's name and all arguments after the command.
struct CommandLine {
  std::string program;
  std::vector<std::string> arguments;
};

int train(const CommandLine& line);
int eval(const CommandLine& line);
int play(const CommandLine& line);
int bench(const CommandLine& line);
int reproduce(const CommandLine& line);
int doctor(const CommandLine& line);
int envs(const CommandLine& line);
int trace(const CommandLine& line);
int check(const CommandLine& line);
int report_runs(const CommandLine& line);
int list_runs(const CommandLine& line);
int show_status(const CommandLine& line);

}  // namespace wd::cli
