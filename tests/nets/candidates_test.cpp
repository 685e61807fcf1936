// candidates_test.cpp: which of several candidates is used, and what happens if it fails.
#include "src/nets/candidates.h"

#include <gtest/gtest.h>

namespace wd {
namespace {

using Times = std::vector<std::optional<double>>;

Candidates timed(const Times& times) {
  return {times.size(), [&](std::size_t candidate) { return times[candidate]; }};
}

// The candidates that are tried if all of them fail, in order.
std::vector<std::size_t> order_of(Candidates candidates) {
  std::vector<std::size_t> tried;
  EXPECT_FALSE(candidates.run([&](std::size_t candidate) {
    tried.push_back(candidate);
    return false;
  }));
  return tried;
}

TEST(Candidates, TheFastestIsFirst) {
  EXPECT_EQ(order_of(timed({4.0, 3.0, 1.0, 2.0})), (std::vector<std::size_t>{2, 3, 1, 0}));
  EXPECT_EQ(timed({4.0, 3.0, 1.0, 2.0}).seconds(), 1.0);
}

TEST(Candidates, TheFirstStaysFirstUnlessAnotherIsClearlyFaster) {
  EXPECT_EQ(order_of(timed({1.0, 0.95})), (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(order_of(timed({1.0, 0.85})), (std::vector<std::size_t>{1, 0}));
  EXPECT_EQ(timed({1.0, 0.95}).seconds(), 1.0);
}

TEST(Candidates, EquallyFastOnesKeepTheirOrder) {
  EXPECT_EQ(order_of(timed({0.0, 0.0, 0.0})), (std::vector<std::size_t>{0, 1, 2}));
}

TEST(Candidates, OnesThatDoNotWorkAreLeftOut) {
  EXPECT_EQ(order_of(timed({std::nullopt, 1.0, std::nullopt, 0.95})), (std::vector<std::size_t>{1, 3}));
  EXPECT_EQ(order_of(timed({std::nullopt})), std::vector<std::size_t>{});
  EXPECT_EQ(timed({std::nullopt}).seconds(), std::nullopt);
  EXPECT_EQ(order_of({}), std::vector<std::size_t>{});
}

TEST(Candidates, OneThatFailsLaterIsReplacedForGood) {
  Candidates candidates = timed({3.0, 2.0, 1.0});
  std::vector<std::size_t> tried;
  const auto without_2 = [&](std::size_t candidate) {
    tried.push_back(candidate);
    return candidate != 2;
  };
  EXPECT_TRUE(candidates.run(without_2));
  EXPECT_TRUE(candidates.run(without_2));
  EXPECT_EQ(tried, (std::vector<std::size_t>{2, 1, 1}));
  EXPECT_EQ(candidates.seconds(), 2.0);
}

}  // namespace
}  // namespace wd
