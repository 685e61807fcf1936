// output.cpp: writes results.
#include "src/cli/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "src/base/atomic_file.h"
#include "wd/error.h"

namespace wd::cli {

void print(std::string_view text) {
  errno = 0;
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  WD_CHECK(written || errno == EPIPE, "cannot write to stdout: ", std::strerror(errno));
}

void check_place(const std::string& option, const std::string& file) {
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  std::error_code unknown;
  if (!folder.empty() && !std::filesystem::is_directory(folder, unknown))
    throw UsageError(concat(option, " ", file, ": there is no folder ", folder.string()));
}

void write_result(const std::string& file, const std::string& text) {
  if (file == "-") return print(text);
  write_named_file(file, text);
}

std::string filled(std::string text, const std::vector<std::pair<std::string, std::string>>& parts) {
  for (const auto& [key, value] : parts) {
    for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + value.size()))
      text.replace(at, key.size(), value);
  }
  return text;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

}  // namespace wd::cli
