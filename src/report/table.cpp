// table.cpp: makes every column as wide as its widest cell.
#include "src/report/table.h"

#include <algorithm>
#include <cstdlib>

namespace wd::report {

std::string table(const std::vector<std::vector<std::string>>& rows, int indent) {
  std::vector<std::size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t k = 0; k < row.size(); ++k) widths[k] = std::max(widths[k], row[k].size());
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string line(static_cast<std::size_t>(indent), ' ');
    for (std::size_t k = 0; k < row.size(); ++k)
      line += row[k] + std::string(widths[k] - row[k].size() + 2, ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::string padded(std::string text, int width) {
  const auto wanted = static_cast<std::size_t>(std::abs(width));
  const std::size_t missing = std::max(wanted, text.size()) - text.size();
  return text.insert(width < 0 ? text.size() : 0, missing, ' ');
}

}  // namespace wd::report
