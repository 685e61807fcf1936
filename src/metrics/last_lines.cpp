// last_lines.cpp: reads at most the last megabyte of a file.
#include "src/metrics/last_lines.h"

#include <algorithm>
#include <deque>
#include <fstream>

namespace wd {

std::vector<std::string> last_lines(const std::filesystem::path& path, std::size_t count) {
  std::error_code unreadable;
  if (!std::filesystem::is_regular_file(path, unreadable)) return {};
  constexpr std::streamoff kMaxBytes = 1 << 20;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return {};
  const std::streamoff begin = std::max<std::streamoff>(file.tellg() - std::streamoff{kMaxBytes}, 0);
  file.seekg(begin);
  std::deque<std::string> lines;
  std::string line;
  if (begin > 0) std::getline(file, line);  // the rest of a line
  while (std::getline(file, line) && !file.eof()) {
    lines.push_back(line);
    if (lines.size() > count) lines.pop_front();
  }
  return {lines.begin(), lines.end()};
}

}  // namespace wd
