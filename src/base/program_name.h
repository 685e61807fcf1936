// program_name.h: what this program is called, for messages that name one of its commands.
#pragma once

#include <string>

namespace wd {

// "wdtrain" until set_program_name() is called.
const std::string& program_name();
void set_program_name(std::string name);

}  // namespace wd
