// description.h: everything that a user can type after this program's name, for completion and the manual
// page. It is gathered from the commands themselves and from the table of settings.
#pragma once

#include <string>
#include <vector>

#include "src/cli/command.h"
#include "wd/config.h"

namespace wd::cli {

struct EnvironmentDescription {
  std::string name;
  std::vector<FieldInfo> settings;  // that not all environments have: parameters, policies
};

struct Description {
  std::string program;
  std::vector<CommandInfo> commands;
  std::vector<EnvironmentDescription> environments;
  std::vector<FieldInfo> settings;  // that all environments have; names are paths: "trainer.seed"
};

Description describe_program(const std::string& program);
CommandInfo describe_command(const Command& command, const std::string& program);
// The manual page in roff.
std::string manual_page(const Description& description);

// Every setting of an environment, for any algorithm and any network of its policies.
std::vector<FieldInfo> settings_of(const ConfigSources& sources);

// What can complete the value of an option; see hint_of().
enum class Completes {
  kNothing,
  kWords,
  kFiles,
  kFolders,
  kRuns,
  kEnvironments,
  kSettings,
  kKeys,
  kParameters
};
struct ValueHint {
  Completes by = Completes::kNothing;
  std::vector<std::string> words;  // kWords
};
// Derives it from the option's type: "FILE" is a file, "NAME" an environment, "a | b" one of these words.
ValueHint hint_of(const OptionInfo& option);

// The setting's own name, behind its section.
std::string key_of(const FieldInfo& setting);
// The words that a type allows: {"auto", "cpu"} of "auto | cpu", {"true", "false"} of "bool"; empty if any
// number or text is allowed.
std::vector<std::string> words_of(const std::string& type);

}  // namespace wd::cli
