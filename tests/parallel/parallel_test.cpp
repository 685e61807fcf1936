// parallel_test.cpp: the thread pool processes every item once, supports nesting, passes exceptions on, and
// can be resized.
#include "wd/detail/parallel.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace wd {
namespace {

class Parallel : public testing::TestWithParam<int> {
  void SetUp() override { set_num_threads(GetParam()); }
};

TEST_P(Parallel, EveryItemOnce) {
  for (const std::int64_t n : {0, 1, 2, 7, 1000, 12345}) {
    for (const std::int64_t grain : {1, 3, 100000}) {
      std::vector<int> visits(static_cast<std::size_t>(n));
      parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
      });
      EXPECT_EQ(visits, std::vector<int>(static_cast<std::size_t>(n), 1)) << n << " items, grain " << grain;
    }
  }
}

TEST_P(Parallel, ManyShortLoopsInARow) {
  std::atomic<std::int64_t> sum = 0;
  for (int k = 0; k < 20000; ++k) {
    parallel_for(8, 1, [&](std::int64_t begin, std::int64_t end) { sum += end - begin; });
  }
  EXPECT_EQ(sum, 8 * 20000);
}

TEST_P(Parallel, ALoopInsideALoopRunsOnItsOwnThread) {
  std::atomic<int> items = 0;
  parallel_for(16, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      parallel_for(100, 1,
                   [&](std::int64_t first, std::int64_t last) { items += static_cast<int>(last - first); });
    }
  });
  EXPECT_EQ(items, 1600);
}

TEST_P(Parallel, TheExceptionOfAnItemReachesTheCallerAndThePoolGoesOn) {
  const auto fail = [](std::int64_t begin, std::int64_t) {
    if (begin == 0) throw std::runtime_error("item 0");
  };
  EXPECT_THROW(parallel_for(100, 1, fail), std::runtime_error);
  std::atomic<int> items = 0;
  parallel_for(100, 1, [&](std::int64_t begin, std::int64_t end) { items += static_cast<int>(end - begin); });
  EXPECT_EQ(items, 100);
}

// Of each thread of this process, the signals that it blocks.
std::vector<std::uint64_t> blocked_signals() {
  std::vector<std::uint64_t> masks;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("SigBlk:")) masks.push_back(std::stoull(line.substr(7), nullptr, 16));
  }
  return masks;
}

TEST_P(Parallel, OnlyTheFirstThreadTakesSignals) {
  parallel_for(100, 1, [](std::int64_t, std::int64_t) {});
  const auto takes = [](std::uint64_t mask) {
    return std::ranges::any_of(std::vector{SIGINT, SIGTERM, SIGHUP, SIGCHLD},
                               [mask](int signal) { return (mask >> (signal - 1) & 1) == 0; });
  };
  const std::vector<std::uint64_t> masks = blocked_signals();
  EXPECT_GE(std::ssize(masks), GetParam());
  EXPECT_EQ(std::ranges::count_if(masks, takes), 1);
}

TEST(ParallelDeathTest, CountingThreadsStartsNone) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // a process of its own, which has started none
  const auto count = [] {
    ::_exit(num_threads() == available_processors() ? int(blocked_signals().size()) : 99);
  };
  EXPECT_EXIT(count(), testing::ExitedWithCode(1), "");
}

TEST_P(Parallel, KnowsItsSize) { EXPECT_EQ(num_threads(), GetParam()); }

INSTANTIATE_TEST_SUITE_P(Threads, Parallel, testing::Values(1, 2, 4, 9));

}  // namespace
}  // namespace wd
