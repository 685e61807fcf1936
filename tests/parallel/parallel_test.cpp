// parallel_test.cpp: the thread pool processes every item once, supports nesting, passes exceptions on, and
// can be resized.
#include "wd/detail/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
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

TEST_P(Parallel, KnowsItsSize) { EXPECT_EQ(num_threads(), GetParam()); }

INSTANTIATE_TEST_SUITE_P(Threads, Parallel, testing::Values(1, 2, 4, 9));

}  // namespace
}  // namespace wd
