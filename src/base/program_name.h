// program_name.h: the name of this program, commands that messages tell users to type, and the command line
// that starts it again.
#pragma once

#include <string>
#include <vector>

namespace wd {

// "wdtrain" until set_program() is called.
const std::string& program_name();
// What starts this program in the current folder, for commands that users copy: "wdtrain" if it is found in
// PATH, "build/wdtrain" if it lies below the current folder, otherwise as it was called.
std::string program_command();
// The word in single quotes, if a shell would change it otherwise.
std::string shell_word(const std::string& word);
// `called`: argv[0].
void set_program(const char* called);

// Returns the path of the running program and its arguments. Throws std::runtime_error if /proc cannot be
// read.
std::vector<std::string> own_command();

}  // namespace wd
