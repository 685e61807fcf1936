// output.cpp: stdout and tables.
#include "src/cli/output.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "wd/error.h"

namespace wd::cli {

void print(std::string_view text) {
  errno = 0;
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  WD_CHECK(written || errno == EPIPE, "cannot write to stdout: ", std::strerror(errno));
}

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

std::string join(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : between).append(word);
  return text;
}

}  // namespace wd::cli
