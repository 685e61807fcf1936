// programs.cpp: finds and starts programs.
#include "src/cli/programs.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "src/base/join.h"
#include "src/base/program_name.h"
#include "src/cli/output.h"
#include "src/cli/runs.h"
#include "wd/error.h"

extern char** environ;

namespace wd::cli {
namespace {

namespace fs = std::filesystem;

// The parts of a text that are not empty.
std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts = split(text, separator);
  std::erase(parts, "");
  return parts;
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_executable(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

// Returns the path of an executable file: `name` itself if it contains a slash, else the first one in PATH or
// in `more` folders. Empty if there is none.
std::string find_program(const std::string& name, const std::vector<std::string>& more = {}) {
  if (name.find('/') != std::string::npos) return is_executable(name) ? name : "";
  std::vector<std::string> folders = parts_of(variable("PATH"), ':');
  folders.insert(folders.end(), more.begin(), more.end());
  for (const std::string& folder : folders)
    if (const std::string path = (fs::path(folder) / name).string(); is_executable(path)) return path;
  return "";
}

// As execv() and posix_spawn() take them.
std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

std::vector<std::string> browser() {
  // As Python and xdg-open read it: commands separated by colons, whose words are separated by blanks.
  const std::string wanted = variable("BROWSER");
  for (const std::string& command : parts_of(wanted, ':')) {
    std::vector<std::string> words = parts_of(command, ' ');
    if (words.empty()) continue;
    words[0] = find_program(words[0]);
    if (!words[0].empty()) return words;
  }
  if (!wanted.empty())
    throw UsageError(concat("--open: BROWSER=", shell_word(wanted),
                            " names no program that can be run: set it to one in PATH, or unset it"));
  for (const char* name : {"xdg-open", "open"})
    if (const std::string path = find_program(name); !path.empty()) return {path};
  throw UsageError(
      "--open: there is neither xdg-open nor open in PATH: set BROWSER to a browser, or leave out --open and "
      "open the page yourself");
}

void open_page(const std::vector<std::string>& browser, const std::string& file) {
  const std::string page = fs::absolute(file).string();  // never an option of the browser
  std::vector<std::string> words;
  bool placed = false;
  for (const std::string& word : browser) {
    placed = placed || word.find("%s") != std::string::npos;
    words.push_back(filled(word, {{"%s", page}}));
  }
  if (!placed) words.push_back(page);
  ::pid_t child = 0;
  const std::vector<char*> arguments = pointers_to(words);
  const int failed = ::posix_spawn(&child, words[0].c_str(), nullptr, nullptr, arguments.data(), environ);
  const std::string remedy = concat(": open ", page, " in a browser yourself");
  if (failed != 0)
    throw std::runtime_error(concat("--open: ", words[0], ": ", std::strerror(failed), remedy));
  // A browser may stay, but what only passes the page on ends at once.
  constexpr int kLooks = 40;
  for (int look = 0; look < kLooks; ++look) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == child) {
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
      throw std::runtime_error(concat("--open: ", words[0], " failed", remedy));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

void run_python_tool(const PythonTool& tool, std::vector<std::string> arguments) {
  const fs::path self = fs::path(own_command().front()).parent_path();
  const std::string path = find_program(tool.program, {self.string(), (self / "../.venv/bin").string()});
  if (path.empty())
    throw UsageError(concat(tool.command, " needs the program ", tool.program,
                            " of the Python package, which is neither in PATH nor in .venv: install it by "
                            "`./wd python`, or `pip install ./python` (docs/python.md)"));
  if (std::string(tool.command) == "export") {
    for (std::size_t k = 0; k < arguments.size(); ++k) {
      const bool first = k == 0 && !arguments[k].starts_with('-');
      if (first || (k > 0 && arguments[k - 1] == "--run")) arguments[k] = one_run(arguments[k]);
    }
  }
  ::setenv("WDTRAIN", own_command().front().c_str(), 0);  // what it starts in turn
  arguments.insert(arguments.begin(), path);
  ::execv(path.c_str(), pointers_to(arguments).data());
  throw std::runtime_error(concat(path, ": cannot be run: ", std::strerror(errno)));
}

}  // namespace wd::cli
