// config.cpp: `wdtrain config [SETTING]...`: explains settings: type, range, default and meaning.
#include <fnmatch.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/base/json.h"
#include "src/base/program_name.h"
#include "src/base/suggest.h"
#include "src/cli/description.h"
#include "src/cli/output.h"
#include "src/cli/setup.h"
#include "src/config/setting_table.h"
#include "src/config/synonyms.h"
#include "wd/error.h"

namespace wd::cli {
namespace {

// Whether the word is the path or its end. In the word, * stands for any text of a part; in the path, NAME
// stands for any policy, and may be left out at the end.
bool names(const std::string& word, const std::string& path) {
  const std::vector<std::string> wanted = split(word, '.');
  std::vector<std::string> parts = split(path, '.');
  if (parts.front() == "opponents" && wanted.size() < parts.size()) parts.pop_back();
  if (wanted.empty() || wanted.size() > parts.size()) return false;
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    const std::string& part = parts[parts.size() - wanted.size() + k];
    if (part != "NAME" && ::fnmatch(wanted[k].c_str(), part.c_str(), 0) != 0) return false;
  }
  return true;
}

// A setting, and its default in words.
struct Explained {
  FieldInfo field;
  std::string defaults;
};

// Those of an environment, with the values that it begins with, or those of all.
std::vector<Explained> settings_to_explain(const ConfigSources& sources) {
  std::vector<Explained> all;
  if (!sources.env.empty() || !sources.file.empty()) {
    for (const FieldInfo& field : settings_of(sources)) all.push_back({field, field.value});
    return all;
  }
  std::vector<FieldInfo> others = general_settings();
  for (const SettingSection& section : setting_table()) {
    for (const SettingRow& row : section.rows) {
      Explained one{row.field, row.field.value};
      one.field.name = section.path + "." + row.field.name;
      std::vector<std::string> each;
      for (const auto& [algorithm, value] : row.of_algorithms) each.push_back(algorithm + " " + value);
      if (!each.empty()) one.defaults = join(each);
      std::erase_if(others, [&](const FieldInfo& field) { return field.name == one.field.name; });
      all.push_back(std::move(one));
    }
  }
  for (const FieldInfo& field : others) all.push_back({field, field.value});  // of other networks
  return all;
}

std::string explanation(const Explained& one) {
  std::vector<std::vector<std::string>> rows = {{"meaning", one.field.help}, {"type", one.field.type}};
  if (!one.field.range.empty()) rows.push_back({"range", one.field.range});
  rows.push_back({"default", one.defaults});
  rows.push_back({"set it", concat("--set ", one.field.name, "=VALUE")});
  return one.field.name + "\n" + table(rows, 2);
}

nlohmann::ordered_json json_of(const Explained& one) {
  nlohmann::ordered_json json = {{"name", one.field.name},   {"type", one.field.type},
                                 {"range", one.field.range}, {"default", one.field.value},
                                 {"help", one.field.help},   {"words", words_of(one.field.type)}};
  if (const SearchRange* const range = search_range(one.field))
    json["search"] = {{"low", range->low}, {"high", range->high}, {"scale", range->scale}};
  return json;
}

constexpr const char* kMembers =
    "a list with a value for each member of trainer.population, where PATH is that of a setting of env or "
    "policy, or trainer.seed: members.policy.NAME.lr=[1e-3, 3e-4] (docs/populations.md)";

// Throws UsageError if the word names no setting.
std::vector<Explained> explained_by(const std::string& word, const std::vector<Explained>& all) {
  std::vector<Explained> found;
  const std::string ours(config::our_name(word));
  for (const Explained& one : all)
    if (names(ours.empty() ? word : ours, one.field.name)) found.push_back(one);
  if (word.substr(0, word.find('.')) == "members")
    found.push_back({{.name = "members.PATH", .type = "list", .value = "none", .help = kMembers}, "none"});
  if (!found.empty()) return found;
  std::vector<std::string> keys;
  for (const Explained& one : all) {
    keys.push_back(one.field.name);
    keys.push_back(key_of(one.field));
  }
  throw UsageError(concat("there is no setting '", word, "'", did_you_mean(word, keys), " (`",
                          program_command(), " config` lists them, `", program_command(),
                          " config --env NAME` with those of an environment)"));
}

}  // namespace

int explain_config(const CommandLine& line) {
  Arguments arguments(line, "config",
                      "Explain settings, which --set and YAML files take: type, range, default and meaning. "
                      "Without SETTING: list them.");
  std::vector<std::string> words;
  ConfigSources sources{.search = config_folders()};
  arguments.word("SETTING", words, "path or end of a path, as lr, model.fc_dims or 'policy.*.lr'");
  arguments.option("-e,--env", sources.env, "NAME", "environment, whose parameters and defaults are shown");
  bool json = false;
  arguments.flag(
      "--json", json,
      "print a list of JSON objects; search is what `sweep` draws from by default, if there is any");
  if (!arguments.parse()) return 0;
  const std::vector<Explained> all = settings_to_explain(sources);
  std::string text;
  nlohmann::ordered_json objects = nlohmann::ordered_json::array();
  for (const std::string& word : words) {
    for (const Explained& one : explained_by(word, all)) {
      text += (text.empty() ? "" : "\n") + explanation(one);
      objects.push_back(json_of(one));
    }
  }
  if (json) {
    if (words.empty())
      for (const Explained& one : all) objects.push_back(json_of(one));
    text = dump(objects, 2) + "\n";
  } else if (words.empty()) {
    std::vector<std::vector<std::string>> rows = {{"SETTING", "DEFAULT", "MEANING"}};
    for (const Explained& one : all) rows.push_back({one.field.name, one.field.value, one.field.help});
    text = table(rows, 0);
  }
  print(text);
  return 0;
}

}  // namespace wd::cli
