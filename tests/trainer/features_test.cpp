// features_test.cpp: pairs of features in short trainings: every update that the settings announce is made,
// and minibatches take the memory that was computed for them.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "src/autoscale/memory_needed.h"
#include "src/rollout/minibatches.h"
#include "tests/support.h"
#include "wd/algorithm.h"
#include "wd/error.h"
#include "wd/trainer.h"

namespace wd {
namespace {

struct Pair {
  const char *name, *env, *policy;
  const char* setting = "trainer.precision=fp32";
};

constexpr const char *kHalf = "trainer.precision=bf16", *kAsTable = "trainer.observations=table";
constexpr const char *kMlpA2c = "algorithm: A2C", *kMlpPpo = "algorithm: PPO, num_minibatches: 5",
                     *kGruA2c = "algorithm: A2C, model: {type: gru, width: 8}",
                     *kGruPpo = "algorithm: PPO, num_minibatches: 5, model: {type: gru, width: 8}",
                     *kShortGruPpo =
                         "algorithm: PPO, num_minibatches: 12, num_epochs: 2, model: {type: gru, width: 8, "
                         "sequence_length: 5, separate_value: true}",
                     *kPpoShare = "algorithm: PPO, num_minibatches: 5, max_rows: 299",
                     *kA2cShare = "algorithm: A2C, max_rows: 100",
                     *kGruPpoShare =
                         "algorithm: PPO, num_minibatches: 4, max_rows: 330, model: {type: gru, "
                         "width: 8, sequence_length: 5}",
                     *kPqnShare = "algorithm: PQN, max_rows: 30",
                     *kReinforce = "algorithm: REINFORCE, model: {fc_dims: [8], separate_value: true}",
                     *kGruReinforce = "algorithm: REINFORCE, model: {type: gru, width: 8}";

class Features : public testing::TestWithParam<Pair> {};

double bytes_of(const Batch& batch, const PolicyLayout& layout) {
  double bytes = 0.0;
  for (const BufferField& field : buffer_fields()) {
    if (!field.in_batch(layout) || !field.in(batch).defined()) continue;
    const auto& tensor = field.in(batch);
    const auto agents = static_cast<double>(field.form(layout)->shape[0]);
    bytes += static_cast<double>(tensor.size(0)) / agents * field.bytes(layout);
  }
  return bytes;
}

TEST_P(Features, MakeTheUpdatesAndTakeTheMemoryThatWereAnnounced) {
  const Experiment setup = make_setup(
      GetParam().env, {"trainer.num_envs=6", "trainer.train_batch_size=120", "env.episode_length=10",
                       GetParam().setting, concat("policy={shared: {", GetParam().policy, "}}")});
  Trainer trainer(setup.config, *setup.environment, {});
  for (int k = 0; k < 2; ++k) trainer.iterate();
  const PolicySettings& policy = setup.config.policies[0];
  const AlgorithmTraits traits = policy.algorithm->traits();
  int checked = 0;
  const MetricsRow row = trainer.take_metrics();
  for (const auto& [name, value] : row.values()) {
    const bool counts = name == "shared/updates" || name == "shared/empty_minibatches";
    const int wanted = name == "shared/updates" ? traits.epochs * traits.minibatches : 0;
    EXPECT_TRUE(!counts || value == wanted) << name << " = " << value << ", not " << wanted;
    checked += counts ? 1 : 0;
  }
  EXPECT_EQ(checked, 2);
  const PolicyBuffers& buffers = trainer.trajectory().policies()[0];
  const TrainingShape shape = training_shape(policy, setup.environment->spec(), 6, 20);
  const std::int64_t limit = traits.row_limit;
  Minibatches minibatches(buffers, 20, 6, traits.minibatches, 0, trainer.policies()[0].sequences(20),
                          shape.share(limit));
  minibatches.shuffle(1, nullptr, 0);
  if (limit > 0) {
    std::int64_t rows = 0;
    for (int m = 0; m < minibatches.count(); ++m) rows += minibatches.gather(m).mask.size(0);
    EXPECT_LE(rows, limit);
    EXPECT_GT(rows, limit - shape.least_rows()) << "another step of every replica has room";
    EXPECT_EQ(rows % shape.least_rows(), 0);
  }
  const Batch batch = minibatches.gather(0);
  const bool copied = batch.mask.const_data_ptr() != buffers.mask.const_data_ptr();
  EXPECT_EQ(scaling::memory_needed(setup.config, *setup.environment, 1).minibatches,
            copied ? bytes_of(batch, buffers) : 0.0);
}

INSTANTIATE_TEST_SUITE_P(
    Pairs, Features,
    testing::Values(
        Pair{"mlp_a2c", "cartpole", kMlpA2c}, Pair{"mlp_a2c_bf16", "pendulum", kMlpA2c, kHalf},
        Pair{"mlp_a2c_table", "tag_continuous", kMlpA2c, kAsTable},
        Pair{"mlp_a2c_agents", "tag_gridworld", kMlpA2c}, Pair{"mlp_ppo", "pendulum", kMlpPpo},
        Pair{"mlp_ppo_bf16", "tag_gridworld", kMlpPpo, kHalf},
        Pair{"mlp_ppo_table", "tag_continuous", kMlpPpo, kAsTable}, Pair{"gru_a2c", "cartpole", kGruA2c},
        Pair{"gru_a2c_bf16", "tag_continuous", kGruA2c, kHalf},
        Pair{"gru_a2c_agents", "tag_gridworld", kGruA2c}, Pair{"gru_ppo", "pendulum", kGruPpo},
        Pair{"gru_ppo_bf16", "cartpole", kGruPpo, kHalf}, Pair{"gru_ppo_agents", "tag_gridworld", kGruPpo},
        Pair{"share_ppo", "pendulum", "algorithm: PPO, num_minibatches: 5, max_rows: 119"},
        Pair{"share_ppo_agents", "tag_gridworld", kPpoShare, kHalf},
        Pair{"share_ppo_table", "tag_continuous", kA2cShare, kAsTable},
        Pair{"share_a2c", "tag_gridworld", kA2cShare}, Pair{"share_gru_ppo", "tag_gridworld", kGruPpoShare},
        Pair{"share_pqn", "cartpole", kPqnShare}, Pair{"short_ppo", "cartpole", kShortGruPpo},
        Pair{"short_ppo_bf16", "pendulum", kShortGruPpo, kHalf},
        Pair{"short_ppo_agents", "tag_gridworld", kShortGruPpo}, Pair{"reinforce", "cartpole", kReinforce},
        Pair{"reinforce_bf16", "pendulum", kReinforce, kHalf},
        Pair{"gru_reinforce", "cartpole", kGruReinforce}),
    [](const auto& info) { return std::string(info.param.name); });

// What the configuration cannot express, a loop of one's own can: minibatches without a sequence.
TEST(FeaturesTest, ALearnerRefusesMoreMinibatchesThanSequences) {
  const Experiment setup =
      make_setup("cartpole", {"trainer.num_envs=4", "trainer.train_batch_size=32",
                              "policy={shared: {algorithm: PPO, model: {type: gru, width: 8}}}"});
  Trajectory trajectory(setup.environment->spec(), setup.config, 4, {});
  Policy policy(trajectory.policies()[0], setup.config, 0, {});
  PolicySettings settings = setup.config.policies[0];
  settings.algorithm.as<PpoSettings>().num_minibatches = 5;
  try {
    const Learner learner({&policy, 1}, trajectory, 0, settings, 1);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(
        error.what(),
        "policy 'shared': PPO: num_minibatches = 5 must be at most 4: minibatches of a network with a "
        "state consist of sequences, and 4 replicas x 8 steps are 4 sequences of 8 steps: lower it, set "
        "a shorter model.sequence_length, or raise trainer.num_envs");
  }
}

TEST(FeaturesTest, ALearnerRefusesAShareWithoutAStepOfEveryReplica) {
  const Experiment setup = make_setup("cartpole", {"trainer.num_envs=4", "trainer.train_batch_size=32"});
  Trajectory trajectory(setup.environment->spec(), setup.config, 4, {});
  Policy policy(trajectory.policies()[0], setup.config, 0, {});
  const auto refused = [&](const AlgorithmSettings& algorithm) -> std::string {
    PolicySettings settings = setup.config.policies[0];
    settings.algorithm = algorithm;
    try {
      const Learner learner({&policy, 1}, trajectory, 0, settings, 1);
    } catch (const UsageError& error) {
      return error.what();
    }
    return {};
  };
  A2cSettings a2c;
  a2c.max_rows = 3;
  EXPECT_EQ(
      refused(a2c),
      "policy 'cart': A2C: max_rows = 3 must be 0, for all rows, or at least 4: 1 step x 4 replicas x 1 "
      "agent: raise it, or lower the number of replicas");
  PpoSettings ppo;
  ppo.num_minibatches = 5;
  ppo.max_rows = 7;
  EXPECT_EQ(
      refused(ppo),
      "policy 'cart': PPO: max_rows = 7 must be 0, for all rows, or at least 8: 2 steps x 4 replicas x 1 "
      "agent, for num_minibatches = 5: raise it, or lower the number of replicas");
  ppo.max_rows = 8;
  EXPECT_EQ(refused(ppo), "");
}

// With biases of a sixth of all gates far from 0, and small weights.
TEST(FeaturesTest, GatesAreSaturatedWhereTheyAreNear0Or1) {
  for (const char* const policy :
       {"algorithm: PPO, num_minibatches: 2", "algorithm: DQN, batch_size: 12, learning_starts: 0"}) {
    const Experiment setup = make_setup(
        "cartpole",
        {"trainer.num_envs=6", "trainer.train_batch_size=120",
         concat("policy={shared: {", policy,
                ", lr: 0, model: {type: gru, width: 6, sequence_length: 2, separate_value: false}}}")});
    Trainer trainer(setup.config, *setup.environment, {});
    for (const NamedTensor& named : trainer.policies()[0].named_parameters()) {
      if (named.name == "layers.cell.bias_hh") {
        named.tensor[1] = -9.0;  // of r
        named.tensor[8] = 9.0;   // of z
      } else if (named.name.starts_with("layers.cell.")) {
        named.tensor.mul_(0.1);
      }
    }
    trainer.policies()[0].refresh_shadow();
    trainer.iterate();
    double saturated = 0.0;
    const MetricsRow row = trainer.take_metrics();
    for (const auto& [name, value] : row.values())
      if (name == "shared/saturated_share") saturated = value;
    EXPECT_DOUBLE_EQ(saturated, 2.0 / 12.0);
  }
}

// A policy that does not train measured no loss, entropy or gradient.
TEST(FeaturesTest, WhatIsNotMeasuredIsNotANumber) {
  const Experiment setup =
      make_setup("tag_gridworld", {"trainer.num_envs=6", "trainer.train_batch_size=60",
                                   "policy={tagger: {algorithm: A2C}, runner: {to_train: false}}"});
  Trainer trainer(setup.config, *setup.environment, {});
  trainer.iterate();
  int measured = 0, missing = 0;
  const MetricsRow row = trainer.take_metrics();
  for (const auto& [name, value] : row.values()) {
    for (const char* const metric :
         {"total_loss", "policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction", "grad_norm"}) {
      measured += name == concat("tagger/", metric) && std::isfinite(value) ? 1 : 0;
      missing += name == concat("runner/", metric) && std::isnan(value) ? 1 : 0;
    }
  }
  EXPECT_EQ(measured, 7);
  EXPECT_EQ(missing, 7);
}

}  // namespace
}  // namespace wd
