// random_test.cpp: Philox returns its known answers, and the numbers derived from its bits have the right
// distribution.
#include "wd/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

namespace {

// Known answers of the Random123 distribution (kat_vectors, philox4x32 with 10 rounds).
TEST(Random, PhiloxGivesItsKnownAnswers) {
  struct Known {
    std::uint32_t counter[4], key[2], answer[4];
  };
  for (const Known& known : {
           Known{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
           Known{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                 {0xffffffff, 0xffffffff},
                 {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
           Known{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                 {0xa4093822, 0x299f31d0},
                 {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
       }) {
    const auto& c = known.counter;
    const wd::Philox bits = wd::philox({{c[0], c[1], c[2], c[3]}}, known.key[0], known.key[1]);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(bits.word[i], known.answer[i]);
  }
}

wd::Random random_of(std::uint64_t seed, std::uint32_t replica = 0, std::uint32_t episode = 0,
                     std::uint32_t step = 0, wd::RandomUse stream = wd::RandomUse::kEnvironment) {
  return {wd::RandomKey::of(seed, stream), replica, episode, step};
}

TEST(Random, EveryCoordinateOfADrawMatters) {
  std::set<std::uint64_t> seen;
  int draws = 0;
  const auto add = [&](const wd::Random& random, int agent, int purpose) {
    const wd::Philox bits = random.bits(agent, purpose);
    seen.insert(std::uint64_t{bits.word[0]} << 32 | bits.word[1]);
    ++draws;
  };
  add(random_of(1), 0, 0);
  for (std::uint32_t k = 1; k < 200; ++k) {
    add(random_of(1 + k), 0, 0);
    add(random_of(1 + (std::uint64_t{k} << 32)), 0, 0);
    add(random_of(1, k), 0, 0);
    add(random_of(1, 0, k), 0, 0);
    add(random_of(1, 0, 0, k), 0, 0);
    add(random_of(1), static_cast<int>(k), 0);
    add(random_of(1), 0, static_cast<int>(k));
  }
  for (const auto stream : {wd::RandomUse::kAction, wd::RandomUse::kShuffle, wd::RandomUse::kPool}) {
    add(random_of(1, 0, 0, 0, stream), 0, 0);
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(draws));
}

TEST(Random, TheSameCoordinatesGiveTheSameNumber) {
  EXPECT_EQ(random_of(7, 3, 2, 9).uniform(4, 1), random_of(7, 3, 2, 9).uniform(4, 1));
  EXPECT_EQ(random_of(7, 3, 2, 9).normal(4, 1), random_of(7, 3, 2, 9).normal(4, 1));
}

constexpr int kDraws = 200000;

// Mean, variance and correlation of consecutive draws, each with a tolerance of five standard errors.
template <typename Draw>
void expect_moments(double mean, double variance, Draw draw) {
  double sum = 0.0, squares = 0.0, products = 0.0, last = 0.0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = static_cast<double>(draw(i)) - mean;
    sum += x;
    squares += x * x;
    products += x * last;
    last = x;
  }
  const double allowance = 5.0 / std::sqrt(kDraws);
  EXPECT_NEAR(sum / kDraws, 0.0, allowance * std::sqrt(variance));
  EXPECT_NEAR(squares / kDraws / variance, 1.0, allowance * 1.5);
  EXPECT_NEAR(products / kDraws / variance, 0.0, allowance);
}

TEST(Random, Uniform) {
  EXPECT_EQ(wd::uniform_of(0), 0.0f);
  EXPECT_LT(wd::uniform_of(0xffffffffu), 1.0f);
  const wd::Random random = random_of(11);
  expect_moments(0.5, 1.0 / 12.0, [&](int i) { return random.uniform(i, 0); });
  expect_moments(0.5, 1.0 / 12.0, [&](int i) { return random.uniform_double(i, 1); });
  expect_moments(0.5, 1.0 / 12.0,
                 [](int i) { return random_of(11, static_cast<std::uint32_t>(i)).uniform(0, 0); });
  expect_moments(0.5, 1.0 / 12.0,
                 [](int i) { return random_of(11, 0, 0, static_cast<std::uint32_t>(i)).uniform(0, 0); });
  expect_moments(1.0, 4.0 / 3.0, [&](int i) { return random.uniform(i, 2, -1.0f, 3.0f); });
}

TEST(Random, UniformDoubleHasFineSteps) {
  const wd::Random random = random_of(12);
  int fine = 0;
  for (int i = 0; i < 1000; ++i) {
    const double u = random.uniform_double(i, 0);
    ASSERT_TRUE(u >= 0.0 && u < 1.0);
    if (static_cast<double>(static_cast<float>(u)) != u) ++fine;
  }
  EXPECT_GT(fine, 990);
}

TEST(Random, IntegersAreEquallyFrequent) {
  const wd::Random random = random_of(13);
  for (const int n : {1, 2, 5, 21}) {
    std::vector<int> counts(static_cast<std::size_t>(n));
    for (int i = 0; i < kDraws; ++i) ++counts.at(static_cast<std::size_t>(random.integer(i, n, n)));
    const double expected = static_cast<double>(kDraws) / n;
    double chi_squared = 0.0;
    for (const int count : counts) chi_squared += (count - expected) * (count - expected) / expected;
    EXPECT_LT(chi_squared, n - 1 + 5.0 * std::sqrt(2.0 * n)) << n;
  }
}

TEST(Random, Normal) {
  const wd::Random random = random_of(14);
  expect_moments(0.0, 1.0, [&](int i) { return random.normal(i, 0); });
  int beyond_two = 0;
  for (int i = 0; i < kDraws; ++i) {
    const float x = random.normal(i, 1);
    ASSERT_TRUE(std::isfinite(x));
    if (std::abs(x) > 2.0f) ++beyond_two;
  }
  EXPECT_NEAR(beyond_two / static_cast<double>(kDraws), 0.0455, 0.0025);
  EXPECT_TRUE(std::isfinite(wd::Random::normal_of({{0xffffffffu, 0, 0, 0}})));
  EXPECT_TRUE(std::isfinite(wd::Random::normal_of({{0, 0, 0, 0}})));
}

}  // namespace
