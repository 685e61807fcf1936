// table.h: columns as people read them.
#pragma once

#include <string>
#include <vector>

namespace wd::run {

// Rows in columns two spaces apart, each line indented. Empty cells stay empty.
std::string table(const std::vector<std::vector<std::string>>& rows, int indent);

}  // namespace wd::run
