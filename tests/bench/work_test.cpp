// work_test.cpp: bytes and operations against numbers computed by hand.
#include "src/bench/work.h"

#include <gtest/gtest.h>

namespace wd::bench {
namespace {

// tag_continuous' shapes: 5 taggers and 100 runners that observe 729 numbers, and choose among 11
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
  return {tag_spec(), {"tagger", "runner"}, {0, 1}, steps, 3, Device{}};
}

// The same, whose rows of 7 features, 5 of them relative, and the time follow from a table.
Trajectory tag_tables(int steps) {
  Spec spec = tag_spec();
  spec.table = {.features = 7, .relative = 5, .own = 1};
  return {spec, {"tagger", "runner"}, {0, 1}, steps, 3, Device{}, {ObservationType::kFloat32, true}};
}

Config a2c(std::vector<int> hidden = {256, 256}) {
  PolicySettings policy;
  policy.model.fc_dims = std::move(hidden);
  policy.model.separate_value = false;
  Config config;
  config.policies = {policy, policy};
  return config;
}

TEST(WorkTest, OperationsOfOneStepOfTagContinuous) {
  const Trajectory trajectory = tag_trajectory(20);
  // 105 agents: 54.19 MFLOP forward, and a twentieth of it for the value of the last observation.
  EXPECT_DOUBLE_EQ(inference_work(trajectory, a2c()).flop, 105 * 516'096 * 1.05);
  // 105 (516,096 + 658,944) = 123,379,200: the 124 MFLOP of an environment step's update
  EXPECT_DOUBLE_EQ(update_work(trajectory, a2c()).flop, 123'379'200);
  EXPECT_EQ(environment_work(trajectory).flop, 0.0);
}

TEST(WorkTest, OperationsOfTables) {
  const Trajectory tables = tag_tables(1);
  // First layer, forward: taggers 7 (104 + 4) + 5, runners 7 (104 + 99) + 100 products an output; then 256 x
  // 256 + 256 x 23 a row.
  const double forward = 2.0 * 256 * (761 + 1521) + 105 * 142'848.0;
  EXPECT_DOUBLE_EQ(inference_work(tables, a2c()).flop, 2 * forward);  // and the value of the last observation
  // Gradient, places 0 .. 103 among the others: taggers have a row before and one behind each of 0 .. 3, then
  // rows before it alone; runners rows behind 0 .. 4 alone, and both from 5 on. Seven products a row for what
  // all share.
  const double backward =
      2.0 * 256 * (7 * (104 + 4) + 7 * 5 + 7 * (104 + 99) + 7 * 100) + 2 * 105 * 142'848.0;
  EXPECT_DOUBLE_EQ(update_work(tables, a2c()).flop, forward + backward);
  // 8 numbers an agent, once for both policies.
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
  // Per agent: actor 2 (729 x 8 + 8 x 22) = 12,016, critic 2 (729 x 8 + 8) = 11,680; the last row needs the
  // critic alone.
  EXPECT_DOUBLE_EQ(inference_work(trajectory, config).flop, 105 * (12'016 + 1.1 * 11'680));
}

// Per agent and step: 732 floats of a row (729 padded), 2 actions of 4 bytes, 1 byte active, 4 reward, 1 left
// the game; per replica 3 flags.
TEST(WorkTest, BytesOfTheEnvironment) {
  EXPECT_DOUBLE_EQ(environment_work(tag_trajectory(20)).bytes, 105 * (732 * 4 + 8 + 1 + 4 + 1) + 3);
  EXPECT_DOUBLE_EQ(random_play_work(tag_trajectory(20)).bytes, 105 * 8);
}

TEST(WorkTest, BytesOfInferenceAndUpdate) {
  const Trajectory trajectory = tag_trajectory(20);
  const double row = 732 * 4;
  // reads the row, writes 2 actions, log-probability, value; reads the last row and writes its value once in
  // 20 steps
  EXPECT_DOUBLE_EQ(inference_work(trajectory, a2c()).bytes, 105 * (row + 8 + 4 + 4 + (row + 4) / 20));
  // returns: reward, value, active, left, advantage, target, mask, and 3 flags for each of two policies;
  // then row, actions, log-probability, value, advantage, target, mask
  const double returns = 105 * (4 + 4 + 1 + 1 + 4 + 4 + 1) + 2 * 3,
               epoch = 105 * (row + 8 + 4 + 4 + 4 + 4 + 1);
  EXPECT_DOUBLE_EQ(update_work(trajectory, a2c()).bytes, returns + epoch);
  Config kept = a2c();
  for (PolicySettings& policy : kept.policies) policy.algorithm.as<A2cSettings>().reuse_activations = true;
  const double activations = 105 * (256 + 256 + 23) * 4;
  EXPECT_DOUBLE_EQ(inference_work(trajectory, kept).bytes - inference_work(trajectory, a2c()).bytes,
                   activations);
  EXPECT_DOUBLE_EQ(update_work(trajectory, kept).bytes, returns + epoch + activations);
  EXPECT_DOUBLE_EQ(update_work(trajectory, a2c()).flop - update_work(trajectory, kept).flop, 105 * 516'096.0);
  Config ppo = a2c();
  for (PolicySettings& policy : ppo.policies) {
    policy.algorithm = PpoSettings();
    policy.algorithm.as<PpoSettings>().num_epochs = 2;  // 4 minibatches: gathered: read, written, read again
  }
  EXPECT_DOUBLE_EQ(update_work(trajectory, ppo).bytes, returns + 2 * 3 * epoch);
}

}  // namespace
}  // namespace wd::bench
