// fish_script.cpp: the completion script for fish.
#include "src/base/join.h"
#include "src/cli/shell_scripts.h"

namespace wd::cli {
namespace {

constexpr const char* kScript =
    R"script(# Completion of @PROGRAM@ for fish, written by `@PROGRAM@ completion fish`.

function __@ID@_runs
    for file in */config.yaml runs/*/config.yaml runs/*/*/config.yaml runs/*/*/*/config.yaml
        string replace '/config.yaml' '' -- $file
    end
    __fish_complete_directories (commandline -ct)
end

function __@ID@_environment
    set -l words (commandline -opc)
    for k in (seq (count $words))
        switch $words[$k]
            case -e --env
                echo $words[(math $k + 1)]
            case '--env=*'
                string replace -- --env= '' $words[$k]
        end
    end
end

function __@ID@_settings
    printf '%s\n' @COMMON@
    switch (__@ID@_environment)[-1]
@SETTINGS@
    end
end

complete -c @PROGRAM@ -f
@COMMANDS@
@OPTIONS@)script";

// In single quotes, in which fish knows two escapes.
std::string in_quotes(const std::string& text) {
  return "'" + filled(filled(text, {{"\\", "\\\\"}}), {{"'", "\\'"}}) + "'";
}

// "KEY=" or, where words are known, "KEY=WORD" for each of them.
std::string assignments(const std::vector<FieldInfo>& settings) {
  std::vector<std::string> words;
  for (const FieldInfo& field : settings) {
    const std::vector<std::string> values = words_of(field.type);
    for (const std::string& value : values) words.push_back(field.name + "=" + value);
    if (values.empty()) words.push_back(field.name + "=");
  }
  return join(words, " ");
}

std::string value_part(const OptionInfo& option, const Description& description) {
  const std::string id = "__" + identifier(description.program);
  const ValueHint hint = hint_of(option);
  // Without -r, fish also accepts the option alone, and values after `=` only. -x is -r without file names.
  const bool needs = !option.value_optional && !option.names.empty();
  std::string needed = needs ? " -x" : "";
  switch (hint.by) {
    case Completes::kWords:
      return needed + " -a " + in_quotes(join(hint.words, " "));
    case Completes::kFiles:
      return needed + " -F";
    case Completes::kFolders:
      return needed + " -a '(__fish_complete_directories (commandline -ct))'";
    case Completes::kRuns:
      return needed + " -a '(" + id + "_runs)'";
    case Completes::kEnvironments:
      return needed + " -a " + in_quotes(join(description.environment_names(), " "));
    case Completes::kSettings:
      return needed + " -a '(" + id + "_settings)'";
    case Completes::kParameters:
      return needed + " -a '(" + id + "_settings | string match \"env.*\")'";
    case Completes::kNothing:
      break;
  }
  return needed;
}

std::string line_of(const std::string& condition, const OptionInfo& option, const Description& description) {
  std::string text = "complete -c " + description.program + " -n " + in_quotes(condition);
  for (const std::string& name : option.names)
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (!option.type.empty()) text += value_part(option, description);
  return text + " -d " + in_quotes(option.help) + "\n";
}

}  // namespace

std::string fish_script(const Description& description) {
  std::vector<std::string> others;  // all but the command that may be left out
  std::string commands, options, settings, all;
  for (const CommandInfo& command : description.commands) {
    if (&command != &description.commands.front()) others.push_back(command.name);
    commands += "complete -c " + description.program + " -n __fish_use_subcommand -a " + command.name +
                " -d " + in_quotes(command.summary) + "\n";
  }
  for (const OptionInfo& option : program_options())
    commands += line_of("__fish_use_subcommand", option, description);
  for (const CommandInfo& command : description.commands) {
    const bool first = &command == &description.commands.front();
    const std::string condition = first ? "not __fish_seen_subcommand_from " + join(others, " ")
                                        : "__fish_seen_subcommand_from " + command.name;
    for (const OptionInfo& option : command.options) options += line_of(condition, option, description);
  }
  for (const EnvironmentDescription& one : description.environments) {
    settings +=
        "        case " + one.name + "\n            printf '%s\\n' " + assignments(one.settings) + "\n";
    all += (all.empty() ? "" : " ") + assignments(one.settings);
  }
  settings += "        case '*'\n            printf '%s\\n' " + all + "\n";
  return filled(kScript, {{"@ID@", identifier(description.program)},
                          {"@PROGRAM@", description.program},
                          {"@COMMON@", assignments(description.settings)},
                          {"@SETTINGS@\n", settings},
                          {"@COMMANDS@\n", commands},
                          {"@OPTIONS@", options}});
}

}  // namespace wd::cli
