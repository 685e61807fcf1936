// warpdrive_originals_test.cpp: the files of an installed rl-warp-drive load, and as tests/data/warpdrive
// does.
#include <gtest/gtest.h>

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
  for (const char* name :
       {"tag_continuous", "tag_gridworld", "tag_gridworld_with_reset_pool", "single_cartpole"}) {
    const std::string file = std::string(name) + ".yaml";
    const Loaded original = load_real({.file = (folder / file).string()});
    const Loaded copy = load_real({.file = (source_folder() / "tests/data/warpdrive" / file).string()});
    EXPECT_EQ(print_config(original.config, original.describe(), false),
              print_config(copy.config, copy.describe(), false));
  }
}

}  // namespace
}  // namespace wd::test
