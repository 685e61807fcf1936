// description.cpp: asks every command for its options, and every environment for its settings.
#include "src/cli/description.h"

#include <algorithm>
#include <map>

#include "src/cli/setup.h"

namespace wd::cli {
namespace {

// Appends those fields that are not there yet.
void merge(const std::vector<FieldInfo>& fields, std::vector<FieldInfo>& into) {
  for (const FieldInfo& field : fields) {
    const auto known = std::ranges::find(into, field.name, &FieldInfo::name);
    if (known == into.end()) into.push_back(field);
  }
}

// Moves the settings that all environments have, of the same type, out of their own lists.
std::vector<FieldInfo> take_common(std::vector<EnvironmentDescription>& environments) {
  if (environments.empty()) return {};
  std::vector<FieldInfo> common;
  for (const FieldInfo& field : environments.front().settings) {
    const auto has = [&](const EnvironmentDescription& one) {
      const auto found = std::ranges::find(one.settings, field.name, &FieldInfo::name);
      return found != one.settings.end() && found->type == field.type && found->help == field.help;
    };
    // A program with one environment has no other way to tell its parameters from common settings.
    if (std::ranges::all_of(environments, has)) common.push_back(field);
  }
  for (EnvironmentDescription& one : environments) {
    std::erase_if(one.settings, [&](const FieldInfo& field) {
      return std::ranges::find(common, field.name, &FieldInfo::name) != common.end();
    });
  }
  return common;
}

}  // namespace

std::vector<FieldInfo> settings_of(const ConfigSources& sources) {
  const Experiment setup = load_environment(sources);
  std::vector<FieldInfo> fields = list_settings(setup.config, setup.describe());
  for (const std::string& algorithm : algorithm_names()) {
    for (const std::string& network : network_names()) {
      Config config = setup.config;
      for (PolicySettings& policy : config.policies) {
        policy.algorithm = AlgorithmChoice::named(algorithm);
        policy.model.set_type(network);
      }
      merge(list_settings(config, setup.describe()), fields);
    }
  }
  std::erase_if(fields, [](const FieldInfo& field) { return field.name.find('.') == std::string::npos; });
  return fields;
}

CommandInfo describe_command(const Command& command, const std::string& program) {
  CommandInfo info;
  command.run({.program = program, .describe = &info});
  info.name = command.name;
  info.summary = command.summary;
  return info;
}

Description describe_program(const std::string& program) {
  Description description{.program = program};
  for (const Command& command : commands())
    description.commands.push_back(describe_command(command, program));
  for (const std::string& name : environment_names())
    description.environments.push_back({name, settings_of({.env = name, .search = config_folders()})});
  description.settings = take_common(description.environments);
  return description;
}

std::string key_of(const FieldInfo& setting) {
  return setting.name.starts_with("opponents.") ? "opponents"
                                                : setting.name.substr(setting.name.rfind('.') + 1);
}

std::vector<std::string> words_of(const std::string& type) {
  if (type == "bool") return {"true", "false"};
  std::vector<std::string> words;
  for (std::size_t begin = 0; type.find(" | ") != std::string::npos && begin < type.size();) {
    const std::size_t end = std::min(type.find(" | ", begin), type.size());
    const std::string word = type.substr(begin, end - begin);
    if (word != "number" && word != "int") words.push_back(word);
    begin = end + 3;
  }
  return words;
}

ValueHint hint_of(const OptionInfo& option) {
  static const std::map<std::string, Completes> kTypes = {
      {"FILE", Completes::kFiles},        {"FOLDER", Completes::kFolders},
      {"RUN", Completes::kRuns},          {"RUN|CHECKPOINT", Completes::kRuns},
      {"NAME", Completes::kEnvironments}, {"SECTION.KEY=VALUE", Completes::kSettings},
      {"SETTING", Completes::kKeys},      {"env.KEY=VALUE", Completes::kParameters},
      {"PLAYER", Completes::kRuns}};
  if (const auto type = kTypes.find(option.type); type != kTypes.end()) return {type->second, {}};
  std::vector<std::string> words = option.type == "ALGORITHM" ? algorithm_names() : words_of(option.type);
  if (!words.empty()) return {Completes::kWords, std::move(words)};
  const bool folder =
      !option.names.empty() && option.names.back().ends_with("_dir");  // a setting of type text
  return {folder ? Completes::kFolders : Completes::kNothing, {}};
}

}  // namespace wd::cli
