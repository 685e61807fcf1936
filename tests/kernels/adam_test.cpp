// adam_test.cpp: optimizer steps against the paper's equations in double; which steps are rejected, and what
// ends an update.
#include "kernels/adam.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/adam_data.h"
#include "tests/kernels/memory.h"
#include "wd/detail/parallel.h"

namespace wd {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Algorithm 1 of the paper on the clipped mean gradient, all in double.
struct Oracle {
  std::vector<double> parameter, first, second;
  double norm = 0.0;
  int t = 0;

  explicit Oracle(const std::vector<float>& start)
      : parameter(start.begin(), start.end()), first(start.size()), second(start.size()) {}

  void step(const Minibatch& minibatch, double lr, double limit) {
    ++t;
    double squares = 0.0;
    for (const float g : minibatch.gradient) squares += double{g} * g;
    norm = std::sqrt(squares) / minibatch.totals[kCount];
    const double scale = std::min(1.0, limit / (norm + 1e-6)) / minibatch.totals[kCount];
    for (std::size_t i = 0; i < parameter.size(); ++i) {
      const double g = minibatch.gradient[i] * scale;
      first[i] = 0.9 * first[i] + 0.1 * g;
      second[i] = 0.999 * second[i] + 0.001 * g * g;
      const double unbiased1 = first[i] / (1.0 - std::pow(0.9, t)),
                   unbiased2 = second[i] / (1.0 - std::pow(0.999, t));
      parameter[i] -= lr * unbiased1 / (std::sqrt(unbiased2) + 1e-5);
    }
  }
};

class AdamStep : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_num_threads(GetParam()); }
};

TEST_P(AdamStep, FollowsThePaper) {
  for (const std::int64_t n : {1, 3, 4, 4097, 50001}) {
    for (const double limit : {0.05, 1e9, kInfinity}) {
      Draws draws(1);
      Optimizer start = Optimizer::of(draws.uniforms(n, -1.0f, 1.0f));
      start.record.max_grad_norm = limit;
      Oracle oracle(start.parameter);
      std::vector<Minibatch> minibatches;
      double norms = 0.0;
      for (int i = 0; i < 20; ++i) {
        minibatches.push_back(random_minibatch(draws, n, 1.0 + 100.0 * i));
        oracle.step(minibatches.back(), start.record.lr, limit);
        norms += oracle.norm;
      }
      const Optimizer end = run_adam(HostMemory(), start, minibatches);
      for (std::size_t i = 0; i < end.parameter.size(); ++i) {
        ASSERT_NEAR(end.parameter[i], oracle.parameter[i], 2e-6) << "n " << n << ", " << i;
        ASSERT_NEAR(end.first[i], oracle.first[i], 1e-6 * (1e-3 + std::abs(oracle.first[i])));
        ASSERT_NEAR(end.second[i], oracle.second[i], 2e-6 * (1e-12 + oracle.second[i]));
      }
      EXPECT_EQ(end.steps, 20);
      EXPECT_EQ(end.record.steps, 20.0);
      EXPECT_EQ(end.record.refused, 0.0);
      EXPECT_NEAR(end.record.norm_sum, norms, 1e-9 * norms);
      EXPECT_DOUBLE_EQ(end.losses.sums[kClipped], 20 * 7.0);
    }
  }
}

TEST_P(AdamStep, TheNumberOfStepsGoesOn) {
  Draws draws(2);
  const Optimizer start = Optimizer::of(draws.uniforms(100, -1.0f, 1.0f));
  const std::vector<Minibatch> minibatches = {random_minibatch(draws, 100), random_minibatch(draws, 100),
                                              random_minibatch(draws, 100)};
  Optimizer half = run_adam(HostMemory(), start, {minibatches[0], minibatches[1]});
  half.record = start.record;
  const Optimizer end = run_adam(HostMemory(), half, {minibatches[2]});
  EXPECT_EQ(end.parameter, run_adam(HostMemory(), start, minibatches).parameter);
  EXPECT_EQ(end.steps, 3);
}

