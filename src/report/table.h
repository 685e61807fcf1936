// table.h: formats a table in columns.
#pragma once

#include <string>
#include <vector>

namespace wd::report {

// Separates columns by two spaces and indents each line. Empty cells stay empty.
std::string table(const std::vector<std::vector<std::string>>& rows, int indent);

// Fills the text up to this width: with spaces before it or, if the width is negative, after it.
std::string padded(std::string text, int width);

}  // namespace wd::report
