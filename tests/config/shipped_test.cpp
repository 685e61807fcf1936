// shipped_test.cpp: every file in configs/ loads without warnings, and its printed form loads again.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tests/config/real_environments.h"

namespace wd::test {
namespace {

std::vector<std::filesystem::path> files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") paths.push_back(entry.path());
  }
  return paths;
}

void expect_loads_back(const Loaded& loaded) {
  EXPECT_TRUE(loaded.config.notes.empty()) << loaded.config.notes[0];
  const std::string text = print_config(loaded.config, loaded.describe());
  const auto path =
      std::filesystem::temp_directory_path() / ("wd-shipped-" + std::to_string(::getpid()) + ".yaml");
  std::ofstream(path) << text;
  const Loaded again = load_real({.file = path.string()});
  std::filesystem::remove(path);
  EXPECT_EQ(print_config(again.config, again.describe(), false),
            print_config(loaded.config, loaded.describe(), false));
  EXPECT_TRUE(again.config.notes.empty()) << again.config.notes[0];
}

TEST(Shipped, ConfigurationsLoad) {
  const auto paths = files(source_folder() / "configs");
  ASSERT_FALSE(paths.empty());
  for (const std::filesystem::path& path : paths) {
    SCOPED_TRACE(path);
    if (path.filename() == "python.yaml") continue;  // of environments whose names it does not know
    expect_loads_back(load_real({.file = path.string()}));
  }
}

TEST(Shipped, SmokeConfigurationsAreShort) {
  for (const std::filesystem::path& path : files(source_folder() / "configs/smoke")) {
    SCOPED_TRACE(path);
    const Loaded loaded = load_real({.file = path.string()});
    EXPECT_LE(loaded.config.trainer.total_steps, 5000);
    EXPECT_FALSE(loaded.config.trainer.stop_return);
    expect_loads_back(loaded);
  }
}

TEST(Shipped, EveryEnvironmentHasAConfigurationAndASmokeVariant) {
  for (const EnvironmentRow& row : detail::environment_table()) {
    const std::string file = std::string(row.name) + ".yaml";
    EXPECT_TRUE(std::filesystem::exists(source_folder() / "configs" / file)) << file;
    EXPECT_TRUE(std::filesystem::exists(source_folder() / "configs/smoke" / file)) << file;
  }
}

}  // namespace
}  // namespace wd::test
