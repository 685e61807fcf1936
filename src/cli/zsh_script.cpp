// zsh_script.cpp: the completion script for zsh.
#include <set>

#include "src/base/join.h"
#include "src/base/program_name.h"
#include "src/cli/shell_scripts.h"
#include "wd/error.h"

namespace wd::cli {
namespace {

constexpr const char* kScript = R"script(#compdef @PROGRAM@
# Completion of @PROGRAM@ for zsh, written by `@PROGRAM@ completion zsh`.

_@ID@_runs() {
  local -a runs
  runs=(runs/{,*/,*/*/,*/*/*/}*/config.yaml(N:h))
  runs=(${runs:#*/checkpoints/*})
  compadd -f -- $runs
  _files -/
}

_@ID@_value() {
  case $1 in
@VALUES@
  esac
}

# Settings of the environment on the command line, or of all. The last argument is a pattern for them.
_@ID@_settings() {
  if compset -P '*='; then
    _@ID@_value ${${IPREFIX%=}##*[= ]}
    return
  fi
  local -a settings
  settings=(@COMMON@)
  local environment=${words[(I)(-e|--env)]}
  case ${words[environment + 1]} in
@SETTINGS@
  esac
  local pattern=${@[-1]}
  compadd -S = -q -- ${(M)settings:#${~pattern}}
}

_@ID@() {
  local -a commands
  commands=(
@COMMANDS@
  )
  local command=@FIRST@
  if ((CURRENT == 2)) && [[ $PREFIX != -* ]]; then
    _describe command commands
    return
  fi
  if ((CURRENT > 2)) && ((${commands[(I)${words[2]}:*]})); then
    command=${words[2]}
    shift words
    ((CURRENT--))
  fi
  case $command in
@OPTIONS@
  esac
}

if [[ ${funcstack[1]} == _@ID@ ]]; then _@ID@ "$@"; else compdef _@ID@ @PROGRAM@; fi
)script";

// Text within an argument of _arguments.
std::string escaped(const std::string& text) {
  return filled(text, {{"\\", "\\\\"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}});
}

std::string action_of(const OptionInfo& option, const Description& description) {
  const std::string id = "_" + identifier(description.program);
  const ValueHint hint = hint_of(option);
  switch (hint.by) {
    case Completes::kWords:
      return "(" + join(hint.words, " ") + ")";
    case Completes::kFiles:
      return "_files";
    case Completes::kFolders:
      return "_files -/";
    case Completes::kRuns:
      return id + "_runs";
    case Completes::kEnvironments:
      return "(" + join(description.environment_names(), " ") + ")";
    case Completes::kSettings:
      return id + "_settings \\*";
    case Completes::kParameters:
      return id + "_settings env.\\*";
    case Completes::kNothing:
      break;
  }
  return " ";
}

// One argument of _arguments per name of the option.
std::string specification(const OptionInfo& option, const Description& description) {
  const std::string value =
      concat(option.value_optional ? "::" : ":", escaped(option.type), ":", action_of(option, description));
  if (option.names.empty()) return " \\\n        " + shell_word("1" + value);
  std::string text;
  for (const std::string& name : option.names) {
    const std::string others = option.repeatable ? "*" : "(" + join(option.names, " ") + ")";
    const std::string equals = option.type.empty() ? "" : name.starts_with("--") ? "=" : "+";
    text += " \\\n        " + shell_word(concat(others, name, equals, "[", escaped(option.help), "]",
                                                option.type.empty() ? "" : value));
  }
  return text;
}

std::string names_of(const std::vector<FieldInfo>& settings) {
  std::vector<std::string> names;
  for (const FieldInfo& field : settings) names.push_back(field.name);
  return join(names, " ");
}

std::string add_values(const std::vector<FieldInfo>& settings, std::set<std::string>& known) {
  std::string text;
  for (const FieldInfo& field : settings) {
    const std::vector<std::string> words = words_of(field.type);
    if (!words.empty() && known.insert(field.name).second)
      text += "    " + field.name + ") compadd -- " + join(words, " ") + " ;;\n";
  }
  return text;
}

}  // namespace

std::string zsh_script(const Description& description) {
  std::string commands, options, settings, all;
  for (const CommandInfo& command : description.commands) {
    commands += "    " + shell_word(command.name + ":" + filled(command.summary, {{":", "\\:"}})) + "\n";
    options += "    " + command.name + ") _arguments -s";
    for (const OptionInfo& option : command.options) options += specification(option, description);
    if (&command == &description.commands.front())
      for (const OptionInfo& option : program_options()) {
        if (option.names.front() != "-h") options += specification(option, description);
      }
    options += " ;;\n";
  }
  std::set<std::string> known;
  std::string values = add_values(description.settings, known);
  for (const EnvironmentDescription& one : description.environments) {
    settings += "    " + one.name + ") settings+=(" + names_of(one.settings) + ") ;;\n";
    all += (all.empty() ? "" : " ") + names_of(one.settings);
    values += add_values(one.settings, known);
  }
  settings += "    *) settings+=(" + all + ") ;;\n";
  return filled(kScript, {{"@ID@", identifier(description.program)},
                          {"@FIRST@", description.commands.front().name},
                          {"@PROGRAM@", description.program},
                          {"@COMMANDS@\n", commands},
                          {"@OPTIONS@\n", options},
                          {"@COMMON@", names_of(description.settings)},
                          {"@SETTINGS@\n", settings},
                          {"@VALUES@\n", values}});
}

}  // namespace wd::cli
