// loss_test.cpp: losses against their definition in double, gradients against central differences.
#include "kernels/loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/loss_data.h"
#include "tests/kernels/memory.h"

namespace wd {
namespace {

constexpr LossArgs kA2c = {.fixed = {.value_coeff = 0.7f, .entropy_coeff = 0.05f}};
constexpr LossArgs kPpo = {.ppo = true, .fixed = {.clip = 0.2f, .value_coeff = 0.5f, .entropy_coeff = 0.02f}};
constexpr LossArgs kPpoValueClip = {
    .ppo = true, .fixed = {.clip = 0.2f, .value_clip = 0.5f, .value_coeff = 0.5f, .entropy_coeff = 0.02f}};
constexpr LossArgs kReinforce = {.with_value = false, .fixed = {.entropy_coeff = 0.3f}};

struct Kind {
  const char* name;
  LossArgs settings;
  std::vector<int> heads = {};
  int components = 0;
  Distribution continuous = Distribution::kGaussian;
  int latent = 0;
  bool masks = false, normalised = false;
};

class Loss : public testing::TestWithParam<Kind> {
 protected:
  LossData data() const {
    Draws draws(11);
    ActionLayout layout = categorical(GetParam().heads);
    layout.components = GetParam().components;
    layout.latent = GetParam().latent;
    if (layout.components > 0) layout.distribution = GetParam().continuous;
    LossData data = random_loss_data(draws, layout, 500, GetParam().masks);
    if (GetParam().normalised) data.norm = {0.25f, 1.0f / 1.7f};
    return data;
  }
};

// The derivative of the row's total loss with respect to `x`, in double.
template <typename F>
double difference(double& x, F total) {
  constexpr double kStep = 1e-5;
  const double at = x;
  x = at + kStep;
  const double above = total();
  x = at - kStep;
  const double below = total();
  x = at;
  return (above - below) / (2 * kStep);
}

TEST_P(Loss, GradientsAreThoseOfTheDefinition) {
  const LossArgs& settings = GetParam().settings;
  const LossData recorded = data();
  const Losses got = run_loss(HostMemory(), recorded, settings);
  const std::size_t columns = recorded.layout.columns(), components = recorded.layout.components;
  for (std::size_t row = 0; row < recorded.value.size(); ++row) {
    SCOPED_TRACE("row " + std::to_string(row));
    const bool counts = recorded.mask[row] != 0;
    const auto begin = recorded.output.begin() + static_cast<std::ptrdiff_t>(row * columns);
    std::vector<double> output(begin, begin + static_cast<std::ptrdiff_t>(columns));
    std::vector<double> log_std(recorded.log_std.begin(), recorded.log_std.end());
    double value = recorded.value[row];
    const auto total = [&] {
      const auto r = static_cast<std::int64_t>(row);
      return counts
                 ? reference_loss(recorded, settings, r, output.data(), log_std.data(), value).total(settings)
                 : 0.0;
    };
    for (std::size_t i = 0; i < columns; ++i) {
      EXPECT_NEAR(got.output_grad[row * columns + i], difference(output[i], total), 3e-5) << "output " << i;
    }
    const std::size_t size = components == 0 ? 1 : log_std.size() / components;
    for (std::size_t i = 0; i < log_std.size(); ++i) {
      const double expected = difference(log_std[i], total);
      const double factor = recorded.latent.empty()
                                ? 1.0
                                : std::pow(recorded.latent[row * size + i % size] * std::exp(log_std[i]), 2);
      EXPECT_NEAR(factor * got.log_std_grad[row * components + i / size], expected,
                  3e-5 * (1 + std::abs(expected)))
          << "log_std " << i;
    }
    EXPECT_NEAR(got.value_grad[row], difference(value, total), 3e-5);
  }
}

TEST_P(Loss, SumsAreThoseOfTheDefinition) {
  const LossArgs& settings = GetParam().settings;
  const LossData recorded = data();
  const std::vector<float> sums = run_loss(HostMemory(), recorded, settings).row_sums;
  const std::size_t rows = recorded.value.size();
  for (std::size_t row = 0; row < rows; ++row) {
    SCOPED_TRACE("row " + std::to_string(row));
    const bool counts = recorded.mask[row] != 0;
    const RowLoss now = reference_loss(recorded, settings, static_cast<std::int64_t>(row));
    const auto expect = [&](LossSum which, double expected) {
      EXPECT_NEAR(sums[which * rows + row], counts ? expected : 0.0, 1e-5 * (1 + std::abs(expected)))
          << "sum " << which;
    };
    expect(kCount, 1.0);
    expect(kPolicyLoss, now.policy);
    expect(kValueLoss, now.value);
    expect(kEntropy, now.entropy);
    expect(kApproxKl, now.ratio - 1.0 - std::log(now.ratio));
    expect(kClipped, settings.ppo && std::abs(now.ratio - 1.0) > settings.fixed.clip ? 1.0 : 0.0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, Loss,
    testing::Values(Kind{.name = "A2c", .settings = kA2c, .heads = {5}},
                    Kind{.name = "A2cSeveralHeads", .settings = kA2c, .heads = {3, 1, 6}},
                    Kind{.name = "A2cMasks", .settings = kA2c, .heads = {4, 7}, .masks = true},
                    Kind{.name = "A2cGaussian", .settings = kA2c, .components = 3},
                    Kind{.name = "A2cNormalised", .settings = kA2c, .heads = {5}, .normalised = true},
                    Kind{.name = "Reinforce", .settings = kReinforce, .heads = {2, 2}},
                    Kind{.name = "Ppo", .settings = kPpo, .heads = {3, 4}},
                    Kind{.name = "PpoNormalised", .settings = kPpo, .heads = {3, 4}, .normalised = true},
                    Kind{.name = "PpoValueClip", .settings = kPpoValueClip, .heads = {6}},
                    Kind{.name = "PpoMasks", .settings = kPpoValueClip, .heads = {4, 7}, .masks = true},
                    Kind{.name = "PpoGaussian", .settings = kPpoValueClip, .components = 2},
                    Kind{.name = "A2cSquashed",
                         .settings = kA2c,
                         .components = 3,
                         .continuous = Distribution::kSquashedGaussian},
                    Kind{.name = "A2cGsde",
                         .settings = kA2c,
                         .components = 3,
                         .continuous = Distribution::kGsde,
                         .latent = 6},
                    Kind{.name = "PpoGsde",
                         .settings = kPpoValueClip,
                         .components = 2,
                         .continuous = Distribution::kGsde,
                         .latent = 5},
                    Kind{.name = "PpoSquashed",
                         .settings = kPpoValueClip,
                         .components = 2,
                         .continuous = Distribution::kSquashedGaussian}),
    [](const auto& info) { return std::string(info.param.name); });

// One head of two choices. The first was taken with the log-probability `old_log_prob`.
Losses ppo_row_of(float old_log_prob, float advantage) {
  LossData data{.layout = categorical({2})};
  data.output = {0.0f, 0.0f};
  data.value = data.old_value = data.target = {0.0f};
  data.action = {0};
  data.advantage = {advantage};
  data.mask = {1};
  data.old_log_prob = {old_log_prob};
  return run_loss(HostMemory(), data, {.ppo = true, .fixed = {.clip = 0.2f}});
}

// The probability of the taken choice is `ratio` times the old one.
Losses ppo_row(float ratio, float advantage) {
  return ppo_row_of(std::log(0.5f) - std::log(ratio), advantage);
}

TEST(PpoClip, StopsTheGradientOnlyWhereItWouldGoOnInTheSameDirection) {
  EXPECT_EQ(ppo_row(1.3f, 1.0f).output_grad[0], 0.0f);   // already more likely, and it was good
  EXPECT_EQ(ppo_row(0.7f, -1.0f).output_grad[0], 0.0f);  // already less likely, and it was bad
  // -ratio * advantage * (1 - p), p = 1/2
  EXPECT_NEAR(ppo_row(0.7f, 1.0f).output_grad[0], -0.35f, 1e-6f);
  EXPECT_NEAR(ppo_row(1.3f, -1.0f).output_grad[0], 0.65f, 1e-6f);
  EXPECT_NEAR(ppo_row(1.1f, 1.0f).output_grad[0], -0.55f, 1e-6f);
  EXPECT_NEAR(ppo_row(0.9f, -1.0f).output_grad[0], 0.45f, 1e-6f);
  EXPECT_NEAR(ppo_row(1.0f, 1.0f).output_grad[0], -0.5f, 1e-6f);
}

// The ratio is at most e^20: if the old probability of a row was almost zero, its loss is still finite, and
// its gradient is zero.
TEST(PpoClip, TheRatioEndsAtE20) {
  const float log_half = std::log(0.5f);
  const auto row = [&](float log_ratio, float advantage) {
    return ppo_row_of(log_half - log_ratio, advantage);
  };
  const float most = std::exp(20.0f);
  EXPECT_NEAR(row(19.9f, -1.0f).output_grad[0] / most, 0.5f * std::exp(-0.1f), 1e-4f);
  EXPECT_NEAR(row(19.9f, -1.0f).row_sums[kPolicyLoss] / most, std::exp(-0.1f), 1e-4f);
  for (const float log_ratio : {20.1f, 80.0f, 1e30f}) {
    const Losses got = row(log_ratio, -3.0f);
    EXPECT_NEAR(got.row_sums[kPolicyLoss] / most, 3.0f, 1e-5f) << log_ratio;
    EXPECT_EQ(got.output_grad[0], 0.0f) << log_ratio;
    EXPECT_EQ(got.output_grad[1], 0.0f) << log_ratio;
  }
  EXPECT_EQ(row(-20.1f, 1.0f).output_grad[0], 0.0f);
  EXPECT_LT(row(-19.9f, 1.0f).output_grad[0], 0.0f);
  EXPECT_NEAR(row(-1e30f, 1.0f).row_sums[kPolicyLoss], 0.0f, 1e-8f);
  EXPECT_EQ(row(-30.0f, 1.0f).row_sums[kApproxKl], 29.0f) << "the estimate tells how far it really is";
}

TEST(PpoClip, LossIsThePessimisticOne) {
  EXPECT_NEAR(ppo_row(1.3f, 1.0f).row_sums[kPolicyLoss], -1.2f, 1e-6f);
  EXPECT_NEAR(ppo_row(0.7f, 1.0f).row_sums[kPolicyLoss], -0.7f, 1e-6f);
  EXPECT_NEAR(ppo_row(1.3f, -1.0f).row_sums[kPolicyLoss], 1.3f, 1e-6f);
  EXPECT_NEAR(ppo_row(0.7f, -1.0f).row_sums[kPolicyLoss], 0.8f, 1e-6f);
}

// The two log-probabilities must be equal to the bit, otherwise PPO's first ratio is not 1.
void expect_ratio_one(const ActionLayout& layout) {
  Draws draws(5);
  const int columns = layout.columns();
  const SampleData drawn = random_sample_data(draws, layout, 2000, 1, layout.num_heads > 0);
  const Sampled sampled = run_sample(HostMemory(), drawn);
  LossData data{.layout = layout,
                .log_std = drawn.log_std,
                .latent = drawn.latent,
                .action = sampled.action,
                .legal = drawn.legal};
  for (std::size_t row = 0; row < 2000; ++row) {
    const auto begin = drawn.output.begin() + static_cast<std::ptrdiff_t>(row * (columns + 1));
    data.output.insert(data.output.end(), begin, begin + columns);
  }
  data.value = data.old_value = data.target = sampled.value;
  data.old_log_prob = sampled.log_prob;
  data.advantage.assign(2000, -1.0f);  // makes the A2C loss equal to the log-probability
  data.mask.assign(2000, 1);
  const Losses got = run_loss(HostMemory(), data, {});
  for (std::size_t row = 0; row < 2000; ++row) {
    if (layout.distribution != Distribution::kGaussian) {
      ASSERT_EQ(got.row_sums[kPolicyLoss * 2000 + row], sampled.log_prob[row]);
      ASSERT_EQ(got.row_sums[kApproxKl * 2000 + row], 0.0f);
      // The draw z is not stored: recomputing it from mean + std z gives a different rounding.
    } else {
      ASSERT_NEAR(got.row_sums[kPolicyLoss * 2000 + row], sampled.log_prob[row], 2e-5f);
    }
  }
}

TEST(LogProb, IsTheSamplersToTheBit) { expect_ratio_one(categorical({4, 1, 7})); }
TEST(LogProb, IsTheSamplersUpToRoundingForGaussians) {
  expect_ratio_one({.distribution = Distribution::kGaussian, .components = 3});
}
TEST(LogProb, IsTheSamplersToTheBitForSquashedGaussians) {
  expect_ratio_one({.distribution = Distribution::kSquashedGaussian, .components = 3});
}

TEST(LogProb, IsTheSamplersToTheBitForNoiseOfTheState) {
  expect_ratio_one({.distribution = Distribution::kGsde, .components = 3, .latent = 5});
}

TEST(LossRows, MaskedRowsWithGarbageLeaveNoTrace) {
  Draws draws(6);
  LossData data = random_loss_data(draws, categorical({3}), 2, false);
  data.mask = {0, 1};
  const float nan = std::nanf("");
  data.output[0] = data.value[0] = data.advantage[0] = data.target[0] = data.old_log_prob[0] = nan;
  data.action[0] = -1;
  const Losses got = run_loss(HostMemory(), data, kPpoValueClip);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(got.output_grad[i], 0.0f);
  EXPECT_EQ(got.value_grad[0], 0.0f);
  for (int k = 0; k < kNumLossSums; ++k) EXPECT_EQ(got.row_sums[2 * k], 0.0f);
  EXPECT_EQ(got.row_sums[2 * kCount + 1], 1.0f);
}

// Beside the same loss without a weight: one head has one legal choice in row 0, both have in row 1.
TEST(LossRows, RowsWithoutAChoiceCountForTheValueAlone) {
  Draws draws(8);
  LossData data = random_loss_data(draws, categorical({3, 2}), 2, true);
  data.mask = {1, 1};
  data.legal = {0, 1, 0, 1, 1, /**/ 1, 0, 0, 0, 1};
  data.action = {1, 0, 0, 1};
  for (const LossArgs& settings : {kA2c, kPpo}) {
    const Losses plain = run_loss(HostMemory(), data, settings);
    LossData with = data;
    with.policy_weight = {2.0f};
    const Losses got = run_loss(HostMemory(), with, settings);
    EXPECT_EQ(got.value_grad, plain.value_grad);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(got.output_grad[i], 2.0f * plain.output_grad[i]);
    for (int i = 5; i < 10; ++i) EXPECT_EQ(got.output_grad[i], 0.0f);
    for (int k = 0; k < kNumLossSums; ++k) {
      const bool of_policy = k != kCount && k != kValueLoss;
      EXPECT_EQ(got.row_sums[2 * k], (of_policy ? 2.0f : 1.0f) * plain.row_sums[2 * k]) << "sum " << k;
      EXPECT_EQ(got.row_sums[2 * k + 1], of_policy ? 0.0f : plain.row_sums[2 * k + 1]) << "sum " << k;
    }
    EXPECT_NE(plain.row_sums[2 * kEntropy], 0.0f);
    EXPECT_NE(plain.row_sums[2 * kValueLoss + 1], 0.0f);
  }
}

TEST(LossRows, NanInTheOutputIsSeenInTheSums) {
  Draws draws(7);
  LossData data = random_loss_data(draws, categorical({3}), 3, false);
  data.mask = {1, 1, 1};
  for (int i = 0; i < 3; ++i) {
    LossData broken = data;
    broken.output[i] = std::nanf("");
    const Losses got = run_loss(HostMemory(), broken, kA2c);
    const float seen = got.row_sums[3 * kPolicyLoss] + got.row_sums[3 * kEntropy];
    EXPECT_TRUE(std::isnan(seen)) << "logit " << i;
  }
}

}  // namespace
}  // namespace wd
