// command.h: the command line of this process.
#pragma once

#include <string>
#include <vector>

namespace wd::launcher {

// Returns the path of the running program and its arguments. Throws std::runtime_error if /proc cannot be
// read.
std::vector<std::string> own_command();

}  // namespace wd::launcher
