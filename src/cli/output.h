// output.h: results on stdout, and the small tables that people read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wd::cli {

// Writes to stdout. A reader that went away (`| head -1`) is no error; anything else throws
// std::runtime_error.
void print(std::string_view text);

// Rows in columns two spaces apart, each line indented. Empty cells stay empty.
std::string table(const std::vector<std::vector<std::string>>& rows, int indent);

// "a, b, c".
std::string join(const std::vector<std::string>& words, std::string_view between = ", ");

}  // namespace wd::cli
