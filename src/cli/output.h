// output.h: results on stdout, and the small tables that people read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/report/table.h"

namespace wd::cli {

// Writes to stdout. A reader that went away (`| head -1`) is no error; anything else throws
// std::runtime_error.
void print(std::string_view text);

using run::table;

// "a, b, c".
std::string join(const std::vector<std::string>& words, std::string_view between = ", ");

}  // namespace wd::cli
