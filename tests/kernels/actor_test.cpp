// actor_test.cpp: actions of off-policy actors: their densities in double, gradients by finite differences,
// the noise of a target, and that ranks draw what one rank would.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/actor_data.h"
#include "tests/kernels/memory.h"

namespace wd {
namespace {

// Of all rows together: the sum over components of action_grad a, plus alpha log pi.
std::vector<double> losses(const ActorData& data) {
  const ActorResult result = run_actor(HostMemory(), data);
  std::vector<double> all;
  for (int row = 0; row < data.rows; ++row) {
    double loss = data.distribution == Distribution::kPoint
                      ? 0.0
                      : data.alpha * result.log_prob[static_cast<std::size_t>(row)];
    for (int k = 0; k < data.components; ++k) {
      const auto at = static_cast<std::size_t>(row * data.components + k);
      loss += static_cast<double>(data.action_grad[at]) * result.action[at];
    }
    all.push_back(data.weight[static_cast<std::size_t>(row)] * loss);
  }
  return all;
}

TEST(Actor, TheGradientIsThatOfTheLossWithTheSameRandomNumbers) {
  Draws draws(3);
  for (const Distribution distribution : {Distribution::kPoint, Distribution::kStateGaussian}) {
    const ActorData data = random_actor(draws, distribution, 24, 3);
    const ActorResult result = run_actor(HostMemory(), data);
    int at_zero = 0;
    for (int k = 0; k < data.width(); ++k) {
      constexpr float kStep = 2e-3f;
      ActorData above = data, below = data;
      for (int row = 0; row < data.rows; ++row) {
        above.output[static_cast<std::size_t>(row * data.width() + k)] += kStep;
        below.output[static_cast<std::size_t>(row * data.width() + k)] -= kStep;
      }
      const std::vector<double> higher = losses(above), lower = losses(below);
      for (int row = 0; row < data.rows; ++row) {
        const auto r = static_cast<std::size_t>(row);
        const double slope = (higher[r] - lower[r]) / (2.0 * kStep);
        const float grad = result.grad[static_cast<std::size_t>(row * data.width() + k)];
        EXPECT_NEAR(grad, slope, 3e-3 + 0.01 * std::abs(slope)) << "row " << row << ", output " << k;
        at_zero += grad == 0.0f ? 1 : 0;
      }
    }
    EXPECT_GT(at_zero, 0) << "rows that do not count, and deviations at their limit";
  }
}

TEST(Actor, TheDensityIsThatOfASquashedGaussian) {
  Draws draws(4);
  const ActorData data = random_actor(draws, Distribution::kStateGaussian, 500, 2, false);
  const ActorResult result = run_actor(HostMemory(), data);
  for (int row = 0; row < data.rows; ++row) {
    double log_prob = 0.0;
    for (int k = 0; k < 2; ++k) {
      const double mean = data.output[static_cast<std::size_t>(row * 4 + k)],
                   log_std = data.output[static_cast<std::size_t>(row * 4 + 2 + k)],
                   a = result.action[static_cast<std::size_t>(row * 2 + k)];
      if (std::abs(a) > 0.999) {
        log_prob = std::nan("");  // u cannot be recovered from a float so close to 1
        break;
      }
      const double z = (std::atanh(a) - mean) / std::exp(log_std);
      log_prob += -0.5 * z * z - log_std - 0.5 * std::log(2.0 * M_PI) - std::log(1.0 - a * a);
    }
    if (std::isnan(log_prob)) continue;
    EXPECT_NEAR(result.log_prob[static_cast<std::size_t>(row)], log_prob, 2e-3 * (1.0 + std::abs(log_prob)));
  }
}

// Far from 0, where tanh rounds to 1, the density stays finite.
TEST(Actor, TheDensityIsFiniteWhereTheActionIsAtItsBound) {
  ActorData data{.distribution = Distribution::kStateGaussian, .rows = 2, .components = 1};
  data.output = {30.0f, -1.0f, -30.0f, -1.0f};
  data.action_grad = {1.0f, 1.0f};
  data.weight = {1.0f, 1.0f};
  data.alpha = 0.5f;
  const ActorResult result = run_actor(HostMemory(), data);
  for (const float number : result.log_prob) EXPECT_TRUE(std::isfinite(number) && number > 50.0f) << number;
  for (const float number : result.grad) EXPECT_TRUE(std::isfinite(number)) << number;
}

TEST(Actor, TheNoiseOfATargetIsClippedAndActionsStayWithinTheirBounds) {
  ActorData data{.distribution = Distribution::kPoint, .rows = 20'000, .components = 1};
  data.noise = 0.2f, data.noise_clip = 0.3f;
  data.draw.key = RandomKey::of(5, RandomUse::kActor);
  data.output.assign(20'000, 0.0f);
  data.action_grad.assign(20'000, 0.0f);
  data.weight.assign(20'000, 1.0f);
  double squares = 0.0;
  int clipped = 0;
  for (const float a : run_actor(HostMemory(), data).action) {
    EXPECT_LE(std::abs(a), 0.3f);
    clipped += std::abs(a) == 0.3f ? 1 : 0;
    squares += static_cast<double>(a) * a;
  }
  EXPECT_NEAR(clipped / 20'000.0, 0.1336, 0.01) << "beyond 1.5 deviations";
  EXPECT_NEAR(std::sqrt(squares / 20'000.0), 0.1757, 0.004);
  data.output.assign(20'000, 2.0f);
  for (const float a : run_actor(HostMemory(), data).action) EXPECT_LE(a, 1.0f);
}

TEST(Actor, AllRanksTogetherDrawWhatOneRankDraws) {
  Draws draws(6);
  const ActorData all = random_actor(draws, Distribution::kStateGaussian, 8, 2);
  ActorData second = all;
  second.rows = 4;
  second.draw.first_row = 4;
  second.output.erase(second.output.begin(), second.output.begin() + 16);
  second.action_grad.erase(second.action_grad.begin(), second.action_grad.begin() + 8);
  second.weight.erase(second.weight.begin(), second.weight.begin() + 4);
  const ActorResult whole = run_actor(HostMemory(), all), part = run_actor(HostMemory(), second);
  EXPECT_EQ(std::vector(whole.action.begin() + 8, whole.action.end()), part.action);
  EXPECT_EQ(std::vector(whole.grad.begin() + 16, whole.grad.end()), part.grad);
  ActorData other = all;
  other.draw.purpose = 2;
  EXPECT_NE(run_actor(HostMemory(), other).action, whole.action);
  other = all;
  other.draw.update = 8;
  EXPECT_NE(run_actor(HostMemory(), other).action, whole.action);
}

}  // namespace
}  // namespace wd
