// critics_test.cpp: targets of critics and losses of actors where a formula is short enough to be written
// down, and gradients by finite differences.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/critics_data.h"
#include "tests/kernels/loss_data.h"
#include "tests/kernels/memory.h"

namespace wd {
namespace {

// One row; critic 0 has the higher mean, 3, and critic 1 the lower one, 2.
CriticsData one_row() {
  CriticsData data{.rows = 1, .quantiles = 2};
  data.value = {{2.0f, 4.0f}, {-1.0f, 5.0f}};
  data.log_prob = {-0.5f};
  data.reward = {1.0f};
  data.discount = {0.5f};
  data.weight = {0.7f};
  return data;
}

TEST(Critics, TheTargetIsThatOfTheCriticWithTheLowestMean) {
  CriticsData data = one_row();
  const float entropy = 0.3f * 0.5f;
  EXPECT_EQ(run_critics(HostMemory(), data).target,
            (std::vector{1.0f + 0.5f * (-1.0f + entropy), 1.0f + 0.5f * (5.0f + entropy)}));
  data.discount = {0.0f};
  data.value = {{std::nanf(""), 0.0f}, {std::nanf(""), 0.0f}};
  EXPECT_EQ(run_critics(HostMemory(), data).target, (std::vector{1.0f, 1.0f})) << "nothing follows";
}

TEST(Critics, TheActorLearnsFromTheLowest) {
  CriticsData data = one_row();
  CriticsResult result = run_critics(HostMemory(), data);
  EXPECT_EQ(result.grad, (std::vector{0.0f, 0.0f, -0.5f, -0.5f}));
  EXPECT_EQ(result.sums, (std::vector{1.0f, 0.3f * -0.5f - 2.0f, 2.0f, -0.5f, 0.0f}))
      << "weights do not matter";
  data.weight = {0.0f};
  result = run_critics(HostMemory(), data);
  EXPECT_EQ(result.grad, (std::vector{0.0f, 0.0f, 0.0f, 0.0f}));
  EXPECT_EQ(result.sums, std::vector(kNumActorSums, 0.0f));
  EXPECT_EQ(result.counts, std::vector{0.0f});
}

double loss_of_choices(const CriticsData& data) {
  const CriticsResult result = run_critics(HostMemory(), data);
  double sum = 0.0;
  for (int row = 0; row < data.rows; ++row)
    sum += result.sums[static_cast<std::size_t>(kActorLoss * data.rows + row)];
  return sum;
}

TEST(Critics, ThePenaltyIsWeighted) {
  const CriticsResult result = run_critics(HostMemory(), one_row());
  EXPECT_EQ(result.penalty, (std::vector{0.7f * 0.3f / 2, 0.7f * 0.3f / 2})) << "on top of 0";
}

TEST(Critics, TheTemperatureGrowsWhereTheEntropyIsTooLow) {
  const TemperatureResult result = run_temperature(HostMemory(), 4.0, 10.0, 0.5f, -2.0);
  EXPECT_EQ(result.gradient, std::vector{-2.0f}) << "log pi is 2.5 on average, above 2";
  EXPECT_EQ(result.totals, (std::vector{4.0, -1.0}));
}

TEST(Critics, TheTargetEntropyIsAShareOfWhatIsPossible) {
  const TemperatureResult result = run_temperature(HostMemory(), 4.0, -3.0, 0.5f, 0.0, 8.0, 0.5);
  EXPECT_EQ(result.gradient, std::vector{-1.0f}) << "an entropy of 3 in all, and half of 8 is wanted";
}

TEST(Critics, TheGradientByLogitsIsThatOfTheLoss) {
  Draws draws(5);
  CriticsData data = random_critics(draws, categorical({4, 3}), 9, 2, 1);
  const CriticsResult result = run_critics(HostMemory(), data);
  constexpr float kStep = 5e-3f;
  for (std::size_t i = 0; i < data.logits.size(); ++i) {
    const float before = data.logits[i];
    data.logits[i] = before + kStep;
    const double above = loss_of_choices(data);
    data.logits[i] = before - kStep;
    const double below = loss_of_choices(data);
    data.logits[i] = before;
    EXPECT_NEAR(result.grad[i], (above - below) / (2 * kStep), 2e-3) << i;
  }
}

TEST(Critics, ChoicesAreWeighedByTheirProbabilities) {
  CriticsData data{.layout = categorical({3}), .rows = 1};
  data.value = {{1.0f, 4.0f, 9.0f}, {2.0f, 3.0f, 9.0f}};
  data.logits = {0.0f, std::log(3.0f), 5.0f};
  data.legal = {1, 1, 0};
  data.reward = {1.0f};
  data.discount = {0.5f};
  data.weight = {1.0f};
  const double entropy = -0.25 * std::log(0.25) - 0.75 * std::log(0.75);
  const double value = 0.25 * 1.0 + 0.75 * 3.0;
  const CriticsResult result = run_critics(HostMemory(), data);
  EXPECT_NEAR(result.target[0], 1.0 + 0.5 * (value + 0.3 * entropy), 1e-5);
  EXPECT_NEAR(result.sums[kActorLoss], -value - 0.3 * entropy, 1e-5);
  EXPECT_NEAR(result.sums[kActorLogProb], -entropy, 1e-5);
  EXPECT_NEAR(result.sums[kActorHighest], std::log(2.0), 1e-6) << "of uniform draws from two legal choices";
  EXPECT_EQ(result.grad[2], 0.0f);
}

}  // namespace
}  // namespace wd
