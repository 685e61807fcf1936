// warpdrive_originals_test.cpp: the files of an installed rl-warp-drive load, with the same result as those
// in tests/data/warpdrive.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>

#include "src/config/document.h"
#include "src/config/numbers.h"
#include "tests/config/real_environments.h"

namespace wd::test {
namespace {

std::filesystem::path originals() {
  const std::filesystem::path libraries = source_folder() / ".venv/lib";
  std::error_code error;
  for (const auto& python : std::filesystem::directory_iterator(libraries, error)) {
    const auto folder = python.path() / "site-packages/warp_drive/training/run_configs";
    if (std::filesystem::is_directory(folder, error)) return folder;
  }
  return {};
}

TEST(WarpDriveOriginals, LoadAsOurCopiesDo) {
  const std::filesystem::path folder = originals();
  if (folder.empty()) GTEST_SKIP() << "rl-warp-drive is not installed in .venv";
  for (const char* name : {"tag_continuous", "tag_gridworld", "tag_gridworld_with_reset_pool",
                           "single_cartpole", "single_acrobot", "single_mountain_car"}) {
    const std::string file = std::string(name) + ".yaml";
    const Loaded original = load_real({.file = (folder / file).string()});
    const Loaded copy = load_real({.file = (source_folder() / "tests/data/warpdrive" / file).string()});
    EXPECT_EQ(print_config(original.config, original.describe(), false),
              print_config(copy.config, copy.describe(), false));
  }
}

// For keys that are missing in a WarpDrive file we use the same defaults as WarpDrive.
TEST(WarpDriveOriginals, GapsHaveTheDefaultsOfItsFile) {
  if (originals().empty()) GTEST_SKIP() << "rl-warp-drive is not installed in .venv";
  config::Problems problems;
  config::Node defaults;
  ASSERT_TRUE(config::parse_file((originals() / "default_configs.yaml").string(), problems, defaults));
  const auto path = std::filesystem::path(testing::TempDir()) / "wd-nothing-said.yaml";
  std::ofstream(path) << "name: single_cartpole\npolicy: {shared: {algorithm: PPO, to_train: true}}\n";
  const Loaded loaded = load_real({.file = path.string()});
  std::filesystem::remove(path);
  std::map<std::string, std::string> found;
  for (const auto& [name, value] : config_values(loaded.config, loaded.describe())) found[name] = value;
  int compared = 0;
  const std::function<void(const config::Node&, const std::string&)> compare =
      [&](const config::Node& node, const std::string& prefix) {
        for (const config::Node::Entry& entry : node.entries) {
          const std::string name = prefix + entry.key;
          if (entry.key == "model") {
            compare(entry.value, name + ".");
            continue;
          }
          if (!found.contains(name) || name.ends_with(".algorithm") || name.ends_with(".to_train")) continue;
          ++compared;
          SCOPED_TRACE(name);
          const std::string& ours = found.at(name);
          double a = 0.0, b = 0.0;
          if (config::parse_double(entry.value.text, a) == config::Parsed::kGood) {
            ASSERT_EQ(config::parse_double(ours, b), config::Parsed::kGood) << ours;
            EXPECT_EQ(a, b);
          } else if (entry.value.kind == config::Node::Kind::kList) {
            EXPECT_EQ(ours, "[" + entry.value.items[0].text + ", " + entry.value.items[1].text + "]");
          } else if (entry.value.text == "True" || entry.value.text == "False") {
            EXPECT_EQ(ours, entry.value.text == "True" ? "true" : "false");
          } else {
            EXPECT_TRUE(ours == entry.value.text || ours == '"' + entry.value.text + '"') << ours;
          }
        }
      };
  compare(*defaults.find("trainer"), "trainer.");
  compare(*defaults.find("policy"), "policy.shared.");
  compare(*defaults.find("saving"), "saving.");
  EXPECT_EQ(compared, 3 + 9 + 3 + 5);
}

}  // namespace
}  // namespace wd::test
