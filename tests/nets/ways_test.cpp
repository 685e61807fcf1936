// ways_test.cpp: which of several ways is used, and what happens if it fails.
#include "src/nets/ways.h"

#include <gtest/gtest.h>

namespace wd {
namespace {

using Times = std::vector<std::optional<double>>;

Ways timed(const Times& times) {
  return {times.size(), [&](std::size_t way) { return times[way]; }};
}

// The ways that are tried if all of them fail, in order.
std::vector<std::size_t> order_of(Ways ways) {
  std::vector<std::size_t> tried;
  EXPECT_FALSE(ways.run([&](std::size_t way) {
    tried.push_back(way);
    return false;
  }));
  return tried;
}

TEST(Ways, TheFastestIsFirst) {
  EXPECT_EQ(order_of(timed({4.0, 3.0, 1.0, 2.0})), (std::vector<std::size_t>{2, 3, 1, 0}));
  EXPECT_EQ(timed({4.0, 3.0, 1.0, 2.0}).seconds(), 1.0);
}

TEST(Ways, TheFirstStaysFirstUnlessAnotherIsClearlyFaster) {
  EXPECT_EQ(order_of(timed({1.0, 0.95})), (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(order_of(timed({1.0, 0.85})), (std::vector<std::size_t>{1, 0}));
  EXPECT_EQ(timed({1.0, 0.95}).seconds(), 1.0);
}

TEST(Ways, EquallyFastOnesKeepTheirOrder) {
  EXPECT_EQ(order_of(timed({0.0, 0.0, 0.0})), (std::vector<std::size_t>{0, 1, 2}));
}

TEST(Ways, OnesThatDoNotWorkAreLeftOut) {
  EXPECT_EQ(order_of(timed({std::nullopt, 1.0, std::nullopt, 0.95})), (std::vector<std::size_t>{1, 3}));
  EXPECT_EQ(order_of(timed({std::nullopt})), std::vector<std::size_t>{});
  EXPECT_EQ(timed({std::nullopt}).seconds(), std::nullopt);
  EXPECT_EQ(order_of({}), std::vector<std::size_t>{});
}

TEST(Ways, OneThatFailsLaterIsReplacedForGood) {
  Ways ways = timed({3.0, 2.0, 1.0});
  std::vector<std::size_t> tried;
  const auto without_2 = [&](std::size_t way) {
    tried.push_back(way);
    return way != 2;
  };
  EXPECT_TRUE(ways.run(without_2));
  EXPECT_TRUE(ways.run(without_2));
  EXPECT_EQ(tried, (std::vector<std::size_t>{2, 1, 1}));
  EXPECT_EQ(ways.seconds(), 2.0);
}

}  // namespace
}  // namespace wd
