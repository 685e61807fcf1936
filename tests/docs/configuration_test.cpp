// configuration_test.cpp: docs/configuration.md contains the current table of settings. Run this test with
// WD_UPDATE_DOCS=1 to update the table.
#include <algorithm>
#include <functional>

#include "src/base/join.h"
#include "src/config/compatible.h"
#include "tests/docs/generated.h"
#include "wd/config.h"

namespace wd::test {
namespace {

template <typename Settings>
std::vector<FieldInfo> fields_of(Settings settings) {
  return list_fields([&](Fields& fields) { settings.describe(fields); });
}

const char* const kHead = "| key | type | default | range | meaning |\n|---|---|---|---|---|\n";

std::string row(const FieldInfo& field, const std::string& value) {
  return "| `" + field.name + "` | " + cell(field.type) + " | " + value + " | " + field.range + " | " +
         cell(field.help) + " |\n";
}

template <typename Settings>
std::string table(const std::string& heading, const Settings& settings) {
  std::string text = "\n### " + heading + "\n\n" + kHead;
  for (const FieldInfo& field : fields_of(settings)) text += row(field, "`" + field.value + "`");
  return text;
}

// A setting with the same meaning in all algorithms that have it.
struct PolicyField {
  FieldInfo field;
  std::string of_each;    // "A2C `0.5`, PPO `0.5`"
  std::size_t count = 0;  // of algorithms that have it
  bool same = true;       // with the same default
};

// First the settings of every policy, then those of algorithms, with the algorithms that have them if not all
// do, and with the default of each. Settings of one name and several meanings have a row for each.
std::string policy_table() {
  std::vector<PolicyField> rows;
  std::vector<std::string> names = algorithm_names();
  const auto size = [](const std::string& name) {
    PolicySettings policy;
    policy.algorithm = AlgorithmChoice::named(name);
    return fields_of(policy).size();
  };
  std::ranges::stable_sort(names, std::greater(), size);
  for (const std::string& name : names) {
    PolicySettings policy;
    policy.algorithm = AlgorithmChoice::named(name);
    for (const FieldInfo& field : fields_of(policy)) {
      auto row = std::ranges::find_if(rows, [&](const PolicyField& r) {
        return r.field.name == field.name && r.field.help == field.help && r.field.range == field.range;
      });
      if (row == rows.end()) {
        const auto named = std::find_if(rows.rbegin(), rows.rend(),
                                        [&](const PolicyField& r) { return r.field.name == field.name; });
        row = rows.insert(named == rows.rend() ? rows.end() : named.base(), PolicyField{field});
      }
      row->of_each += (row->of_each.empty() ? "" : ", ") + name + " `" + field.value + "`";
      ++row->count;
      row->same = row->same && row->field.value == field.value;
    }
  }
  std::string text = std::string("\n### policy.NAME\n\n") + kHead;
  for (const PolicyField& r : rows)
    text += row(r.field, r.field.name == "algorithm"         ? "`A2C`"
                         : r.same && r.count == names.size() ? "`" + r.field.value + "`"
                                                             : r.of_each);
  return text;
}

std::string algorithms_with(Use use) {
  std::vector<std::string> names;
  for (const std::string& name : algorithm_names()) {
    Usage usage;
    add_algorithm(usage, *AlgorithmChoice::named(name));
    if (usage.uses.has({use})) names.push_back(name);
  }
  return names.empty() ? "" : " (" + join(names) + ")";
}

std::string text_of(Use use) {
  const UseName& name = name_of(use);
  const std::string key = name.key, value = name.value, words = name.words;
  if (key == "algorithm") return "an algorithm " + words + algorithms_with(use);
  if (key.empty() || value == "{type}") return words;
  return words.empty() ? "`" + key + ": " + value + "`" : "`" + key + "` " + words;
}

// What excludes what, in the order in which it is reported.
std::string exclusion_table() {
  const Usage anyone{.uses = {}, .words = {{"policy", "NAME"}}};
  std::string text =
      "\n### What excludes what\n\n| this | excludes | because | remedy |\n|---|---|---|---|\n";
  for (const Exclusion& row : exclusions()) {
    std::vector<std::string> others;
    for (const Use use : row.others.list()) others.push_back(text_of(use));
    text += "| " + text_of(row.setting) + " | " + join(others, ", with ") + " | " +
            cell(anyone.filled(row.reason)) + " | " + cell(anyone.filled(row.remedy)) + " |\n";
  }
  return text;
}

std::string tables() {
  return table("env, beside the environment's own parameters", EnvSettings{}) +
         table("trainer", TrainerSettings{}) + policy_table() + table("policy.NAME.model", ModelSettings{}) +
         table("saving", SavingSettings{}) + table("eval", EvalSettings{}) + table("play", PlaySettings{}) +
         table("autoscale", AutoscaleSettings{}) + exclusion_table() + "\n";
}

TEST(Configuration, TheDocumentedKeysAreThoseOfTheCode) {
  expect_generated("docs/configuration.md", tables());
}

}  // namespace
}  // namespace wd::test
