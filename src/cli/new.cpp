// new.cpp: `wdtrain new NAME`: writes a small environment that learns as it is, to be changed into one's own.
#include "src/cli/new.h"

#include <filesystem>
#include <regex>
#include <set>

#include "src/base/atomic_file.h"
#include "src/base/binary_path.h"
#include "src/base/printable.h"
#include "src/cli/arguments.h"
#include "src/cli/output.h"
#include "src/plugin/source.h"
#include "wd/error.h"

namespace wd::cli {
namespace {

constexpr std::size_t kMostRoles = 8, kLongestRoles = 50;

// The lines of a text of which all letters are in `kinds`. A line may begin with `?` and letters, each of
// which must hold: s, one role, or r, several; d, discrete actions, or c, continuous ones; i, rewards of each
// agent, or t, of the team.
std::string chosen(const std::string& text, const std::string& kinds) {
  std::string result;
  for (const std::string& line : split(text, '\n')) {
    const std::size_t end = line.starts_with('?') ? line.find_first_not_of("srdcit", 1) : 0;
    if (end == 0 || line.find_first_not_of(kinds, 1) >= end) result += line.substr(end) + '\n';
  }
  return result;
}

// Throws UsageError unless the words can be parts of names in C++ and differ from each other and `taken`.
void check_words(const std::string& what, const std::vector<std::string>& words,
                 std::set<std::string> taken) {
  static const std::regex fits("[a-z][a-z0-9_]{0,19}");
  for (const std::string& word : words) {
    if (!std::regex_match(word, fits))
      throw UsageError(
          concat(what, " '", on_one_line(word),
                 "': must be a letter a-z and up to 19 of the characters a-z 0-9 _, for example red_ant"));
    if (!taken.insert(word).second)
      throw UsageError(concat(what, " '", word, "': this name is taken; choose another"));
  }
}

}  // namespace

int create(const CommandLine& line) {
  Arguments arguments(
      line, "new",
      "Write an environment that learns as it is, NAME.cu, and its settings, NAME.yaml: agents "
      "that walk to food, to be changed into a game of your own.");
  std::string name, words = "ant";
  bool continuous = false, team = false;
  arguments.word("NAME", name, "name of the environment, for example ants");
  arguments.option("--roles", words, "ROLE,...",
                   "roles of agents; the last of several hunts the others (ant)");
  arguments.flag("--continuous", continuous, "actions are numbers instead of choices");
  arguments.flag("--team", team,
                 "all agents of a team get its mean reward, and a critic reads the whole state");
  if (!arguments.parse()) return 0;
  if (name.empty()) throw UsageError(concat("new needs a name: ", line.program, " new ants"));
  const std::vector<std::string> roles = split(words, ',');
  check_words("environment name", {name}, {"params", "state", "draw"});  // names inside the struct
  check_words("--roles: role", roles, {"shared"});                       // a policy that acts for all roles
  if (roles.size() > kMostRoles || words.size() > kLongestRoles)
    throw UsageError(concat("--roles ", words, ": name at most ", kMostRoles, " roles, with ", kLongestRoles,
                            " characters in all, and add others in the file"));
  const std::string code = name + ".cu", settings = name + ".yaml";
  for (const std::string& file : {code, settings})
    if (std::filesystem::exists(std::filesystem::symlink_status(file)))
      throw UsageError(concat(file, " exists: remove it, or choose another name or folder"));

  const std::vector<std::string> texts =
      split(kNewEnvironment, '~');  // the file, its settings, and those of a policy
  const std::string kinds = {roles.size() > 1 ? 'r' : 's', continuous ? 'c' : 'd', team ? 't' : 'i'};
  std::string policies, hunted;
  for (const std::string& role : roles) {
    policies += filled(texts[2], {{"@ROLE@", role}});
    if (role != roles.back()) hunted += concat(hunted.empty() ? "" : ", ", '"', role, '"');
  }
  const std::vector<std::pair<std::string, std::string>> parts = {
      {"@HUNTED@", hunted},
      {"@KINDS@", std::to_string(roles.size() - 1)},
      {"@MASK@", continuous ? "" : ", true"},
      {"@LAST@", roles.back()},
      {"@NAME@", name},
      {"@STRUCT@", plugin::camel_case(name)},
      {"@PROGRAM@", line.program}};
  write_named_file(code, filled(chosen(texts[0], kinds), parts));
  write_named_file(settings, filled(chosen(texts[1] + policies, kinds), parts));
  std::string wrote = concat("wrote ", code, " and ", settings);
  if (const std::string headers = include_folder(); !headers.empty() && !std::filesystem::exists(".clangd")) {
    write_named_file(".clangd",
                     concat("# How editors with clangd read .cu files.\nCompileFlags:\n  Add: [-xc++, "
                            "-std=c++20, \"-I",
                            headers, "\"]\n"));
    wrote += ", and .clangd for editors";
  }
  print(concat(wrote, "\n\nnext:\n  ", line.program, " check --env ./", code, "\n  ", line.program,
               " train ./", code, "\n  ", line.program, " play latest --open\n"));
  return 0;
}

}  // namespace wd::cli