// float32 has no 2^24 + 1.
TEST_P(AdamStep, CountsBeyondWhatAFloatHolds) {
  Draws draws(2);
  Optimizer start = Optimizer::of(draws.uniforms(100, -1.0f, 1.0f));
  start.steps = std::int64_t{1} << 24;
  const Optimizer end =
      run_adam(HostMemory(), start, {random_minibatch(draws, 100), random_minibatch(draws, 100)});
  EXPECT_EQ(end.steps, (std::int64_t{1} << 24) + 2);
}

// Puts a value that is not finite into each loss sum in turn, and into the gradient.
TEST_P(AdamStep, WhatIsNotFiniteIsRefused) {
  Draws draws(3);
  const Optimizer start = Optimizer::of(draws.uniforms(5000, -1.0f, 1.0f));
  const Minibatch good = random_minibatch(draws, 5000);
  for (const double bad : {kNaN, kInfinity, -kInfinity}) {
    for (int where = 0; where <= kNumLossSums; ++where) {
      Minibatch poisoned = good;
      if (where < kNumLossSums) {
        poisoned.totals[static_cast<std::size_t>(where)] = bad;
      } else {
        poisoned.gradient[4999] = static_cast<float>(bad);
      }
      const Optimizer end = run_adam(HostMemory(), start, {poisoned});
      EXPECT_EQ(end.parameter, start.parameter) << where;
      EXPECT_EQ(end.first, start.first);
      EXPECT_EQ(end.second, start.second);
      EXPECT_EQ(end.shadow, start.shadow);
      EXPECT_EQ(end.steps, 0);
      EXPECT_EQ(end.record.refused, 1.0);
      EXPECT_EQ(end.record.made, 0.0);
      const Optimizer after = run_adam(HostMemory(), start, {poisoned, good});
      EXPECT_EQ(after.parameter, start.parameter) << "something was learned after it";
    }
  }
}

TEST_P(AdamStep, TooMuchKlEndsTheUpdate) {
  Draws draws(4);
  Optimizer start = Optimizer::of(draws.uniforms(100, -1.0f, 1.0f));
  start.losses.limit = 0.01;
  const Minibatch good = random_minibatch(draws, 100);  // the KL estimate per row is 0.01
  Minibatch far = good, just = good;
  just.totals[kApproxKl] = 1.5 * 0.01 * far.totals[kCount];
  far.totals[kApproxKl] = 1.001 * just.totals[kApproxKl];
  const Optimizer before = run_adam(HostMemory(), start, {good, just});
  EXPECT_EQ(before.record.stopped, 0.0);
  const Optimizer end = run_adam(HostMemory(), start, {good, just, far, good, far});
  EXPECT_EQ(end.record.stopped, 1.0);
  EXPECT_EQ(end.parameter, before.parameter);
  EXPECT_EQ(end.record.steps, 2.0);
  EXPECT_EQ(end.record.norm_sum, before.record.norm_sum);
  EXPECT_DOUBLE_EQ(end.losses.sums[kCount], 3 * good.totals[kCount]) << "the one that ended it is counted";
}

// Rounds as the hardware does: ties to even, and overflow to infinity.
TEST_P(AdamStep, ShadowIsTheNearestBfloat16) {
  const std::vector<std::pair<float, std::uint16_t>> cases = {
      {1.0f, 0x3f80},          {-1.0f, 0xbf80},         {0x1.01p0f, 0x3f80},       {0x1.03p0f, 0x3f82},
      {0x1.010002p0f, 0x3f81}, {0x1.00fffep0f, 0x3f80}, {0x1.fffffep127f, 0x7f80}, {0.0f, 0x0000},
      {-0.0f, 0x8000},         {0x1p-140f, 0x0000},     {0x1.8p-133f, 0x0002}};
  std::vector<float> parameter;
  std::vector<std::uint16_t> expected;
  for (const auto& [value, bits] : cases) {
    parameter.push_back(value);
    expected.push_back(bits);
  }
  Optimizer start = Optimizer::of(parameter);
  start.record.lr = 0.0;
  Draws draws(5);
  const Minibatch minibatch = random_minibatch(draws, static_cast<std::int64_t>(parameter.size()));
  const Optimizer end = run_adam(HostMemory(), start, {minibatch});
  EXPECT_EQ(end.parameter, parameter);
  EXPECT_EQ(end.shadow, expected);
  EXPECT_EQ(run_adam(HostMemory(), start, {minibatch}, false).shadow, start.shadow);
}

