// complete.cpp: `wdtrain complete WORDS...`: what can complete the last of these words, which are those after
// the program's name up to the cursor. Scripts of shells call it (completion.cpp); it is in no help.
//
// The first line of its output names the kind: words, prefixes (words that no space follows), files, folders,
// or nothing. Each further line is a candidate and, after a tab, its description. All candidates are printed,
// also those that do not begin with the typed word, because shells differ in how they match. After
// "--option=", only the value is completed. Shells find files and folders themselves.
#include <filesystem>

#include "src/base/join.h"
#include "src/base/printable.h"
#include "src/cli/description.h"
#include "src/cli/output.h"
#include "wd/environment.h"

namespace wd::cli {
namespace {

namespace fs = std::filesystem;

struct Completion {
  std::string kind = "nothing", lines;
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
  void add_settings(const std::vector<FieldInfo>& settings, const std::string& typed,
                    const std::string& section) {
    const std::size_t equals = typed.find('=');
    kind = equals == std::string::npos ? "prefixes" : "words";
    for (const FieldInfo& field : settings) {
      if (equals == std::string::npos && field.name.starts_with(section)) add(field.name + "=", field.help);
      if (typed.substr(0, equals) != field.name || equals == std::string::npos) continue;
      for (const std::string& word : words_of(field.type)) add(field.name + "=" + word);
    }
  }
};

// The environment on the command line, or all.
std::vector<std::string> environments_of(const std::vector<std::string>& words) {
  std::vector<std::string> all, given;
  for (const EnvironmentRow& row : detail::environment_table()) all.emplace_back(row.name);
  for (std::size_t k = 0; k < words.size(); ++k) {
    std::string name = words[k].starts_with("--env=") ? words[k].substr(words[k].find('=') + 1) : "";
    if ((words[k] == "-e" || words[k] == "--env") && k + 1 < words.size()) name = words[k + 1];
    if (contains(all, name)) given = {name};
  }
  return given.empty() ? all : given;
}

}  // namespace

int complete(const CommandLine& line) {
  std::vector<std::string> words = line.arguments;
  if (words.empty()) words.emplace_back();
  const bool first = words.size() == 1;
  std::string last = words.back();
  const Command* command = &commands().front();
  for (const Command& one : commands())
    if (!first && words.front() == one.name) command = &one;
  const std::vector<OptionInfo> options = describe_command(*command, line.program).options;

  const bool dashed = last.starts_with('-'),
             assigned = last.starts_with("--") && last.find('=') != std::string::npos;
  const std::string name = assigned ? last.substr(0, last.find('=')) : first ? "" : words[words.size() - 2];
  ValueHint hint;
  bool is_value = assigned;
  for (const OptionInfo& option : options) {
    const bool word = option.names.empty() && !dashed && !first;
    // The value of an option that may stand alone is not confused with the next option.
    const bool value = !option.type.empty() && contains(option.names, name) &&
                       (assigned || !option.value_optional || !dashed);
    if (value || (word && !is_value)) hint = hint_of(option);
    is_value = is_value || value;
  }
  if (assigned) last.erase(0, name.size() + 1);

  Completion completion;
  if (!is_value && dashed) {
    hint.by = Completes::kWords;
    completion.add_options(options);
    if (first) completion.add_options(program_options());
  } else if (!is_value && first) {
    hint.by = Completes::kWords;
    for (const Command& one : commands()) completion.add(one.name, one.summary);
  }
  switch (hint.by) {
    case Completes::kNothing:
      break;
    case Completes::kWords:
    case Completes::kEnvironments:
      completion.kind = "words";
      for (const std::string& word : hint.by == Completes::kWords ? hint.words : environments_of({}))
        completion.add(word);
      break;
    case Completes::kFiles:
      completion.kind = "files";
      break;
    case Completes::kRuns:
      completion.add_runs("", 1);
      completion.add_runs("runs", 4);
      [[fallthrough]];
    case Completes::kFolders:
      completion.kind = "folders";
      break;
    case Completes::kSettings:
    case Completes::kParameters:
      for (const std::string& environment : environments_of(words))
        completion.add_settings(settings_of(environment), last,
                                hint.by == Completes::kParameters ? "env." : "");
  }
  print(completion.kind + "\n" + completion.lines);
  return 0;
}

}  // namespace wd::cli
