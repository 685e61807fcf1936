// td_test.cpp: targets and losses of Q-learning where a formula is short enough to be written down, and
// gradients by finite differences.
#include <gtest/gtest.h>

#include "tests/kernels/loss_data.h"
#include "tests/kernels/memory.h"
#include "tests/kernels/td_data.h"

namespace wd {
namespace {

// Two rows and heads of 3 and 2 choices; every choice has the same value by both networks, 10 i + row.
TdData two_rows() {
  TdData data{.layout = categorical({3, 2}), .rows = 2};
  for (const int row : {0, 1})
    for (int i = 0; i < 5; ++i) data.select.push_back(static_cast<float>(10 * i + row));
  data.value = data.output = data.select;
  data.reward = {1.0f, 2.0f};
  data.discount = {0.5f, 0.5f};
  data.weight = {1.0f, 1.0f};
  data.action = {0, 1, 2, 0};
  return data;
}

TEST(Td, EachHeadTakesItsBestLegalChoice) {
  TdData data = two_rows();
  EXPECT_EQ(run_td(HostMemory(), data).target,
            (std::vector{1.0f + 0.5f * (20 + 40), 2.0f + 0.5f * (21 + 41)}));
  data.legal = {1, 1, 0, 1, 0, 1, 0, 0, 0, 1};
  EXPECT_EQ(run_td(HostMemory(), data).target,
            (std::vector{1.0f + 0.5f * (10 + 30), 2.0f + 0.5f * (1 + 41)}));
}

TEST(Td, AHeadWithoutALegalChoiceHasNoValue) {
  TdData data = two_rows();
  data.legal = {0, 0, 0, 1, 1, 0, 0, 0, 0, 0};
  EXPECT_EQ(run_td(HostMemory(), data).target, (std::vector{1.0f + 0.5f * 40, 2.0f}));
}

TEST(Td, NothingFollowsWithoutADiscount) {
  TdData data = two_rows();
  data.discount = {0.0f, 0.0f};
  std::fill(data.value.begin(), data.value.end(), std::nanf(""));
  EXPECT_EQ(run_td(HostMemory(), data).target, data.reward);
}

TEST(Td, TheSelectingNetworkChoosesAndTheOtherOneValues) {
  TdData data = two_rows();
  for (float& value : data.select) value = -value;
  EXPECT_EQ(run_td(HostMemory(), data).target, (std::vector{1.0f + 0.5f * (0 + 30), 2.0f + 0.5f * (1 + 31)}));
}

TEST(Td, RowsThatDoNotCountLearnNothing) {
  TdData data = two_rows();
  data.weight = {0.0f, 2.0f};
  const TdResult result = run_td(HostMemory(), data);
  EXPECT_EQ(result.sums[kTdCount * 2], 0.0f);
  EXPECT_EQ(result.sums[kTdCount * 2 + 1], 2.0f);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(result.grad[static_cast<std::size_t>(i)], 0.0f);
  EXPECT_EQ(result.sums[kTdLoss * 2], 0.0f);
}

double total_loss(const TdData& data) {
  const TdResult result = run_td(HostMemory(), data);
  double sum = 0.0;
  for (int row = 0; row < data.rows; ++row)
    sum += result.sums[static_cast<std::size_t>(kTdLoss * data.rows + row)];
  return sum;
}

TEST(Td, TheGradientIsThatOfTheLoss) {
  Draws draws(4);
  for (const int quantiles : {1, 5}) {
    for (const float huber : {0.0f, 0.7f}) {
      SCOPED_TRACE(testing::Message() << quantiles << " quantiles, " << huber);
      TdData data = random_td(draws, categorical({3, 2}), 6, quantiles, huber, true);
      data.cql = huber;  // without it, and with it
      const TdResult result = run_td(HostMemory(), data);
      constexpr float kStep = 1e-3f;
      for (std::size_t i = 0; i < data.output.size(); ++i) {
        TdData above = data, below = data;
        above.output[i] += kStep, below.output[i] -= kStep;
        const double slope = (total_loss(above) - total_loss(below)) / (2.0 * kStep);
        EXPECT_NEAR(result.grad[i], slope, 0.02 + 0.01 * std::abs(slope)) << i;
      }
    }
  }
}

// The mean over targets stays the same.
TEST(Td, ATargetMayHaveMoreNumbersThanAValue) {
  Draws draws(6);
  for (const float huber : {0.0f, 0.7f}) {
    TdData data = random_td(draws, categorical({3, 2}), 6, 5, huber, true);
    const TdResult once = run_td(HostMemory(), data);
    data.repeats = 3;
    const TdResult thrice = run_td(HostMemory(), data);
    for (std::size_t i = 0; i < once.grad.size(); ++i) EXPECT_NEAR(thrice.grad[i], once.grad[i], 1e-6) << i;
    for (std::size_t i = 0; i < once.error.size(); ++i)
      EXPECT_NEAR(thrice.error[i], once.error[i], 1e-6) << i;
    for (std::size_t i = 0; i < once.sums.size(); ++i) EXPECT_NEAR(thrice.sums[i], once.sums[i], 1e-5) << i;
  }
}

// log(e^0 + e^1 + e^2) of a head of 3 and log(e^3 + e^4) of one of 2, less the values of the actions 0 and 4.
TEST(Td, ConservativeQLearningPushesUnplayedChoicesDown) {
  TdData data = two_rows();
  data.rows = 1;
  data.output = {0.0f, 1.0f, 2.0f, 3.0f, 4.0f};
  data.reward = {4.0f};  // the value of the action: no other loss
  data.discount = {0.0f};
  data.weight = {2.0f};
  data.action = {0, 1};
  data.cql = 0.5f;
  const auto penalty = [](const std::vector<double>& values, double action) {
    double sum = 0.0;
    for (const double value : values) sum += std::exp(value);
    return std::log(sum) - action;
  };
  const TdResult all = run_td(HostMemory(), data);
  EXPECT_NEAR(all.sums[kTdLoss], 2.0 * 0.5 * (penalty({0, 1, 2}, 0) + penalty({3, 4}, 4)), 1e-5);
  EXPECT_NEAR(all.grad[2], 2.0 * 0.5 * std::exp(2.0 - penalty({0, 1, 2}, 0)), 1e-5);
  EXPECT_NEAR(all.grad[0], 2.0 * 0.5 * (std::exp(-penalty({0, 1, 2}, 0)) - 1.0), 1e-5);
  data.legal = {1, 1, 0, 1, 1};
  const TdResult legal = run_td(HostMemory(), data);
  EXPECT_NEAR(legal.sums[kTdLoss], 2.0 * 0.5 * (penalty({0, 1}, 0) + penalty({3, 4}, 4)), 1e-5);
  EXPECT_EQ(legal.grad[2], 0.0f);
  data.weight = {0.0f};
  EXPECT_EQ(run_td(HostMemory(), data).sums[kTdLoss], 0.0f);
}

}  // namespace
}  // namespace wd
