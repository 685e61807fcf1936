// shell_scripts.cpp: what all scripts need.
#include "src/cli/shell_scripts.h"

#include <algorithm>
#include <cctype>

namespace wd::cli {

std::string identifier(const std::string& program) {
  std::string name = program;
  std::ranges::replace_if(name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

std::string filled(std::string text, const std::vector<std::pair<std::string, std::string>>& parts) {
  for (const auto& [key, value] : parts) {
    for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + value.size()))
      text.replace(at, key.size(), value);
  }
  return text;
}

}  // namespace wd::cli
