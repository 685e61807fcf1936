// configuration_test.cpp: docs/configuration.md contains the current table of settings. Run this test with
// WD_UPDATE_DOCS=1 to update the table.
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

const FieldInfo* find(const std::vector<FieldInfo>& fields, const std::string& name) {
  for (const FieldInfo& field : fields)
    if (field.name == name) return &field;
  return nullptr;
}

// First the settings of every policy, then those of algorithms, with the algorithms that have them if not all
// do, and with the default of each.
std::string policy_table() {
  std::vector<std::vector<FieldInfo>> all;
  std::size_t most = 0;
  for (const std::string& algorithm : algorithm_names()) {
    PolicySettings policy;
    policy.algorithm = AlgorithmChoice::named(algorithm);
    all.push_back(fields_of(policy));
    if (all.back().size() > all[most].size()) most = all.size() - 1;
  }
  std::string text = std::string("\n### policy.NAME\n\n") + kHead;
  for (const FieldInfo& field : all[most]) {
    std::string of_each;
    bool same = true;
    for (std::size_t k = 0; k < all.size(); ++k) {
      const FieldInfo* const own = find(all[k], field.name);
      same = same && own != nullptr && own->value == field.value;
      if (own == nullptr) continue;
      of_each += (of_each.empty() ? "" : ", ") + algorithm_names()[k] + " `" + own->value + "`";
    }
    text += row(field, field.name == "algorithm" ? "`A2C`" : same ? "`" + field.value + "`" : of_each);
  }
  return text;
}

std::string tables() {
  return table("env, beside the environment's own parameters", EnvSettings{}) +
         table("trainer", TrainerSettings{}) + policy_table() + table("policy.NAME.model", ModelSettings{}) +
         table("saving", SavingSettings{}) + table("eval", EvalSettings{}) + table("play", PlaySettings{}) +
         table("autoscale", AutoscaleSettings{}) + "\n";
}

TEST(Configuration, TheDocumentedKeysAreThoseOfTheCode) {
  expect_generated("docs/configuration.md", tables());
}

}  // namespace
}  // namespace wd::test
