// program_name.cpp: the name, which main() sets once, and the command line from /proc/self.
#include "src/base/program_name.h"

#include <filesystem>
#include <sstream>
#include <utility>

#include "src/base/files.h"
#include "wd/error.h"

namespace wd {
namespace {

std::string& name() {
  static std::string name = "wdtrain";
  return name;
}

}  // namespace

const std::string& program_name() { return name(); }
void set_program_name(std::string given) { name() = std::move(given); }

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