// A minibatch in which no row counts has no effect, not even on later steps.
TEST_P(AdamStep, NoRowCounted) {
  Draws draws(6);
  const Optimizer start = Optimizer::of(draws.uniforms(100, -1.0f, 1.0f));
  const Minibatch good = random_minibatch(draws, 100),
                  empty = {std::vector<float>(100), std::vector<double>(kNumLossSums)};
  const Optimizer without = run_adam(HostMemory(), start, {good, good});
  EXPECT_NE(without.first, start.first) << "no moment is there to move anything: nothing is tested";
  const Optimizer with = run_adam(HostMemory(), start, {empty, good, empty, good, empty});
  EXPECT_EQ(with.parameter, without.parameter);
  EXPECT_EQ(with.first, without.first);
  EXPECT_EQ(with.second, without.second);
  EXPECT_EQ(with.shadow, without.shadow);
  EXPECT_EQ(with.steps, 2);
  EXPECT_EQ(with.record.steps, 2.0);
  EXPECT_EQ(with.record.norm_sum, without.record.norm_sum);
  EXPECT_EQ(with.record.empty, 3.0);
  EXPECT_EQ(without.record.empty, 0.0);
  EXPECT_EQ(with.record.stopped, 0.0);
}

TEST_P(AdamStep, NaNIsRefusedWhereNoRowCountsToo) {
  const Optimizer start = Optimizer::of({1.0f, -2.0f});
  std::vector<double> totals(kNumLossSums);
  totals[kPolicyLoss] = kNaN;
  const Optimizer end = run_adam(HostMemory(), start, {{{0.0f, 0.0f}, totals}});
  EXPECT_EQ(end.record.refused, 1.0);
  EXPECT_EQ(end.record.empty, 0.0);
}

INSTANTIATE_TEST_SUITE_P(Threads, AdamStep, testing::Values(1, 2, 4));

TEST(BeginUpdate, ForgetsTheLastUpdateButNotARefusal) {
  const double lr = 0.25, limit = 0.5, target_kl = 0.01;
  StepRecord record{.norm_sum = 7.0, .steps = 3.0, .empty = 2.0, .stopped = 1.0};
  LossRecord losses{.sums = {3.0, 4.0}};
  BeginUpdateArgs args{.record = &record, .lr = &lr, .max_grad_norm = &limit};
  BeginLossRecordArgs loss_args{.record = &losses, .optimizer = &record, .limit = &target_kl};
  begin_update({}, args);
  begin_loss_record({}, loss_args);
  EXPECT_EQ(record.lr, 0.25);
  EXPECT_EQ(record.max_grad_norm, 0.5);
  EXPECT_EQ(losses.limit, 0.01);
  EXPECT_EQ(losses.sums[0] + losses.sums[1], 0.0);
  EXPECT_EQ(record.norm_sum + record.steps + record.empty + record.stopped, 0.0);
  args.max_grad_norm = loss_args.limit = nullptr;
  begin_update({}, args);
  begin_loss_record({}, loss_args);
  EXPECT_EQ(record.max_grad_norm, HUGE_VAL);
  EXPECT_EQ(losses.limit, 0.0);
  record.refused = record.stopped = 1.0;
  record.norm_sum = losses.sums[1] = 7.0;
  begin_update({}, args);
  begin_loss_record({}, loss_args);
  EXPECT_EQ(record.norm_sum, 7.0);
  EXPECT_EQ(record.stopped, 1.0);
  EXPECT_EQ(losses.sums[1], 7.0);
}

TEST(BeginUpdate, HeedsAFailure) {
  const double lr = 0.25;
  std::int64_t failed = 0;
  StepRecord record{};
  const BeginUpdateArgs args{.record = &record, .lr = &lr, .failed = &failed};
  begin_update({}, args);
  EXPECT_EQ(record.stopped, 0.0);
  failed = 12;
  begin_update({}, args);
  EXPECT_EQ(record.stopped, 1.0);
}

}  // namespace
}  // namespace wd
