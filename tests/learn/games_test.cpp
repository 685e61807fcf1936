// games_test.cpp: one policy for two opponents (pennies.cu) and a Gaussian policy (aim.cu) converge to the
// known solutions.
#include <gtest/gtest.h>

#include "src/evaluation/training_evaluator.h"
#include "tests/learn/learned.h"

namespace wd {
namespace {

using testing::kPpo;
using testing::kTable;
using testing::Learned;

constexpr double kDiscount = 0.9;
const std::string kReturns = "gae_lambda: 0.8, n_step: 0, normalize_advantage: false, ";

class Games : public ::testing::TestWithParam<std::pair<const char*, std::string>> {
 protected:
  std::string settings(const std::string& more) const { return GetParam().second + kReturns + more; }
};

// In the equilibrium, each player's probabilities are proportional to exp(worth / weight), which makes the
// gradient zero.
TEST_P(Games, OnePolicyForTwoOpponentsEndsInTheirEquilibrium) {
  constexpr double kWin = 1.0, kBigWin = 3.0, kWeight = 1.0;
  double first = 0.5, second = 0.5;  // probabilities of showing 1
  const auto chance = [](double gain) { return 1.0 / (1.0 + std::exp(-gain / kWeight)); };
  for (int k = 0; k < 5000; ++k) {
    const double gain = second * (kBigWin + kWin) - (1 - second) * 2 * kWin;
    const double loss = first * (kBigWin + kWin) - (1 - first) * 2 * kWin;
    first += 0.02 * (chance(gain) - first);
    second += 0.02 * (chance(-loss) - second);
  }
  const double won = first * second * kBigWin + (1 - first) * (1 - second) * kWin -
                     (first * (1 - second) + (1 - first) * second) * kWin;
  testing::Trained trained({.env = "pennies",
                            .env_settings = "win: 1, big_win: 3, reset: random",
                            .settings = settings(kTable),
                            .gamma = kDiscount,
                            .lr = 0.03,
                            .entropy_weight = kWeight,
                            .steps = 1'024'000,
                            .batch = 1024});
  std::map<int, Learned> learned = trained.table();
  EXPECT_NEAR(learned[0].chance[1], first, 0.02);
  EXPECT_NEAR(learned[1].chance[1], second, 0.02);
  EXPECT_NEAR(learned[0].value, won / (1.0 - kDiscount), 0.1);
  EXPECT_NEAR(learned[1].value, -won / (1.0 - kDiscount), 0.1);
}

// The loss of a component is its variance, and the entropy bonus is the logarithm of the standard deviation:
// the optimum has a variance of half the weight.
TEST_P(Games, AGaussianFindsItsMeansAndDeviations) {
  constexpr double kWeight = 0.08;
  testing::Trained trained(
      {.env = "aim",
       .env_settings = "first: 0.3, second: 0.4, reset: random",
       .settings = settings("model: {fc_dims: [], activation: tanh, separate_value: false, "
                            "init_method: orthogonal, initial_log_std: -0.7}"),
       .gamma = kDiscount,
       .lr = 0.02,
       .entropy_weight = kWeight,
       .steps = 614'400,
       .batch = 2048});
  const at::Tensor weight = trained.parameter("policy_head.weight"),
                   bias = trained.parameter("policy_head.bias"), log_std = trained.parameter("log_std");
  for (int side = 0; side < 2; ++side) {
    const double x = (weight[0][side] + bias[0]).item<double>(),
                 y = (weight[1][side] + bias[1]).item<double>();
    EXPECT_NEAR(x, 0.3, 0.02);
    EXPECT_NEAR(y, side == 0 ? 0.4 : -0.4, 0.02);
  }
  for (int k = 0; k < 2; ++k) {
    EXPECT_NEAR(std::exp(2.0 * log_std[k].item<double>()) / (kWeight / 2), 1.0, 0.05);
  }
  for (const auto& [side, learned] : trained.table()) {
    EXPECT_NEAR(learned.value / (-kWeight / (1.0 - kDiscount)), 1.0, 0.02) << side;
  }
}

INSTANTIATE_TEST_SUITE_P(, Games,
                         ::testing::Values(std::pair{"A2C", std::string("algorithm: A2C, ")},
                                           std::pair{"PPO", kPpo}),
                         [](const auto& info) { return info.param.first; });

TEST(TrainingEvaluator, SaysAtOnceThatAGameHasNoScriptedPlayer) {
  const Experiment setup = make_setup("pennies", {"trainer.num_envs=2", "trainer.train_batch_size=4",
                                                  "eval.every=1000", "eval.opponent=scripted"});
  EXPECT_THROW(TrainingEvaluator(setup.config, *setup.environment, {}, {}), UsageError);
}

}  // namespace
}  // namespace wd
