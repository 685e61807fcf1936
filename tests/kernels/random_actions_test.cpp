// random_actions_test.cpp: random actions are legal, uniform, independent of their neighbors, and the same
// for any split.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/random_actions_body.h"
#include "tests/kernels/memory.h"
#include "tests/kernels/random_actions_data.h"
#include "wd/detail/parallel.h"

namespace wd {
namespace {

constexpr std::int64_t kRows = 100'000;

std::vector<std::int32_t> draw(const ActionSpace& space, std::int64_t rows, std::uint64_t step = 0,
                               const std::vector<std::uint8_t>& legal = {}) {
  return run_random_actions(HostMemory(), space, rows, step, legal);
}

// Chi-square statistic of equal frequencies, divided by the degrees of freedom: close to 1.
double chi_square(const std::vector<int>& seen) {
  double n = 0.0, sum = 0.0;
  for (const int count : seen) n += count;
  const double expected = n / static_cast<double>(seen.size());
  for (const int count : seen) sum += (count - expected) * (count - expected) / expected;
  return sum / static_cast<double>(seen.size() - 1);
}

TEST(RandomActions, EveryPairOfChoicesIsEquallyLikely) {
  const auto actions = draw(ActionSpace::discrete({21, 5}), kRows);
  std::vector<int> seen(21 * 5);
  for (std::size_t i = 0; i < actions.size(); i += 2)
    ++seen.at(static_cast<std::size_t>(actions[i] * 5 + actions[i + 1]));
  EXPECT_LT(chi_square(seen), 1.5);
}

TEST(RandomActions, NeighboursAndStepsAreIndependent) {
  const ActionSpace space = ActionSpace::discrete({7});
  const auto now = draw(space, kRows, 3), next = draw(space, kRows, 4);
  std::vector<int> neighbours(49), steps(49);
  for (std::size_t i = 1; i < now.size(); ++i) {
    ++neighbours.at(static_cast<std::size_t>(now[i - 1] * 7 + now[i]));
    ++steps.at(static_cast<std::size_t>(now[i] * 7 + next[i]));
  }
  EXPECT_LT(chi_square(neighbours), 1.8);
  EXPECT_LT(chi_square(steps), 1.8);
}

TEST(RandomActions, ContinuousOnesFillTheirBounds) {
  const auto actions = draw(ActionSpace::box(2, -3.0f, 5.0f), kRows);
  std::vector<int> seen(16);
  for (const std::int32_t bits : actions)
    ++seen.at(static_cast<std::size_t>(std::floor((std::bit_cast<float>(bits) + 3.0f) * 2.0f)));
  EXPECT_LT(chi_square(seen), 2.5);
}

TEST(RandomActions, AreFiniteWhereBoundsAreNot) {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto range = [](const ActionSpace& space) {
    float low = 1e9f, high = -1e9f;
    for (const std::int32_t bits : draw(space, 10'000)) {
      low = std::min(low, std::bit_cast<float>(bits));
      high = std::max(high, std::bit_cast<float>(bits));
    }
    return std::pair(std::round(low), std::round(high));
  };
  EXPECT_EQ(range(ActionSpace::box(1, -infinity, infinity)), std::pair(-1.0f, 1.0f));
  EXPECT_EQ(range(ActionSpace::box(1, 3.0f, infinity)), std::pair(3.0f, 5.0f));
  EXPECT_EQ(range(ActionSpace::box(1, -infinity, 3.0f)), std::pair(1.0f, 3.0f));
}

// The stream differs from those of environments and of policies.
TEST(RandomActions, HaveAStreamOfTheirOwn) {
  for (const std::uint64_t seed : {std::uint64_t{7}, (std::uint64_t{3} << 32) + 5}) {
    const RandomKey own = step_key(random_actions_of(ActionSpace::discrete({2}), seed, 2, 9));
    for (const RandomUse other :
         {RandomUse::kEnvironment, RandomUse::kAction, RandomUse::kShuffle, RandomUse::kPool}) {
      const RandomKey key = RandomKey::of(seed, other);
      const Philox bits = philox({{2, 9, 0, 0}}, key.key0, key.key1);
      EXPECT_FALSE(bits.word[0] == own.key0 && bits.word[1] == own.key1);
    }
  }
}

TEST(RandomActions, OnlyLegalChoicesAndAllOfThem) {
  std::vector<std::uint8_t> legal;
  for (std::int64_t row = 0; row < kRows; ++row)
    legal.insert(legal.end(), {0, 1, 0, 1, 1, /* second head */ 0, 0, 1});
  const auto actions = draw(ActionSpace::discrete({5, 3}), kRows, 0, legal);
  std::vector<int> seen(3);
  for (std::size_t i = 0; i < actions.size(); i += 2) {
    ASSERT_TRUE(actions[i] == 1 || actions[i] == 3 || actions[i] == 4);
    ASSERT_EQ(actions[i + 1], 2);
    ++seen[static_cast<std::size_t>(actions[i] == 1 ? 0 : actions[i] - 2)];
  }
  EXPECT_LT(chi_square(seen), 5.0);
}

TEST(RandomActions, MasksThatPermitEverythingChangeNothing) {
  const ActionSpace space = ActionSpace::discrete({4, 6});
  EXPECT_EQ(draw(space, 1000, 9, std::vector<std::uint8_t>(10'000, 1)), draw(space, 1000, 9));
}

TEST(RandomActions, AreTheSameForAnyNumberOfThreads) {
  const ActionSpace space = ActionSpace::discrete({21, 21});
  const int threads = num_threads();
  const auto all = draw(space, kRows);
  set_num_threads(1);
  EXPECT_EQ(draw(space, kRows), all);
  set_num_threads(threads);
}

TEST(RandomActions, TooManyHeadsAreRefused) {
  EXPECT_THROW(random_actions_of(ActionSpace::discrete(std::vector<int>(kMaxHeads + 1, 2)), 1, 0, 0),
               std::runtime_error);
}

}  // namespace
}  // namespace wd
