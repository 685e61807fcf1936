// few_legal_test.cpp: soft actor-critic where few of many choices are legal: the entropy that it aims at is a
// share of what the legal ones allow.
#include <gtest/gtest.h>

#include "tests/support.h"
#include "wd/trainer.h"

namespace wd {
namespace {

double metric_of(Trainer& trainer, const std::string& wanted) {
  const MetricsRow row = trainer.take_metrics();
  for (const auto& [name, value] : row.values())
    if (name == wanted) return value;
  throw std::runtime_error("no metric " + wanted);
}

class SacOfFewLegal : public ::testing::TestWithParam<int> {};

TEST_P(SacOfFewLegal, SacKeepsItsTemperatureAndLearns) {
  const Experiment setup = make_setup(
      "few_legal",
      {concat("env.never=", GetParam()), "trainer.num_envs=8", "trainer.train_batch_size=64",
       "policy={shared: {algorithm: SAC, temperature: 0.1, temperature_lr: 0.003, lr: 0.003, critic_lr: "
       "0.003, batch_size: 32, replay_ratio: 16, tau: 0.02, learning_starts: 200, buffer_size: 20_000, "
       "model: {fc_dims: [16]}}}"});
  Trainer trainer(setup.config, *setup.environment, {});
  while (trainer.counts().env_steps < 12'000) trainer.iterate();
  const double temperature = metric_of(trainer, "shared/temperature");
  EXPECT_LT(temperature, 1.0);
  EXPECT_GT(trainer.mean_return(0), 0.9) << "the best is 0.97";
}

INSTANTIATE_TEST_SUITE_P(Of, SacOfFewLegal, ::testing::Values(0, 30));

}  // namespace
}  // namespace wd
