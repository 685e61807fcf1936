// program_name.cpp: the name, which main() sets once, and the command line from /proc/self.
#include "src/base/program_name.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "src/base/files.h"
#include "src/base/printable.h"
#include "wd/error.h"

namespace wd {
namespace {

std::string& name() {
  static std::string name = "wdtrain";
  return name;
}
std::filesystem::path& path() {
  static std::filesystem::path path = "wdtrain";
  return path;
}

// For bash and zsh. A terminal shows it as it is.
std::string escaped_word(const std::string& word) {
  std::string text = "$'";
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    std::array<char, 8> escape{};
    std::snprintf(escape.data(), escape.size(), "\\x%02x", byte);
    const bool plain = byte >= ' ' && byte < 0x7f && c != '\'' && c != '\\';
    text += plain ? std::string(1, c) : escape.data();
  }
  return text + "'";
}

}  // namespace

const std::string& program_name() { return name(); }

std::string program_command() {
  if (!path().is_absolute()) return path().string();
  const std::filesystem::path below = path().lexically_relative(std::filesystem::current_path());
  return below.empty() || *below.begin() == ".." ? path().string() : below.string();
}

std::string shell_word(const std::string& word) {
  const auto is_plain = [](unsigned char c) { return std::isalnum(c) || std::strchr("_-./=:,+@%", c); };
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return word;
  if (without_controls(word) != word) return escaped_word(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

void set_program(const char* called) {
  path() = called;
  name() = path().filename().string();
}

std::vector<std::string> own_command() {
  std::vector<std::string> command;
  std::istringstream words(read_whole("/proc/self/cmdline").value_or(""));
  for (std::string word; std::getline(words, word, '\0');) command.push_back(word);
  WD_CHECK(!command.empty(),
           "/proc/self/cmdline cannot be read: a launcher needs it to start this program again");
  command[0] = std::filesystem::read_symlink("/proc/self/exe").string();
  return command;
}

}  // namespace wd
