// output.h: writes results to stdout or files, and formats small tables.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/join.h"
#include "src/report/table.h"

namespace wd::cli {

// Writes to stdout. It is not an error if the reader has closed the pipe (`| head -1`). Throws
// std::runtime_error for any other error.
void print(std::string_view text);

// Throws UsageError if the folder of a file that this option names does not exist.
void check_place(const std::string& option, const std::string& file);

// Writes to a file, or to stdout if `file` is "-".
void write_result(const std::string& file, const std::string& text);

// Replaces every occurrence of each key.
std::string filled(std::string text, const std::vector<std::pair<std::string, std::string>>& parts);

// The parts of a text between separators. A text that ends with one has no empty part behind it.
std::vector<std::string> split(const std::string& text, char separator);

using report::table;

}  // namespace wd::cli
