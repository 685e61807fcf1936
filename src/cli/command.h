// command.h: the commands of the program; each has a file of its own, and returns the exit code.
#pragma once

#include <string>
#include <vector>

namespace wd::cli {

// What stands on the command line: the program's name, and everything after the command's.
struct CommandLine {
  std::string program;
  std::vector<std::string> arguments;
};

int train(const CommandLine& line);
int eval(const CommandLine& line);
int bench(const CommandLine& line);
int envs(const CommandLine& line);
int trace(const CommandLine& line);
int check(const CommandLine& line);

}  // namespace wd::cli
