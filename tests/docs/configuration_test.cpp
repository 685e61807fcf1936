// configuration_test.cpp: docs/configuration.md holds the table of settings that the code has. To bring it up
// to date run this test with WD_UPDATE_DOCS=1.
#include "tests/docs/generated.h"
#include "wd/config.h"

namespace wd::test {
namespace {

template <typename Settings>
std::string table(const std::string& heading, Settings settings) {
  std::string text =
      "\n### " + heading + "\n\n| key | type | default | range | meaning |\n|---|---|---|---|---|\n";
  for (const FieldInfo& field : list_fields([&](Fields& fields) { settings.describe(fields); })) {
    text += "| `" + field.name + "` | " + cell(field.type) + " | `" + field.value + "` | " + field.range +
            " | " + cell(field.help) + " |\n";
  }
  return text;
}

std::string tables() {
  return table("env, beside the environment's own parameters", EnvSettings{}) +
         table("trainer", TrainerSettings{}) + table("policy.NAME", PolicySettings{}) +
         table("policy.NAME.model", ModelSettings{}) + table("saving", SavingSettings{}) +
         table("autoscale", AutoscaleSettings{}) + "\n";
}

TEST(Configuration, TheDocumentedKeysAreThoseOfTheCode) {
  expect_generated("docs/configuration.md", tables());
}

}  // namespace
}  // namespace wd::test
