// geometric_test.cpp: what is measured of values and ends of a game in which both are known.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support.h"
#include "wd/trainer.h"

namespace wd {
namespace {

// Overestimation where every state has the value `value`, in a game whose true values are `true_value()`.
constexpr double kGamma = 0.99, kEnd = 0.01;
constexpr int kReplicas = 2048, kSteps = 32;
double true_value() { return 1.0 / (1.0 - kGamma * (1.0 - kEnd)); }

double overestimation(const std::string& algorithm, double value) {
  const Experiment setup =
      make_setup("geometric", {concat("env.end=", kEnd), concat("trainer.num_envs=", kReplicas),
                               concat("trainer.train_batch_size=", kReplicas * kSteps),
                               concat("policy={shared: {algorithm: ", algorithm, ", lr: 0, gamma: ", kGamma,
                                      ", model: {fc_dims: []}}}")});
  Trainer trainer(setup.config, *setup.environment, {});
  trainer.policies()[0].parameters().fill_(0.0);
  for (const NamedTensor& named : trainer.policies()[0].named_parameters())
    if (named.name.ends_with("bias")) named.tensor.fill_(value);  // of choices alike, and of the value
  trainer.policies()[0].refresh_shadow();
  trainer.iterate();
  const MetricsRow row = trainer.take_metrics();
  for (const auto& [name, found] : row.values())
    if (name == "shared/overestimation") return found;
  return std::nan("");
}

class Overestimation : public testing::TestWithParam<const char*> {};

// Of 65,536 steps, the error has a deviation of 0.3. Counting only the 15 % whose episode ends within the
// rollout, values that are exact would be 40 too high.
TEST_P(Overestimation, OfExactValuesIsNone) {
  EXPECT_NEAR(overestimation(GetParam(), true_value()), 0.0, 1.5);
}

// What is completed with the value at the cut has its error: of an error of 10 shows the share that is known.
TEST_P(Overestimation, ShowsTheShareOfAnErrorThatTheRolloutKnows) {
  double known = 0.0;
  for (int steps = 1; steps <= kSteps; ++steps)
    known += (1.0 - std::pow(kGamma * (1.0 - kEnd), steps)) / kSteps;
  EXPECT_NEAR(overestimation(GetParam(), true_value() + 10.0), 10.0 * known, 1.5);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, Overestimation,
                         testing::Values("A2C, normalize_value: false", "PPO, normalize_value: false",
                                         "PQN"));

}  // namespace
}  // namespace wd
