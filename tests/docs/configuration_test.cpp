// configuration_test.cpp: docs/configuration.md holds the table of settings that the code has. To bring it up
// to date run this test with WD_UPDATE_DOCS=1.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "wd/config.h"

namespace wd::test {
namespace {

constexpr char kBegin[] = "<!-- begin generated -->\n";
constexpr char kEnd[] = "<!-- end generated -->\n";

// A bar would end the table's cell.
std::string cell(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return escaped;
}

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
         table("policy.NAME.model", ModelSettings{}) + table("saving", SavingSettings{}) + "\n";
}

TEST(Configuration, TheDocumentedKeysAreThoseOfTheCode) {
  const char* const source = std::getenv("WD_SOURCE_DIR");
  ASSERT_NE(source, nullptr);
  const std::string path = std::string(source) + "/docs/configuration.md";
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  const std::string document = text.str();
  const std::size_t begin = document.find(kBegin), end = document.find(kEnd);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  const std::size_t first = begin + sizeof(kBegin) - 1;
  if (std::getenv("WD_UPDATE_DOCS") != nullptr) {
    std::ofstream(path) << document.substr(0, first) << tables() << document.substr(end);
    return;
  }
  EXPECT_EQ(document.substr(first, end - first), tables()) << "run this test with WD_UPDATE_DOCS=1";
}

}  // namespace
}  // namespace wd::test
