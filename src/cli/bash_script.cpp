// bash_script.cpp: the completion script for bash.
#include <set>

#include "src/base/join.h"
#include "src/base/program_name.h"
#include "src/cli/shell_scripts.h"
#include "wd/error.h"

namespace wd::cli {
namespace {

constexpr const char* kScript =
    R"script(# Completion of @PROGRAM@ for bash, written by `@PROGRAM@ completion bash`.

_@ID@_options() {
  case $1 in
@OPTIONS@
  esac
}

# What completes the value of an option, or a word (WORD).
_@ID@_kind() {
  case $1 in
@KINDS@
  esac
}

# Settings of an environment; without an argument, of all.
_@ID@_settings() {
  echo @COMMON@
  case $1 in
@SETTINGS@
  esac
}

_@ID@_values() {
  case $1 in
@VALUES@
  esac
}

_@ID@_runs() {
  local file
  for file in {.,runs,runs/*,runs/*/*,runs/*/*/*}/*/config.yaml; do
    if [[ -f $file && $file != */checkpoints/* ]]; then file=${file#./} && echo "${file%/config.yaml}"; fi
  done
  compgen -d -- "$1"
}

_@ID@_starting_with() {
  local word
  while read -r word; do if [[ $word == "$1"* ]]; then echo "$word"; fi; done
}

_@ID@_complete() {
  local line=${COMP_LINE:0:COMP_POINT} command=@FIRST@ cur option environment='' kind list words k before=''
  read -r -a words <<<"$line"
  if [[ $line == *[[:space:]] ]]; then words+=(''); fi
  COMPREPLY=()
  if ((${#words[@]} > 2)) && [[ -n $(_@ID@_options "${words[1]}") ]]; then command=${words[1]}; fi
  for ((k = 1; k < ${#words[@]}; ++k)); do
    case ${words[k]} in
      --env=*) environment=${words[k]#--env=} ;;
      -e | --env) environment=${words[k + 1]:-} ;;
    esac
  done
  case " @ENVIRONMENTS@ " in *" $environment "*) ;; *) environment='' ;; esac
  cur=${words[-1]} option=${words[-2]}
  if [[ $cur == --*=* ]]; then
    option=${cur%%=*} before=${cur%%=*}= cur=${cur#*=}
  fi
  kind=''
  if [[ $option == -* ]]; then kind=$(_@ID@_kind "$command $option"); fi
  # The value of an option that may stand alone is not confused with the next option.
  if [[ $kind == optional:* ]]; then
    kind=${kind#optional:}
    if [[ -z $before && $cur == -* ]]; then kind=''; fi
  fi
  if [[ -z $kind ]]; then
    before=''
    if [[ $cur == -* ]]; then
      kind="words:$(_@ID@_options "$command")"
      if ((${#words[@]} == 2)); then kind+=' @TOP@'; fi
    elif ((${#words[@]} == 2)); then
      kind='words:@COMMANDS@'
    else
      kind=$(_@ID@_kind "$command WORD")
    fi
  fi
  case $kind in
    environments) kind='words:@ENVIRONMENTS@' ;;
    settings | parameters)
      if [[ $cur == *=* ]]; then
        before+=${cur%%=*}= kind="words:$(_@ID@_values "${cur%%=*}")" cur=${cur#*=}
      else
        list=$(_@ID@_settings "$environment")
        if [[ $kind == parameters ]]; then list=$(printf '%s\n' $list | grep '^env\.'); fi
        kind="words:$list"
        compopt -o nospace 2>/dev/null
      fi
      ;;
  esac
  case $kind in
    words:*) mapfile -t COMPREPLY < <(compgen -W "${kind#words:}" -- "$cur") ;;
    files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    folders) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
    runs)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(_@ID@_runs "$cur" | sort -u | _@ID@_starting_with "$cur")
      ;;
  esac
  # readline replaces the part of the word that follows the last `=`, unless `=` breaks no words.
  if [[ -n $before && ${COMP_WORDBREAKS-=} != *=* ]]; then COMPREPLY=("${COMPREPLY[@]/#/$before}"); fi
}

complete -F _@ID@_complete @PROGRAM@
)script";

std::string kind_of(const OptionInfo& option) {
  const ValueHint hint = hint_of(option);
  const char* const kNames[] = {"any",          "",         "files",     "folders", "runs",
                                "environments", "settings", "parameters"};
  const std::string kind = hint.by == Completes::kWords ? "words:" + join(hint.words, " ")
                                                        : kNames[static_cast<std::size_t>(hint.by)];
  return (option.value_optional ? "optional:" : "") + kind;
}

// A line of a case statement.
std::string branch(const std::string& pattern, const std::string& text) {
  return "    " + pattern + ") echo " + shell_word(text) + " ;;\n";
}

std::string assigned(const std::vector<FieldInfo>& settings) {
  std::vector<std::string> words;
  for (const FieldInfo& field : settings) words.push_back(field.name + "=");
  return join(words, " ");
}

// The words of each setting that has some. Environments may differ in a setting of the same name: the first
// one decides.
std::string values_of(const Description& description) {
  std::string text;
  std::set<std::string> known;
  const auto add = [&](const std::vector<FieldInfo>& settings) {
    for (const FieldInfo& field : settings) {
      const std::vector<std::string> words = words_of(field.type);
      if (!words.empty() && known.insert(field.name).second) text += branch(field.name, join(words, " "));
    }
  };
  add(description.settings);
  for (const EnvironmentDescription& one : description.environments) add(one.settings);
  return text;
}

}  // namespace

std::string bash_script(const Description& description) {
  std::string options, kinds, settings, all;
  std::vector<std::string> commands, top;
  for (const CommandInfo& command : description.commands) {
    std::vector<std::string> names;
    commands.push_back(command.name);
    for (const OptionInfo& option : command.options) {
      names.insert(names.end(), option.names.begin(), option.names.end());
      if (option.type.empty()) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : option.names) patterns.push_back(shell_word(command.name + " " + name));
      if (patterns.empty()) patterns.push_back(shell_word(command.name + " WORD"));
      kinds += branch(join(patterns, " | "), kind_of(option));
    }
    options += branch(command.name, join(names, " "));
  }
  for (const OptionInfo& option : program_options())
    top.insert(top.end(), option.names.begin(), option.names.end());
  for (const EnvironmentDescription& one : description.environments) {
    settings += branch(one.name, assigned(one.settings));
    all += (all.empty() ? "" : " ") + assigned(one.settings);
  }
  settings += branch("*", all);
  return filled(kScript, {{"@ID@", identifier(description.program)},
                          {"@FIRST@", commands.front()},
                          {"@ENVIRONMENTS@", join(description.environment_names(), " ")},
                          {"@COMMANDS@", join(commands, " ")},
                          {"@TOP@", join(top, " ")},
                          {"@PROGRAM@", description.program},
                          {"@OPTIONS@\n", options},
                          {"@KINDS@\n", kinds},
                          {"@COMMON@", shell_word(assigned(description.settings))},
                          {"@SETTINGS@\n", settings},
                          {"@VALUES@\n", values_of(description)}});
}

}  // namespace wd::cli
