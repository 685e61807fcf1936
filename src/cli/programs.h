// programs.h: other programs that commands start: a browser, and the tools of the Python package.
#pragma once

#include <string>
#include <vector>

namespace wd::cli {

// Returns the path of an executable file: `name` itself if it contains a slash, else the first one in PATH or
// in `more` folders. Empty if there is none.
std::string find_program(const std::string& name, const std::vector<std::string>& more = {});

// What shows a page: the program of $BROWSER, or xdg-open, or open, and its first arguments. Throws
// UsageError if there is none.
std::vector<std::string> browser();
// Lets it show a file. No shell is involved. Throws std::runtime_error if it fails at once.
void open_page(const std::vector<std::string>& browser, const std::string& file);

// A command that the Python package implements.
struct PythonTool {
  const char* command;  // "export"
  const char* program;  // "wdtrain-export"
  const char* summary;
};
const std::vector<PythonTool>& python_tools();
// Replaces this process by the tool. Throws UsageError if it is not installed.
[[noreturn]] void run_python_tool(const PythonTool& tool, std::vector<std::string> arguments);

}  // namespace wd::cli
