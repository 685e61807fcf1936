// draws_test.cpp: two policies of one algorithm, with the same weights and the same rollout, draw different
// transitions and different actions.
#include "tests/algorithm/record.h"
#include "wd/algorithms.h"
#include "wd/model.h"

namespace wd {
namespace {

struct DrawsCase {
  const char* name;
  AlgorithmChoice algorithm;
  int n_step;  // kSteps - 1: a replica has one transition, which every batch has
  bool same;
};

class LearnersDraws : public testing::TestWithParam<DrawsCase> {};

TEST_P(LearnersDraws, DifferByPolicy) {
  const DrawsCase& c = GetParam();
  Spec spec;
  for (const char* const name : {"one", "other"})
    spec.roles.push_back({.name = name,
                          .count = kAgents,
                          .observation = {{"o", kObservation}},
                          .action = ActionSpace::box(2, -1.0f, 1.0f)});
  spec.time_limit = kTimeLimit;
  PolicySettings settings;
  settings.algorithm = c.algorithm;
  auto& own = settings.algorithm.as<ActorCriticSettings>();
  own.replay.buffer_size = kSteps * kEnvs;
  own.replay.batch_size = kEnvs;
  own.replay.replay_ratio = 1.0 / kSteps;
  own.replay.learning_starts = 0;
  own.replay.n_step = c.n_step;
  settings.model.fc_dims = {8};
  const AlgorithmTraits traits = own.traits();

  Trajectory trajectory({spec, Cast::of_roles(spec, {"one", "other"}, {0, 1}), kSteps, kEnvs});
  Draws draws(8);
  fill_trajectory(draws, trajectory, false);
  PolicyBuffers &one = trajectory.policies()[0], &other = trajectory.policies()[1];
  fill(one.action, draws.uniforms(one.action.numel(), -1.0f, 1.0f));
  other.observation.copy_(one.observation);
  other.action.copy_(one.action);
  other.reward.copy_(one.reward);
  other.active.copy_(one.active);
  other.agent_terminated.copy_(one.agent_terminated);
  std::vector<Policy> policies;
  for (int i = 0; i < 2; ++i)
    policies.emplace_back(i == 0 ? one : other, settings.model, i, kSeed, kChunkRows, Device(), kFp32,
                          traits.output, CriticShape{traits.critics});
  policies[1].parameters().copy_(policies[0].parameters());
  policies[1].critics()->parameters().copy_(policies[0].critics()->parameters());
  std::vector<Learner> learners;
  for (int i = 0; i < 2; ++i) learners.emplace_back(policies, trajectory, i, settings, kSeed);
  const TrainingClock clock({});
  const at::Tensor before = policies[0].critics()->parameters().clone();
  for (Learner& learner : learners) {
    learner.enter(0);
    learner.begin_rollout(clock);
  }
  prepare(learners);
  ASSERT_TRUE(update(learners, clock));
  const at::Tensor &first = policies[0].critics()->parameters(),
                   &second = policies[1].critics()->parameters();
  EXPECT_FALSE(first.equal(before));
  EXPECT_EQ(first.equal(second), c.same);
}

INSTANTIATE_TEST_SUITE_P(Of, LearnersDraws,
                         testing::Values(DrawsCase{"nothing", DdpgSettings(), kSteps - 1, true},
                                         DrawsCase{"transitions", DdpgSettings(), 1, false},
                                         DrawsCase{"actions", SacSettings(), kSteps - 1, false},
                                         DrawsCase{"target_noise", Td3Settings(), kSteps - 1, false}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace wd
