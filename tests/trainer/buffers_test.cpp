// buffers_test.cpp: trajectory buffers are allocated once and stay where they are, and learning reads them in place.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "src/algorithm/minibatches.h"
#include "tests/support.h"
#include "wd/trainer.h"

namespace wd {
namespace {

std::vector<const void*> addresses(const Trajectory& trajectory) {
  std::vector<const void*> all;
  for (const at::Tensor& tensor : trajectory.buffers()) all.push_back(tensor.data_ptr());
  return all;
}

TEST(Buffers, AddressesStayOverIterations) {
  for (const std::string algorithm : {"A2C", "PPO", "REINFORCE"}) {
    const cli::Setup setup = make_setup(
        "tag_gridworld", {"trainer.num_envs=6", "trainer.train_batch_size=60", "env.episode_length=5",
                          "policy={shared: {algorithm: " + algorithm + "}}"});
    Trainer trainer(setup.config, *setup.row, *setup.environment, {});
    trainer.iterate();
    const auto before = addresses(trainer.trajectory());
    const void* const state = trainer.replicas().blocks().data_ptr();
    const void* const parameters = trainer.policies()[0].parameters().data_ptr();
    for (int i = 0; i < 3; ++i) trainer.iterate();
    EXPECT_EQ(before, addresses(trainer.trajectory())) << algorithm;
    EXPECT_EQ(state, trainer.replicas().blocks().data_ptr()) << algorithm;
    EXPECT_EQ(parameters, trainer.policies()[0].parameters().data_ptr()) << algorithm;
  }
}

TEST(Buffers, TheLearnerReadsTheRolloutItself) {
  const cli::Setup setup = make_setup("tag_gridworld", {"trainer.num_envs=6", "trainer.train_batch_size=60"});
  Trainer trainer(setup.config, *setup.row, *setup.environment, {});
  trainer.rollout();
  for (const PolicyBuffers& buffers : trainer.trajectory().policies()) {
    const Batch batch = whole_batch(buffers, trainer.trajectory().steps());
    EXPECT_EQ(batch.observation.data_ptr(), buffers.observation.data_ptr());
    EXPECT_EQ(batch.action.data_ptr(), buffers.action.data_ptr());
    EXPECT_EQ(batch.advantage.data_ptr(), buffers.advantage.data_ptr());
  }
}

TEST(Buffers, RowTBecomesRowZeroOfTheNextRollout) {
  const cli::Setup setup =
      make_setup("tag_continuous", {"trainer.num_envs=4", "trainer.train_batch_size=40"});
  Trainer trainer(setup.config, *setup.row, *setup.environment, {});
  trainer.rollout();
  const PolicyBuffers& buffers = trainer.trajectory().policies()[0];
  const at::Tensor last = buffers.observation[10].clone(), active = buffers.active[10].clone();
  trainer.rollout();
  EXPECT_TRUE(at::equal(buffers.observation[0], last));
  EXPECT_TRUE(at::equal(buffers.active[0], active));
  EXPECT_FALSE(at::equal(buffers.observation[10], last));
}

}  // namespace
}  // namespace wd
