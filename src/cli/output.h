// output.h: results on stdout, and the small tables that people read.
#pragma once

#include <string>
#include <string_view>

#include "src/base/join.h"
#include "src/report/table.h"

namespace wd::cli {

// Writes to stdout. A reader that went away (`| head -1`) is no error; anything else throws
// std::runtime_error.
void print(std::string_view text);

// To a file, or for "-" to stdout.
void write_result(const std::string& file, const std::string& text);

using run::table;

}  // namespace wd::cli
