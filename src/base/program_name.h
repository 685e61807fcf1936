// program_name.h: the name of this program, for messages that name one of its commands, and the command line
// that starts it again.
#pragma once

#include <string>
#include <vector>

namespace wd {

// "wdtrain" until set_program_name() is called.
const std::string& program_name();
void set_program_name(std::string name);

// Returns the path of the running program and its arguments. Throws std::runtime_error if /proc cannot be
// read.
std::vector<std::string> own_command();

}  // namespace wd
