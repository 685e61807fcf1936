// cache_test.cpp: a stored result is returned for its own key only, and never if it is damaged, foreign or
// beyond today's limits.
#include "src/autoscale/cache.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>

#include "tests/run/temporary_folder.h"

namespace wd::scaling {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class CacheTest : public testing::Test {
 protected:
  CacheTest() {
    report_.env = "cartpole";
    report_.result.status = Status::kChosen;
    report_.result.start = {64, 32};
    report_.result.chosen = {4096, 32};
    report_.result.env_steps_per_s = 1e6;
    report_.result.bytes = 1000;
    report_.result.trials.push_back(
        {Stage::kReplicas, {4096, 32}, {.kind = Kind::kFits, .bytes = 1000, .env_steps_per_s = 1e6}, 900});
  }
  fs::path entry() const { return entry_of(place_, key_); }
  Cached read(int workers = 4) const { return read_cache(place_, key_, workers, limits_); }
  void expect_ignored(const std::string& why) const {
    const Cached cached = read();
    EXPECT_FALSE(cached.report);
    EXPECT_THAT(cached.warning, HasSubstr(why));
    EXPECT_THAT(cached.warning, HasSubstr(entry().string()));
  }

  test::TemporaryFolder folder_;
  fs::path place_ = folder_.path / "wd" / "autoscale";
  std::string key_ = "cartpole on this machine";
  Limits limits_;
  Report report_;
};

TEST_F(CacheTest, ComesBack) {
  EXPECT_FALSE(read().report);
  EXPECT_EQ(read().warning, "") << "to have nothing is not a fault";
  write_cache(place_, key_, report_);
  ASSERT_TRUE(read().report);
  EXPECT_EQ(*read().report, report_);
  report_.result.chosen = {8192, 32};
  write_cache(place_, key_, report_);
  EXPECT_EQ(read().report->result.chosen, (Probe{8192, 32}));
  EXPECT_EQ(std::distance(fs::directory_iterator(place_), {}), 1) << "no temporary file is left";
}

TEST_F(CacheTest, AnotherKeyHasAnotherEntry) {
  write_cache(place_, key_, report_);
  EXPECT_EQ(read_cache(place_, key_ + "x", 4, limits_).warning, "");
  EXPECT_FALSE(read_cache(place_, key_ + "x", 4, limits_).report);
  EXPECT_EQ(entry().filename().string().size(), std::string("0123456789abcdef.json").size());
}

// Two keys with the same hash: the entry of one is not returned for the other.
TEST_F(CacheTest, AnEntryOfAnotherKeyIsForeign) {
  write_cache(place_, "another", report_);
  fs::rename(entry_of(place_, "another"), entry());
  expect_ignored("is of another key");
}

TEST_F(CacheTest, EveryChangedByteIsNoticed) {
  write_cache(place_, key_, report_);
  const std::string good = test::read_text(entry());
  for (std::size_t at = 0; at + 1 < good.size(); ++at) {
    std::string bad = good;
    bad[at] ^= 1;
    test::write_text(entry(), bad);
    EXPECT_FALSE(read().report) << at << ": " << bad;
    EXPECT_NE(read().warning, "");
  }
  for (std::size_t size = 0; size + 2 < good.size(); size += 3) {
    test::write_text(entry(), good.substr(0, size));
    EXPECT_FALSE(read().report) << size;
  }
  test::write_text(entry(), std::string(1 << 19, '['));
  expect_ignored("damaged");
  test::write_text(entry(), std::string(2 << 20, ' '));
  expect_ignored("too large");
}

TEST_F(CacheTest, OnlyARegularFileCounts) {
  write_cache(place_, key_, report_);
  const fs::path elsewhere = folder_.path / "elsewhere";
  fs::rename(entry(), elsewhere);
  fs::create_symlink(elsewhere, entry());
  expect_ignored("cannot read it");
  fs::remove(entry());
  fs::create_directory(entry());
  expect_ignored("regular file");
  fs::remove(entry());
  ASSERT_EQ(::mkfifo(entry().c_str(), 0600), 0);
  expect_ignored("regular file");
}

TEST_F(CacheTest, WhatIsBeyondTheLimitsOfTodayIsIgnored) {
  write_cache(place_, key_, report_);
  EXPECT_THAT(read(3).warning, HasSubstr("4096 replicas for 3 workers"));
  limits_.memory_bytes = 999;
  expect_ignored("of memory");
  limits_ = {.max_envs = 4095};
  expect_ignored("limits");
  limits_ = {.max_batch = 131'071};
  expect_ignored("limits");
  limits_ = {.min_batch = 131'073};
  expect_ignored("limits");
  limits_ = {.memory_bytes = 1000, .max_envs = 4096, .max_batch = 131'072, .min_batch = 131'072};
  EXPECT_TRUE(read().report);
}

TEST_F(CacheTest, ASearchThatChoseNothingIsNoEntry) {
  report_.result.status = Status::kNothingFits;
  write_cache(place_, key_, report_);
  expect_ignored("chose nothing");
}

TEST_F(CacheTest, AFolderThatCannotBeWrittenIsTold) {
  test::write_text(folder_.path / "file", "");
  EXPECT_THAT(test::message_of([&] { write_cache(folder_.path / "file" / "wd", key_, report_); }),
              HasSubstr("file/wd: cannot make it: "));
  write_cache(place_, key_, report_);
  const test::FullDisk full(100);
  EXPECT_THAT(test::message_of([&] { write_cache(place_, key_, report_); }), HasSubstr("cannot write"));
  EXPECT_TRUE(read().report) << "the old entry stays";
}

TEST(CacheFolderTest, FollowsTheEnvironment) {
  const auto with = [](const char* cache, const char* home) {
    ::setenv("XDG_CACHE_HOME", cache, 1);
    ::setenv("HOME", home, 1);
    return cache_folder();
  };
  EXPECT_EQ(with("/c", "/h"), "/c/wd/autoscale");
  EXPECT_EQ(with("", "/h"), "/h/.cache/wd/autoscale");
  EXPECT_EQ(with("relative", "/h"), "/h/.cache/wd/autoscale") << "the specification wants it ignored";
  EXPECT_EQ(with("", ""), "");
}

}  // namespace
}  // namespace wd::scaling
