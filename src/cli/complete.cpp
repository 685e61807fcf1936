// complete.cpp: `wdtrain complete WORDS...`: what can complete the last of these words, which are those after
// the program's name up to the cursor. Scripts of shells call it (completion.cpp); it is in no help.
//
// The first line of its output names the kind: words, prefixes (words that no space follows), files, folders
// (besides the candidates), or nothing. Each further line is a candidate and, after a tab, its description.
// Those that do not begin with the typed word are printed too, because shells differ in how they match. After
// "--option=", only the value is completed. Shells find files and folders themselves.
#include <algorithm>
#include <filesystem>

#include "src/base/join.h"
#include "src/base/printable.h"
#include "src/cli/description.h"
#include "src/cli/output.h"
#include "src/cli/programs.h"
#include "src/cli/setup.h"
#include "src/config/setting_table.h"

namespace wd::cli {
namespace {

namespace fs = std::filesystem;

// The environment on the command line, or all.
std::vector<std::string> environments_of(const std::vector<std::string>& words) {
  const std::vector<std::string> all = environment_names();
  std::vector<std::string> given;
  for (std::size_t k = 0; k < words.size(); ++k) {
    std::string name = words[k].starts_with("--env=") ? words[k].substr(words[k].find('=') + 1) : "";
    if ((words[k] == "-e" || words[k] == "--env") && k + 1 < words.size()) name = words[k + 1];
    if (contains(all, name)) given = {name};
  }
  return given.empty() ? all : given;
}

struct Completion {
  std::string kind = "words", lines;
  std::vector<std::string> known;

  void add(const std::string& word, const std::string& text = "") {
    if (on_one_line(word) != word || contains(known, word)) return;
    known.push_back(word);
    lines += word + (text.empty() ? "" : "\t" + on_one_line(text)) + "\n";
  }

  void add_options(std::span<const OptionInfo> options) {
    for (const OptionInfo& option : options)
      for (const std::string& name : option.names) add(name, option.help);
  }

  // Runs have a config.yaml. Folders that cannot be read are left out, as by the completion of files.
  void add_runs(const fs::path& folder, int levels) {
    std::error_code error, ignored;
    for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (name.starts_with('.') || name == "checkpoints" || !entry->is_directory(ignored)) continue;
      if (fs::is_regular_file(entry->path() / "config.yaml", ignored)) {
        add((folder / name).string());
      } else if (levels > 1) {
        add_runs(folder / name, levels - 1);
      }
    }
  }

  // "KEY=" or, if `typed` is of the form KEY=VALUE, the values of KEY.
  void add_settings(const std::string& environment, const std::string& typed, const std::string& section) {
    const std::size_t equals = typed.find('=');
    if (equals == std::string::npos) kind = "prefixes";
    for (const FieldInfo& field : settings_of({.env = environment, .search = config_folders()})) {
      if (equals == std::string::npos) {
        if (field.name.starts_with(section)) add(field.name + "=", field.help);
      } else if (field.name == typed.substr(0, equals)) {
        for (const std::string& word : words_of(field.type)) add(field.name + "=" + word);
      }
    }
  }

  void add_value(const ValueHint& hint, const std::string& typed, const std::vector<std::string>& words) {
    const bool runs = hint.by == Completes::kRuns, parameters = hint.by == Completes::kParameters;
    if (hint.by == Completes::kFiles) kind = "files";
    if (runs || hint.by == Completes::kFolders) kind = "folders";
    if (runs) add_runs("", 1);
    if (runs) add_runs("runs", 4);
    for (const std::string& word : hint.words) add(word);
    if (hint.by == Completes::kKeys)
      for (const FieldInfo& field : general_settings()) add(field.name, field.help);
    if (hint.by == Completes::kEnvironments)
      for (const std::string& name : environments_of({})) add(name);
    if (parameters || hint.by == Completes::kSettings)
      for (const std::string& name : environments_of(words))
        add_settings(name, typed, parameters ? "env." : "");
  }
};

}  // namespace

int complete(const CommandLine& line) {
  std::vector<std::string> words = line.arguments;
  if (words.empty()) words.emplace_back();
  const bool first = words.size() == 1;
  const Command* command = &commands().front();
  for (const Command& one : commands())
    if (!first && words.front() == one.name) command = &one;
  const std::vector<OptionInfo> options = describe_command(*command, line.program).options;

  const std::string& last = words.back();
  const bool dashed = last.starts_with('-');
  const std::size_t equals = last.starts_with("--") ? last.find('=') : std::string::npos;
  const bool assigned = equals != std::string::npos;
  const std::string name = assigned ? last.substr(0, equals) : first ? "" : words[words.size() - 2];
  // The value of an option that may stand alone is not confused with the next option.
  auto option = std::ranges::find_if(options, [&](const OptionInfo& one) {
    return !one.type.empty() && contains(one.names, name) && (assigned || !one.value_optional || !dashed);
  });
  if (option == options.end() && !dashed && !first)
    option = std::ranges::find_if(options, [](const OptionInfo& one) { return one.names.empty(); });

  Completion completion;
  if (option != options.end()) {
    completion.add_value(hint_of(*option), assigned ? last.substr(equals + 1) : last, words);
  } else if (dashed && !assigned) {
    completion.add_options(options);
    if (first) completion.add_options(program_options());
  } else if (first && !assigned) {
    for (const Command& one : commands()) completion.add(one.name, one.summary);
    for (const PythonTool& tool : kPythonTools) completion.add(tool.command, tool.summary);
  }
  const bool empty = completion.kind == "words" && completion.lines.empty();
  print((empty ? "nothing" : completion.kind) + "\n" + completion.lines);
  return 0;
}

}  // namespace wd::cli
