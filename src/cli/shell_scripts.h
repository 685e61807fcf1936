// shell_scripts.h: completion scripts. They contain all words, so that completing starts no program.
#pragma once

#include "src/cli/description.h"

namespace wd::cli {

std::string bash_script(const Description& description);
std::string zsh_script(const Description& description);
std::string fish_script(const Description& description);
// The manual page in roff.
std::string manual_page(const Description& description);

// The program's name as a part of names of shell functions: "my_program" of "my-program".
std::string identifier(const std::string& program);
// Replaces every occurrence of each key: the parts of a script's template.
std::string filled(std::string text, const std::vector<std::pair<std::string, std::string>>& parts);

}  // namespace wd::cli
