// episodes_test.cpp: returns and lengths of finished episodes, within a rollout and across rollouts.
#include "kernels/episodes.h"

#include <gtest/gtest.h>

#include "tests/kernels/episodes_data.h"
#include "tests/kernels/memory.h"
#include "wd/detail/parallel.h"

namespace wd {
namespace {

// T = 5 steps, E = 2 replicas, A = 2 agents. Mean rewards of replica 0: 1, 2, 3, 4, 5; those of replica 1 are
// ten times as large.
RolloutArrays five_steps() {
  RolloutArrays r{.steps = 5, .num_envs = 2, .num_agents = 2};
  for (float t = 1; t <= 5; ++t) r.reward.insert(r.reward.end(), {t - 0.5f, t + 0.5f, 15.0f * t, 5.0f * t});
  r.terminated = r.truncated = r.reset_step = std::vector<std::uint8_t>(10);
  return r;
}

TEST(Episodes, EndWithinARollout) {
  RolloutArrays r = five_steps();
  r.terminated[2 * 1] = 1;     // replica 0 ends at t = 1
  r.reset_step[2 * 2] = 1;     // and resets at t = 2, whose reward does not count
  r.truncated[2 * 4 + 1] = 1;  // replica 1 ends at the last step of the rollout
  const Episodes got = run_episodes(HostMemory(), r, fresh(2));
  EXPECT_EQ(got.finished_return, (std::vector<float>{0, 0, 3, 0, 0, 0, 0, 0, 0, 150}));
  EXPECT_EQ(got.finished_length, (std::vector<std::int32_t>{0, 0, 2, 0, 0, 0, 0, 0, 0, 5}));
  EXPECT_EQ(got.running_return[0], 9.0f);  // 4 + 5
  EXPECT_EQ(got.running_length[0], 2);
}

TEST(Episodes, GoOnAcrossRollouts) {
  RolloutArrays r = five_steps();
  Episodes got = run_episodes(HostMemory(), r, fresh(2));
  EXPECT_EQ(got.finished_length, std::vector<std::int32_t>(10));
  EXPECT_EQ(got.running_return, (std::vector<float>{15, 150}));
  EXPECT_EQ(got.running_length, (std::vector<std::int32_t>{5, 5}));
  r.terminated[0] = 1;  // replica 0 ends at t = 0
  r.reset_step[2] = 1;
  r.terminated[2 * 4] = 1;  // and again at t = 4
  got = run_episodes(HostMemory(), r, got);
  EXPECT_EQ(got.finished_return, (std::vector<float>{16, 0, 0, 0, 0, 0, 0, 0, 12, 0}));  // 15 + 1; 3 + 4 + 5
  EXPECT_EQ(got.finished_length, (std::vector<std::int32_t>{6, 0, 0, 0, 0, 0, 0, 0, 3, 0}));
  r = five_steps();
  // An episode that ended at the end of the last rollout resets in the first row of this one.
  r.reset_step[0] = 1;
  got = run_episodes(HostMemory(), r, got);
  EXPECT_EQ(got.running_return, (std::vector<float>{14, 450}));
  EXPECT_EQ(got.running_length, (std::vector<std::int32_t>{4, 15}));
}

TEST(Episodes, OneThatDoesNotCountIsFollowedAndLeftOut) {
  RolloutArrays r = five_steps();
  Episodes before = fresh(2);
  before.running_length = {kUncounted, kUncounted};
  Episodes got = run_episodes(HostMemory(), r, before);
  // Replica 0's first episode ends in the second rollout; the next episode counts.
  r.terminated[0] = 1;
  r.reset_step[2] = 1;
  r.truncated[2 * 4] = 1;
  r.truncated[2 * 4 + 1] = 1;  // replica 1's first episode
  got = run_episodes(HostMemory(), r, got);
  EXPECT_EQ(got.finished_length, (std::vector<std::int32_t>{0, 0, 0, 0, 0, 0, 0, 0, 3, 0}));
  EXPECT_EQ(got.finished_return, (std::vector<float>{0, 0, 0, 0, 0, 0, 0, 0, 12, 0}));  // 3 + 4 + 5
}

TEST(Episodes, SameForAnyNumberOfThreads) {
  Draws draws(1);
  const RolloutArrays rollout = random_rollout(draws, 60, 700, 5);
  set_num_threads(1);
  const Episodes expected = run_episodes(HostMemory(), rollout, fresh(700));
  for (const int threads : {2, 4}) {
    set_num_threads(threads);
    const Episodes got = run_episodes(HostMemory(), rollout, fresh(700));
    EXPECT_EQ(got.finished_return, expected.finished_return);
    EXPECT_EQ(got.finished_length, expected.finished_length);
    EXPECT_EQ(got.running_return, expected.running_return);
  }
}

TEST(Episodes, AreRecordedInTheOrderOfStepAndReplica) {
  Draws draws(2);
  constexpr int kSteps = 37, kEnvs = 50;  // several chunks
  const RolloutArrays rollout = random_rollout(draws, kSteps, kEnvs, 2);
  const Episodes first = run_episodes(HostMemory(), rollout, fresh(kEnvs));
  Episodes second = first;
  for (float& value : second.finished_return) value = 2.0f * value + 1.0f;
  std::vector<double> expected;
  for (const int iteration : {3, 4}) {
    for (int i = 0; i < kSteps * kEnvs; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (first.finished_length[at] == 0) continue;
      const int step = iteration * kSteps + i / kEnvs;
      expected.insert(expected.end(),
                      {step * 2.0 * kEnvs + kEnvs + i % kEnvs, 1.0 * first.finished_length[at],
                       first.finished_return[at], second.finished_return[at]});
    }
  }
  ASSERT_GT(expected.size(), 4u * 100);
  const auto capacity = static_cast<std::int64_t>(expected.size() / 4);
  const auto once = run_append(HostMemory(), {first, second}, kEnvs, {}, capacity, 3);
  EXPECT_EQ(run_append(HostMemory(), {first, second}, kEnvs, once, capacity, 4), expected);
  // Rows beyond the capacity are dropped, and nothing is written past the end.
  expected.resize(expected.size() - 4);
  EXPECT_EQ(run_append(HostMemory(), {first, second}, kEnvs, once, capacity - 1, 4), expected);
}

}  // namespace
}  // namespace wd
