// completion.cpp: `wdtrain completion SHELL` and `wdtrain man`.
#include "src/cli/output.h"
#include "src/cli/setup.h"
#include "src/cli/shell_scripts.h"

namespace wd::cli {
namespace {

constexpr struct {
  const char* name;
  std::string (*script)(const Description& description);
} kShells[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};

std::vector<std::string> shell_names() {
  std::vector<std::string> names;
  for (const auto& shell : kShells) names.emplace_back(shell.name);
  return names;
}

}  // namespace

int completion(const CommandLine& line) {
  Arguments arguments(
      line, "completion",
      concat("Print a script that completes commands, options, environments, settings and run folders "
             "in a shell. For bash: source <(",
             line.program, " completion bash)"));
  std::string shell;
  arguments.word("SHELL", shell, join(shell_names(), ", "), join(shell_names(), " | "));
  if (!arguments.parse()) return 0;
  if (shell.empty()) throw UsageError("completion needs a shell: " + join(shell_names(), ", "));
  print(kShells[parse_word("completion", shell, shell_names())].script(describe_program(line.program)));
  return 0;
}

int man(const CommandLine& line) {
  Arguments arguments(line, "man",
                      concat("Print the manual page. To read it: ", line.program, " man | man -l -"));
  if (!arguments.parse()) return 0;
  print(manual_page(describe_program(line.program)));
  return 0;
}

}  // namespace wd::cli
