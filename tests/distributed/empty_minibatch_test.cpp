// empty_minibatch_test.cpp: a minibatch in which no rank has a row that counts makes no step on any rank.
#include <ATen/ATen.h>

#include "tests/distributed/ranks.h"
#include "wd/algorithm.h"
#include "wd/error.h"

namespace wd {
namespace {

constexpr int kSteps = 4, kEnvs = 2;

Spec small_spec() {
  Spec spec;
  spec.roles = {
      {.name = "agent", .count = 1, .observation = {{"o", 3}}, .action = ActionSpace::discrete({2})}};
  spec.time_limit = 100;
  return spec;
}

double metric(const Learner& learner, const std::string& wanted) {
  for (const auto& [name, value] : learner.algorithm().metrics())
    if (name == wanted) return value;
  return -1.0;
}

// Each minibatch has one row, and only one row of one rank counts.
TEST(EmptyMinibatch, MakesNoStepOnAnyRank) {
  on_ranks(2, [](const ProcessGroup& group) {
    Trajectory trajectory({small_spec(), Cast::of_roles(small_spec(), {"agent"}, {0}), kSteps, kEnvs});
    PolicyBuffers& buffers = trajectory.policies()[0];
    PolicySettings settings;
    PpoSettings ppo;
    ppo.lr = 1e-3;
    ppo.gae_lambda = 1.0;
    ppo.normalize_advantage = false;
    ppo.adam_epsilon = 1e-8;
    ppo.num_epochs = 3;
    ppo.num_minibatches = kSteps;
    settings.algorithm = ppo;
    Policy policy(buffers, settings.model, 0, 7, 64, {});
    Learner learner({&policy, 1}, trajectory, 0, settings, 7, group);
    const at::Tensor before = policy.parameters().clone();
    const auto learn = [&] {
      prepare({&learner, 1});
      ASSERT_TRUE(update({&learner, 1}, TrainingClock(Device{})));
    };
    learn();
    EXPECT_TRUE(at::equal(policy.parameters(), before));
    EXPECT_EQ(learner.algorithm().state()[2].tensor.item<float>(), 0.0f);
    EXPECT_EQ(metric(learner, "updates"), 0.0);
    EXPECT_EQ(metric(learner, "empty_minibatches"), 12.0);

    buffers.reward.fill_(1.0f);
    if (group.rank() == 1) buffers.active[2][1][0] = 1;
    learn();
    EXPECT_FALSE(at::equal(policy.parameters(), before));
    EXPECT_EQ(learner.algorithm().state()[2].tensor.item<float>(), 3.0f) << "one step an epoch";
    EXPECT_EQ(metric(learner, "updates"), 3.0);
    EXPECT_EQ(metric(learner, "empty_minibatches"), 9.0);
    const at::Tensor both = group.all_gather_rows(policy.parameters().view({1, -1}));
    EXPECT_TRUE(at::equal(both[0], both[1]));
  });
}

}  // namespace
}  // namespace wd
