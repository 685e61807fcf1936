// turns_test.cpp: what algorithms learn in a zero-sum game with turns, from a policy that plays both sides.
#include "tests/algorithm/record.h"

namespace wd {
namespace {

constexpr int kWait = 2;

Spec spec_of_two(ZeroSumTurns turns) {
  Spec spec = spec_of(ActionSpace::discrete({4}), true);
  spec.roles[0].name = "first";
  spec.roles[0].count = 1;
  spec.roles.push_back(spec.roles[0]);
  spec.roles[1].name = "second";
  spec.time_limit = kSteps;
  spec.zero_sum_turns = turns;
  return spec;
}

// The value targets [T, E, 2] and the mask of one rollout with turns, or of each agent's own returns.
std::pair<at::Tensor, at::Tensor> targets(const char* algorithm, ZeroSumTurns turns) {
  const Spec spec = spec_of_two(turns);
  Trajectory trajectory({spec, Cast::of_roles(spec, {"agent"}, {0, 0}), kSteps, kEnvs});
  PolicyBuffers& buffers = trajectory.policies()[0];
  Draws draws(8);
  const RolloutArrays rollout = random_turns(draws, kSteps, kEnvs, kSteps);
  const at::Tensor seen = buffers.observation.narrow(3, 0, kObservation);
  seen.copy_(at::tensor(draws.uniforms(seen.numel(), -2.0f, 2.0f)).view(seen.sizes()));
  fill(buffers.reward, rollout.reward);
  fill(buffers.active, rollout.active);
  fill(buffers.action_mask, rollout.legal);
  fill(trajectory.terminated(), rollout.terminated);
  fill(trajectory.truncated(), rollout.truncated);
  fill(trajectory.reset_step(), rollout.reset_step);
  EXPECT_EQ(rollout.wait, kWait);
  PolicySettings settings;
  settings.name = "agent";
  settings.algorithm = AlgorithmChoice::named(algorithm);
  const bool values = settings.algorithm.is<PqnSettings>();
  Policy policy(buffers, settings.model, 0, kSeed, kChunkRows, {}, kFp32,
                values ? PolicyOutput::kValues : PolicyOutput::kDistribution);
  Learner learner({&policy, 1}, trajectory, 0, settings, kSeed);
  learner.begin_rollout(clock_then());
  for (int t = 0; t < kSteps; ++t)
    policy.act(buffers, t,
               {.seed = kSeed, .step = static_cast<std::uint64_t>(t), .exploration = learner.exploration()});
  policy.evaluate(buffers, kSteps);
  prepare({&learner, 1});
  return {buffers.target.clone(), buffers.mask.clone()};
}

TEST(Turns, TheTargetOfWhoWaitsIsMinusThatOfWhoMoves) {
  for (const char* const algorithm : {"PPO", "A2C", "PQN"}) {
    const auto [target, mask] = targets(algorithm, {.wait = kWait});
    const at::Tensor both = mask.select(2, 0).logical_and(mask.select(2, 1));
    EXPECT_GT(both.sum().item<int>(), 20);
    const at::Tensor first = target.select(2, 0).masked_select(both),
                     second = target.select(2, 1).masked_select(both);
    EXPECT_TRUE(at::equal(first, -second)) << algorithm;
    const auto [own, same] = targets(algorithm, {});
    EXPECT_TRUE(at::equal(mask, same));
    EXPECT_FALSE(at::allclose(own.select(2, 0).masked_select(both), -own.select(2, 1).masked_select(both)));
    EXPECT_FALSE(at::allclose(own, target)) << algorithm;
  }
}

// Half of the rows of such a game wait, and their targets are those of the others with another sign.
TEST(Turns, MinibatchesHoldOneRowOfEachStep) {
  const Spec spec = spec_of_two({.wait = kWait});
  Trajectory trajectory({spec, Cast::of_roles(spec, {"agent"}, {0, 0}), kSteps, kEnvs});
  PolicyBuffers& buffers = trajectory.policies()[0];
  Draws draws(9);
  const RolloutArrays rollout = random_turns(draws, kSteps, kEnvs, kSteps);
  fill(buffers.action_mask, rollout.legal);
  buffers.mask.fill_(1);
  buffers.mask.select(2, 0).slice(0, 0, kSteps / 2).zero_();  // somebody else plays first in these
  buffers.target.copy_(at::arange(buffers.target.numel()).view(buffers.target.sizes()));
  const at::Tensor waits = buffers.action_mask.narrow(0, 0, kSteps).select(3, kWait).ne(0),
                   learns = buffers.mask.ne(0);
  const at::Tensor moves = waits.logical_not().logical_and(learns);
  const at::Tensor alone = moves.any(2, true).logical_not().logical_and(learns);
  const at::Tensor wanted = buffers.target.masked_select(moves.logical_or(alone));
  ASSERT_EQ(wanted.numel(), kSteps * kEnvs);

  const AlgorithmTraits ppo = AlgorithmChoice::named("PPO")->traits();
  const int wait = Minibatches::wait_of(spec, buffers, ppo);
  EXPECT_EQ(wait, kWait);
  Minibatches minibatches(buffers, kSteps, kEnvs, 3, 0, {}, 0, wait);
  minibatches.shuffle(kSeed, nullptr, 0);
  std::vector<at::Tensor> seen;
  for (int m = 0; m < 3; ++m) {
    const Batch batch = minibatches.gather(m);
    EXPECT_EQ(batch.observation.size(0), batch.mask.size(0));
    EXPECT_EQ(batch.action_mask.size(0), batch.mask.size(0));
    EXPECT_TRUE(batch.mask.ne(0).all().item<bool>());
    seen.push_back(batch.target.clone());
  }
  EXPECT_TRUE(at::equal(std::get<0>(at::cat(seen).sort()), wanted));

  EXPECT_EQ(Minibatches::wait_of(spec, buffers, AlgorithmChoice::named("PQN-VDN")->traits()), -1);
  EXPECT_EQ(Minibatches::wait_of(spec_of_two({}), buffers, ppo), -1);
}

}  // namespace
}  // namespace wd
