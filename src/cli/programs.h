// programs.h: other programs that commands start: a browser, and the tools of the Python package.
#pragma once

#include <string>
#include <vector>

namespace wd::cli {

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
inline constexpr PythonTool kPythonTools[] = {
    {"export", "wdtrain-export", "write a policy as ONNX, TorchScript or safetensors (Python)"},
    {"convert", "wdtrain-convert", "make weights of a model of Stable-Baselines3 or CleanRL (Python)"},
    {"sweep", "wdtrain-sweep", "search settings: many trainings, as a file describes them (Python)"}};
// Replaces this process by the tool. Throws UsageError if it is not installed.
[[noreturn]] void run_python_tool(const PythonTool& tool, std::vector<std::string> arguments);

}  // namespace wd::cli
