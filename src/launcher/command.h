// command.h: what a process was started with.
#pragma once

#include <string>
#include <vector>

namespace wd::launcher {

// The running program's file and its arguments. Throws std::runtime_error where /proc cannot be read.
std::vector<std::string> own_command();

}  // namespace wd::launcher
