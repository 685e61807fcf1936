// work_test.cpp: bytes and operations against numbers computed by hand.
#include "src/bench/work.h"

#include <gtest/gtest.h>

#include "wd/algorithms.h"

namespace wd::bench {
namespace {

// The shapes of tag_continuous: 5 taggers and 100 runners that observe 729 numbers and choose among 11
// accelerations and 11 turns.
Spec tag_spec() {
  Role tagger{
      .name = "tagger", .count = 5, .observation = {{"all", 729}}, .action = ActionSpace::discrete({11, 11})};
  Role runner = tagger;
  runner.name = "runner";
  runner.count = 100;
  return {.roles = {tagger, runner}, .time_limit = 100};
}

Trajectory tag_trajectory(int steps) {
  return Trajectory({tag_spec(), Cast::of_roles(tag_spec(), {"tagger", "runner"}, {0, 1}), steps, 3});
}

// The same with rows derived from a table: 7 features, 5 of them relative, and the time.
Trajectory tag_tables(int steps) {
  Spec spec = tag_spec();
  spec.table = {.features = 7, .relative = 5, .own = 1};
  return Trajectory({spec,
                     Cast::of_roles(spec, {"tagger", "runner"}, {0, 1}),
                     steps,
                     3,
                     {},
                     {ObservationType::kFloat32, true}});
}

Config a2c(std::vector<int> hidden = {256, 256}) {
  PolicySettings policy;
  policy.algorithm = A2cSettings();
  policy.model.fc_dims = std::move(hidden);
  policy.model.separate_value = false;
  Config config;
  config.policies = {policy, policy};
  return config;
}

TEST(WorkTest, OperationsOfOneStepOfTagContinuous) {
  const Trajectory trajectory = tag_trajectory(20);
  // 105 agents: 54.19 MFLOP forward, plus a twentieth of it for the value of the last observation.
  EXPECT_DOUBLE_EQ(inference_work(trajectory, a2c()).flop, 105 * 516'096 * 1.05);
  // 105 (516,096 + 658,944) = 123,379,200: the update takes 124 MFLOP per environment step.
  EXPECT_DOUBLE_EQ(update_work(trajectory, a2c()).flop, 123'379'200);
  EXPECT_EQ(environment_work(trajectory).flop, 0.0);
}

TEST(WorkTest, OperationsOfTables) {
  const Trajectory tables = tag_tables(1);
  // First layer, forward: per output, 7 (104 + 4) + 5 products for taggers and 7 (104 + 99) + 100 for
  // runners; then 256 x 256 + 256 x 23 per row.
  const double forward = 2.0 * 256 * (761 + 1521) + 105 * 142'848.0;
  // Plus the value of the last observation.
  EXPECT_DOUBLE_EQ(inference_work(tables, a2c()).flop, 2 * forward);
  // Gradient of places 0 .. 103 among the others. Taggers: places 0 .. 3 are used by rows of agents both
  // before and after, later places only by rows before. Runners: places 0 .. 4 are used only by rows after,
  // later places by both. Plus seven products per row for the shared part.
  const double backward =
      2.0 * 256 * (7 * (104 + 4) + 7 * 5 + 7 * (104 + 99) + 7 * 100) + 2 * 105 * 142'848.0;
  EXPECT_DOUBLE_EQ(update_work(tables, a2c()).flop, forward + backward);
  // 8 numbers per agent, once for both policies.
  EXPECT_DOUBLE_EQ(environment_work(tables).bytes, 105 * (8 * 4 + 8 + 1 + 4 + 1) + 3);
}

TEST(WorkTest, PpoLearnsInEpochs) {
  const Trajectory trajectory = tag_trajectory(20);
  Config config = a2c();
  for (PolicySettings& policy : config.policies) policy.algorithm = PpoSettings();
  EXPECT_DOUBLE_EQ(update_work(trajectory, config).flop, 4 * 123'379'200.0);
  config.policies[1].to_train = false;
  EXPECT_DOUBLE_EQ(update_work(trajectory, config).flop, 4 * 5 * 1'175'040.0);
}

TEST(WorkTest, ASeparateValueHasItsOwnNetwork) {
  const Trajectory trajectory = tag_trajectory(10);
  Config config = a2c({8});
  for (PolicySettings& policy : config.policies) policy.model.separate_value = true;
  // Per agent: actor 2 (729 x 8 + 8 x 22) = 12,016, critic 2 (729 x 8 + 8) = 11,680; the last row needs only
  // the critic.
  EXPECT_DOUBLE_EQ(inference_work(trajectory, config).flop, 105 * (12'016 + 1.1 * 11'680));
}

// Per agent and step: 732 floats of a row (729 padded), 2 actions of 4 bytes, 1 byte for active, 4 for the
// reward, 1 for having left the game. Per replica: 3 flags.
TEST(WorkTest, BytesOfTheEnvironment) {
  EXPECT_DOUBLE_EQ(environment_work(tag_trajectory(20)).bytes, 105 * (732 * 4 + 8 + 1 + 4 + 1) + 3);
  EXPECT_DOUBLE_EQ(random_play_work(tag_trajectory(20)).bytes, 105 * 8);
}

TEST(WorkTest, BytesOfInferenceAndUpdate) {
  const Trajectory trajectory = tag_trajectory(20);
  const double row = 732 * 4;
  // Reads the row; writes 2 actions, log-probability and value. Once in 20 steps, reads the last row and
  // writes its value.
  EXPECT_DOUBLE_EQ(inference_work(trajectory, a2c()).bytes, 105 * (row + 8 + 4 + 4 + (row + 4) / 20));
  // Returns: reward, value, active, left, advantage, target, mask, plus 3 flags for each of two policies.
  // Then: row, actions, log-probability, value, advantage, target, mask.
  const double returns = 105 * (4 + 4 + 1 + 1 + 4 + 4 + 1) + 2 * 3,
               epoch = 105 * (row + 8 + 4 + 4 + 4 + 4 + 1);
  EXPECT_DOUBLE_EQ(update_work(trajectory, a2c()).bytes, returns + epoch);
  Config kept = a2c();
  for (PolicySettings& policy : kept.policies)
    policy.algorithm.as<A2cSettings>().reuse_activations = kReuseYes;
  const double activations = 105 * (256 + 256 + 23) * 4;
  EXPECT_DOUBLE_EQ(inference_work(trajectory, kept).bytes - inference_work(trajectory, a2c()).bytes,
                   activations);
  EXPECT_DOUBLE_EQ(update_work(trajectory, kept).bytes, returns + epoch + activations);
  EXPECT_DOUBLE_EQ(update_work(trajectory, a2c()).flop - update_work(trajectory, kept).flop, 105 * 516'096.0);
  Config ppo = a2c();
  for (PolicySettings& policy : ppo.policies) {
    policy.algorithm = PpoSettings();
    // With 4 minibatches, rows are gathered: read, written and read again.
    policy.algorithm.as<PpoSettings>().num_epochs = 2;
  }
  EXPECT_DOUBLE_EQ(update_work(trajectory, ppo).bytes, returns + 2 * 3 * epoch);
}

}  // namespace
}  // namespace wd::bench
