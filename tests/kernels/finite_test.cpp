// finite_test.cpp: the first number that is not finite is found, and later ones do not replace it.
#include "kernels/finite.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/kernels/memory.h"
#include "wd/detail/bfloat16.h"

namespace wd {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(),
                kInfiniteFloat = std::numeric_limits<float>::infinity();

class Watch : public testing::Test {
 protected:
  Failure look() {
    WatchArgs args;
    args.num_arrays = 3;
    for (int k = 0; k < 2; ++k)
      args.array[k] = {arrays[k].data(), static_cast<std::int64_t>(arrays[k].size())};
    args.array[2] = {halves.data(), static_cast<std::int64_t>(halves.size()), true};
    args.per_replica[1] = 10;
    args.replicas = 6;
    args.first = first;
    args.time = &time;
    args.failure = &failure;
    watch({}, args);
    return failure;
  }
  std::vector<float> arrays[2] = {std::vector<float>(20000, 1.0f), std::vector<float>(30000, -2.0f)};
  std::vector<std::uint16_t> halves = std::vector<std::uint16_t>(20001, to_bfloat16(3.0f));
  std::int64_t first[3] = {-1, -1, -1};
  TrainingTime time{.iteration = 6};
  Failure failure;
};

TEST_F(Watch, IsSilentWhereAllIsFinite) {
  arrays[0][7] = std::numeric_limits<float>::max();
  arrays[1][7] = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(look().iteration, 0);
}

TEST_F(Watch, NamesTheFirstOfTheFirstArray) {
  arrays[1][0] = kNan;
  arrays[0][19999] = kInfiniteFloat;
  arrays[0][12345] = -kInfiniteFloat;
  const Failure found = look();
  EXPECT_EQ(found.iteration, 7);
  EXPECT_EQ(found.array, 0);
  EXPECT_EQ(found.index, 12345);
  EXPECT_EQ(found.value, -kInfiniteFloat);
  EXPECT_EQ(found.replica, -1);
}

TEST_F(Watch, NamesTheReplica) {
  arrays[1][2 * 60 + 4 * 10 + 9] = kNan;
  EXPECT_EQ(look().replica, 4);
}

TEST_F(Watch, ReadsBfloat16) {
  halves[7] = to_bfloat16(-3.3e38f);  // the second largest magnitude
  EXPECT_EQ(look().iteration, 0);
  halves[20000] = to_bfloat16(kNan);
  halves[12345] = to_bfloat16(-kInfiniteFloat);
  const Failure found = look();
  EXPECT_EQ(found.array, 2);
  EXPECT_EQ(found.index, 12345);
  EXPECT_EQ(found.value, -kInfiniteFloat);
}

TEST_F(Watch, LeavesAFailureThatStandsAlone) {
  arrays[1][29999] = kNan;
  look();
  arrays[0][3] = kInfiniteFloat;
  time.iteration = 9;
  const Failure found = look();
  EXPECT_EQ(found.iteration, 7);
  EXPECT_EQ(found.array, 1);
  EXPECT_EQ(found.index, 29999);
}

}  // namespace
}  // namespace wd
