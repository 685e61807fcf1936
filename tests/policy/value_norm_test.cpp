// value_norm_test.cpp: values stay what they were when the units change in which a network computes them.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "tests/support.h"
#include "wd/error.h"
#include "wd/trainer.h"

namespace wd {
namespace {

// Taggers and runners act by one policy each, since their spaces may differ.
Experiment normalizing(const std::string& policy, const char* setting = "trainer.precision=fp32") {
  const std::string both = concat("{normalize_value: true, ", policy, "}");
  return make_setup("tag_continuous",
                    {"trainer.num_envs=4", "trainer.train_batch_size=20", "env.tagging_distance=0.1", setting,
                     concat("policy={tagger: ", both, ", runner: ", both, "}")});
}

at::Tensor values_of_last_row(Trainer& trainer) {
  PolicyBuffers& buffers = trainer.trajectory().policies()[0];
  trainer.policies()[0].evaluate(buffers, trainer.trajectory().steps());
  return buffers.value[trainer.trajectory().steps()].to(at::kDouble);
}

void expect_same_values(const Experiment& setup, double tolerance) {
  Trainer trainer(setup.config, *setup.environment, {});
  for (int k = 0; k < 2; ++k) trainer.iterate();
  Policy& policy = trainer.policies()[0];
  const at::Tensor before = values_of_last_row(trainer), units = policy.value_norm().clone();
  const at::Tensor weights = policy.parameters().clone();
  for (const double scale : {5.0, 0.2, 1.0})
    policy.merge_value_moments(at::tensor({50.0, 150.0 * scale, 700.0 * scale * scale}, at::kDouble));
  const double off = (values_of_last_row(trainer) - before).abs().max().item<double>();
  // Of float32 numbers in units with a mean and a deviation of about 5.
  EXPECT_LT(off, tolerance);
  EXPECT_GT((policy.value_norm() - units).abs().min().item<double>(), 0.5);
  EXPECT_GT(before.std().item<double>(), 1e-4) << "all values are equal";
  EXPECT_FALSE(at::equal(weights, policy.parameters()));
  // Moments of nothing, and of numbers that are not finite.
  const at::Tensor now = policy.value_norm().clone(), kept = policy.parameters().clone();
  policy.merge_value_moments(at::zeros({3}, at::kDouble));
  policy.merge_value_moments(at::tensor({50.0, std::nan(""), 700.0}, at::kDouble));
  EXPECT_TRUE(at::equal(now, policy.value_norm()) && at::equal(kept, policy.parameters()));
}

TEST(ValueNorm, KeepsTheValues) {
  for (const char* const policy :
       {"algorithm: A2C", "algorithm: PPO, model: {separate_value: true}",
        "algorithm: A2C, model: {fc_dims: []}",
        "algorithm: PPO, num_minibatches: 1, model: {type: gru, width: 8}",
        "algorithm: PPO, num_minibatches: 1, model: {type: gru, width: 8, separate_value: true}"}) {
    SCOPED_TRACE(policy);
    expect_same_values(normalizing(policy), 1e-5);
  }
  expect_same_values(normalizing("algorithm: A2C", "trainer.observations=table"), 1e-5);
  expect_same_values(normalizing("algorithm: A2C, model: {fc_dims: []}", "trainer.observations=table"), 1e-4);
  // The output layer's weights are rounded, in other units otherwise.
  expect_same_values(normalizing("algorithm: PPO", "trainer.precision=bf16"), 3e-3);
}

// With kept activations the update has no outputs in the new units.
TEST(ValueNorm, LearnsTheSameFromKeptActivations) {
  std::vector<at::Tensor> parameters;
  for (const char* const reuse : {"true", "false"}) {
    const Experiment setup = normalizing(concat("algorithm: A2C, reuse_activations: ", reuse));
    Trainer trainer(setup.config, *setup.environment, {});
    for (int k = 0; k < 4; ++k) trainer.iterate();
    parameters.push_back(trainer.policies()[0].parameters().clone());
  }
  EXPECT_LT((parameters[0] - parameters[1]).abs().max().item<double>(), 2e-5);
}

TEST(ValueNorm, IsPutBackWithAnIterationThatIsUndone) {
  const Experiment setup = normalizing("algorithm: PPO, normalize_reward: true");
  Trainer trainer(setup.config, *setup.environment, {});
  trainer.iterate();
  std::vector<at::Tensor> before;
  const Policy& policy = trainer.policies()[0];
  for (const NamedTensor& named : policy.saved()) before.push_back(named.tensor.clone());
  std::atomic<int> asked = 0;
  ASSERT_FALSE(trainer.iterate([&] { return ++asked > 7; })) << "5 steps, and in the update";
  for (std::size_t k = 0; k < before.size(); ++k)
    EXPECT_TRUE(at::equal(before[k], policy.saved()[k].tensor)) << policy.saved()[k].name;
}

TEST(ValueNorm, IsRefusedWhereTheOutputLayerIsNotKnown) {
  const Experiment setup = make_setup(
      "cartpole", {"trainer.num_envs=4", "trainer.train_batch_size=20", "policy={shared: {algorithm: PQN}}"});
  Trainer trainer(setup.config, *setup.environment, {});
  EXPECT_THAT([&] { trainer.policies()[0].normalize_values(); },
              testing::ThrowsMessage<UsageError>(testing::HasSubstr("computes no value")));
}

}  // namespace
}  // namespace wd
