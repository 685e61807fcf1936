// configuration_test.cpp: docs/configuration.md holds the table of settings that the code has. To bring it up
// to date run this test with WD_UPDATE_DOCS=1.
#include "tests/docs/generated.h"
#include "wd/config.h"

namespace wd::test {
namespace {

template <typename Settings>
std::vector<FieldInfo> fields_of(Settings settings) {
  return list_fields([&](Fields& fields) { settings.describe(fields); });
}

// `of_ppo`: the settings with the defaults of PPO, where those are others.
template <typename Settings>
std::string table(const std::string& heading, const Settings& settings, const Settings& of_ppo) {
  std::string text =
      "\n### " + heading + "\n\n| key | type | default | range | meaning |\n|---|---|---|---|---|\n";
  const std::vector<FieldInfo> ppo = fields_of(of_ppo);
  std::size_t k = 0;
  for (const FieldInfo& field : fields_of(settings)) {
    const FieldInfo& other = ppo[k++];
    const bool differs = other.value != field.value && field.name != "algorithm";
    text += "| `" + field.name + "` | " + cell(field.type) + " | `" + field.value + "`" +
            (differs ? ", of PPO `" + other.value + "`" : "") + " | " + field.range + " | " +
            cell(field.help) + " |\n";
  }
  return text;
}

template <typename Settings>
std::string table(const std::string& heading, const Settings& settings) {
  return table(heading, settings, settings);
}

std::string tables() {
  return table("env, beside the environment's own parameters", EnvSettings{}) +
         table("trainer", TrainerSettings{}) +
         table("policy.NAME", PolicySettings{}, PolicySettings::of(kPpo)) +
         table("policy.NAME.model", ModelSettings{}) + table("saving", SavingSettings{}) +
         table("autoscale", AutoscaleSettings{}) + "\n";
}

TEST(Configuration, TheDocumentedKeysAreThoseOfTheCode) {
  expect_generated("docs/configuration.md", tables());
}

}  // namespace
}  // namespace wd::test
