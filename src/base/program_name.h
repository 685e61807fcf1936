// program_name.h: the name of this program, for messages that name one of its commands.
#pragma once

#include <string>

namespace wd {

// "wdtrain" until set_program_name() is called.
const std::string& program_name();
void set_program_name(std::string name);

}  // namespace wd
