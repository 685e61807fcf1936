// completion.cpp: `wdtrain completion SHELL` and `wdtrain man`. The scripts ask the program that the user
// typed (complete.cpp), and evaluate neither the words of the command line nor its answer.
#include <algorithm>
#include <cctype>

#include "src/base/program_name.h"
#include "src/cli/description.h"
#include "src/cli/output.h"
#include "src/cli/setup.h"

namespace wd::cli {
namespace {

// readline replaces only what follows the last of COMP_WORDBREAKS in a word.
constexpr const char* kBash = R"script(_@ID@_complete() {
  local line=${COMP_LINE:0:COMP_POINT} words list kind before='' word
  read -r -a words <<<"$line"
  if [[ $line == *[[:space:]] ]]; then words+=(''); fi
  local typed=${words[-1]} value=${words[-1]}
  if [[ $typed == --*=* ]]; then before=${typed%%=*}= value=${typed#*=}; fi
  mapfile -t list < <(command -- "${words[0]/#~\//$HOME/}" complete "${words[@]:1}" 2>/dev/null)
  kind=${list[0]-} list=("${list[@]:1}")
  case $kind in
    prefixes) compopt -o nospace ;;
    files) compopt -o filenames; mapfile -t list < <(compgen -f -- "$value") ;;
    folders) compopt -o filenames; mapfile -t -O "${#list[@]}" list < <(compgen -d -- "$value") ;;
  esac 2>/dev/null
  COMPREPLY=()
  local kept=${typed%"${typed##*[" ${COMP_WORDBREAKS-=}"]}"}
  for word in "${list[@]%%$'\t'*}"; do
    if [[ $word == "$value"* ]]; then word=$before$word && COMPREPLY+=("${word#"$kept"}"); fi
  done
}
complete -F _@ID@_complete @PROGRAM@
)script";

constexpr const char* kZsh = R"script(#compdef @PROGRAM@
_@ID@() {
  local -a list
  list=(complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}")
  list=("${(@f)$(command -- "${words[1]/#\~\//$HOME/}" "${list[@]}" 2>/dev/null)}")
  local kind=$list[1]
  shift list
  compset -P 1 '--*='
  case $kind in
    words | prefixes)
      list=("${(@)${(@)list//:/\\:}/$'\t'/:}")
      if [[ $kind == words ]]; then _describe word list; else _describe word list -S ''; fi
      ;;
    files) _files ;;
    folders) compadd -f -a list; _files -/ ;;
  esac
}
if [[ ${funcstack[1]} == _@ID@ ]]; then _@ID@ "$@"; else compdef _@ID@ @PROGRAM@; fi
)script";

// fish adds no space after a word that ends with `=`.
constexpr const char* kFish = R"script(function __@ID@_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -l before (string match -r -- '^--[^=]*=' "$word")
    set -l value (string replace -- "$before" '' "$word")
    set -l program (string replace -r -- '^~(?=/)' $HOME $words[1])
    set -l list (command $program complete $words[2..-1] "$word" 2>/dev/null)
    switch "$list[1]"
        case files
            set -a list (__fish_complete_path "$value")
        case folders
            set -a list (__fish_complete_directories "$value" '')
    end
    for one in $list[2..-1]
        printf '%s\n' "$before$one"
    end
end
complete -c @PROGRAM@ -f -a '(__@ID@_complete)'
)script";

constexpr const char* kScripts[] = {kBash, kZsh, kFish};
const std::vector<std::string> kShells = {"bash", "zsh", "fish"};

// The program's name as a part of names of shell functions: "my_program" of "my-program".
std::string identifier(std::string name) {
  std::ranges::replace_if(name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

}  // namespace

int completion(const CommandLine& line) {
  Arguments arguments(
      line, "completion",
      concat("Print a script that completes commands, options, environments, settings and run folders "
             "in a shell. For bash: source <(",
             line.program, " completion bash)"));
  std::string shell;
  arguments.word("SHELL", shell, join(kShells), join(kShells, " | "));
  if (!arguments.parse()) return 0;
  if (shell.empty()) throw UsageError("completion needs a shell: " + join(kShells));
  print(filled(kScripts[parse_word("completion", shell, kShells)],
               {{"@ID@", identifier(line.program)}, {"@PROGRAM@", shell_word(line.program)}}));
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
