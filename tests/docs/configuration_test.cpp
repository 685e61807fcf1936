// configuration_test.cpp: docs/configuration.md contains the current table of settings. Run this test with
// WD_UPDATE_DOCS=1 to update the table.
#include "src/base/join.h"
#include "src/config/compatible.h"
#include "src/config/setting_table.h"
#include "tests/docs/generated.h"
#include "wd/config.h"

namespace wd::test {
namespace {

// "A2C `0.5`, PPO `0.5`", or one value.
std::string defaults(const SettingRow& row) {
  std::vector<std::string> each;
  for (const auto& [algorithm, value] : row.of_algorithms) each.push_back(algorithm + " `" + value + "`");
  return each.empty() ? "`" + row.field.value + "`" : join(each);
}

std::string table(const SettingSection& section) {
  const std::string more = section.path == "env" ? ", beside the environment's own parameters" : "";
  std::string text = "\n### " + section.path + more +
                     "\n\n| key | type | default | range | meaning |\n|---|---|---|---|---|\n";
  for (const SettingRow& row : section.rows)
    text += "| `" + row.field.name + "` | " + cell(row.field.type) + " | " + defaults(row) + " | " +
            row.field.range + " | " + cell(row.field.help) + " |\n";
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
  std::string text;
  for (const SettingSection& section : setting_table()) text += table(section);
  return text + exclusion_table() + "\n";
}

TEST(Configuration, TheDocumentedKeysAreThoseOfTheCode) {
  expect_generated("docs/configuration.md", tables());
}

}  // namespace
}  // namespace wd::test
