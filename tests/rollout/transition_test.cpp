// transition_test.cpp: what the rows of a rollout mean when episodes end, on environments whose ends are known.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/support.h"
#include "wd/trainer.h"

namespace wd {
namespace {

int flag(const at::Tensor& flags, int t, int e) { return flags[t][e].item<int>(); }

// Pendulum with episodes of 5 steps: truncated at steps 4, 10, ... and reset at 5, 11, ... of every replica.
TEST(Transition, TruncationShowsTheTrueLastObservationThenResets) {
  const cli::Setup setup =
      make_setup("pendulum", {"env.episode_length=5", "trainer.num_envs=3", "trainer.train_batch_size=42"});
  Trainer trainer(setup.config, *setup.row, *setup.environment, {});
  trainer.rollout();
  const Trajectory& trajectory = trainer.trajectory();
  const PolicyBuffers& buffers = trajectory.policies()[0];
  for (int t = 0; t < 14; ++t) {
    for (int e = 0; e < 3; ++e) {
      EXPECT_EQ(flag(trajectory.truncated(), t, e), t % 6 == 4) << t;
      EXPECT_EQ(flag(trajectory.reset_step(), t, e), t % 6 == 5) << t;
      EXPECT_EQ(flag(trajectory.terminated(), t, e), 0) << t;
      EXPECT_EQ(buffers.reward[t][e][0].item<float>() == 0.0f, t % 6 == 5)
          << "only the reset step pays nothing, t = " << t;
    }
  }
  // Row 5 follows row 4 by the dynamics (theta_dot changes by at most (15 sin + 3 u) dt = 1.05), row 6 is a new start.
  const auto speed = [&](int t, int e) { return buffers.observation[t][e][0][2].item<float>(); };
  for (int e = 0; e < 3; ++e) {
    EXPECT_LE(std::abs(speed(5, e) - speed(4, e)), 1.06f);
    EXPECT_LE(std::abs(speed(6, e)), 1.0f) << "starts have |theta_dot| <= 1";
    EXPECT_FALSE(at::equal(buffers.observation[6][e], buffers.observation[5][e]));
  }
}

// A runner on top of a tagger is tagged in the first step; the other one, out of reach, plays on.
TEST(Transition, AnAgentThatLeavesKeepsItsLastRewardAndIsInactiveAfterwards) {
  const cli::Setup setup =
      make_setup("tag_continuous",
                 {"env.num_taggers=1", "env.num_runners=2", "env.max_speed=0.001",
                  "env.tagging_distance=0.02", "env.tag_reward_for_tagger=1", "env.tag_penalty_for_runner=-1",
                  "env.reset=fixed", "trainer.num_envs=1", "trainer.train_batch_size=4",
                  "policy={tagger: {algorithm: A2C}, runner: {algorithm: A2C}}"});
  Trainer trainer(setup.config, *setup.row, *setup.environment, {});
  const Trajectory& trajectory = trainer.trajectory();
  trainer.replicas().step(trajectory.first_rows());
  trainer.replicas().write(0, R"({"x": [5, 5, 1], "y": [5, 5.1, 1]})");
  for (int t = 0; t < 4; ++t) trainer.replicas().step(trajectory.rows(t));
  const PolicyBuffers& taggers = trajectory.policies()[0];
  const PolicyBuffers& runners = trajectory.policies()[1];
  EXPECT_EQ(flag(runners.agent_terminated.select(1, 0), 0, 0), 1);
  EXPECT_EQ(flag(runners.agent_terminated.select(1, 0), 0, 1), 0);
  EXPECT_FLOAT_EQ(runners.reward[0][0][0].item<float>(), -1.0f);
  EXPECT_FLOAT_EQ(taggers.reward[0][0][0].item<float>(), 1.0f);
  EXPECT_EQ(flag(runners.active.select(1, 0), 0, 0), 1);
  for (int t = 1; t <= 4; ++t) {
    EXPECT_EQ(flag(runners.active.select(1, 0), t, 0), 0) << t;
    EXPECT_EQ(flag(runners.active.select(1, 0), t, 1), 1) << t;
    if (t == 4) break;
    EXPECT_EQ(flag(runners.agent_terminated.select(1, 0), t, 0), 0) << "it leaves once, t = " << t;
    EXPECT_EQ(runners.reward[t][0][0].item<float>(), 0.0f) << t;
  }
  EXPECT_EQ(trajectory.terminated().sum().item<int>(), 0);
}

// Of every episode that ends: the tags of the replica, and the mean over its runners of the steps that they survived.
TEST(Transition, StatisticsAreThoseOfTheStateAtTheEnd) {
  const cli::Setup setup = make_setup(
      "tag_continuous", {"env.num_taggers=2", "env.num_runners=5", "env.episode_length=6",
                         "env.tagging_distance=0.15", "trainer.num_envs=4", "trainer.train_batch_size=4",
                         "policy={tagger: {algorithm: A2C}, runner: {algorithm: A2C}}"});
  Trainer trainer(setup.config, *setup.row, *setup.environment, {});
  Replicas& replicas = trainer.replicas();
  const Trajectory& trajectory = trainer.trajectory();
  replicas.step(trajectory.first_rows());
  int episodes = 0;
  double tags = 0.0;
  for (int step = 0; step < 40; ++step) {
    replicas.step(trajectory.rows(0));
    for (int e = 0; e < 4; ++e) {
      if (flag(trajectory.terminated(), 0, e) == 0) continue;
      const auto read = [&](const char* field) { return replicas.read(e, replicas.layout().field(field)); };
      const std::vector<double> survival = read("survival");
      const double mean = std::accumulate(survival.begin() + 2, survival.end(), 0.0) / 5.0;
      EXPECT_EQ(trajectory.statistics()[0][e][0].item<float>(), read("tags")[0]);
      EXPECT_FLOAT_EQ(trajectory.statistics()[0][e][1].item<float>(), static_cast<float>(mean));
      tags += read("tags")[0];
      ++episodes;
    }
  }
  EXPECT_GE(episodes, 4 * 5);
  EXPECT_GT(tags, 0.0) << "else the test shows nothing";
}

// Replicas are keyed by their global id: two workers' halves are one worker's whole.
TEST(Transition, EpisodesDependOnGlobalIdsAlone) {
  const cli::Setup setup = make_setup("tag_gridworld", {"env.start=random"});
  const auto rollout = [&](int num_envs, std::uint32_t first) {
    ReplicasOptions options;
    options.num_envs = num_envs;
    options.first_replica = first;
    options.seed = 7;
    Replicas replicas(*setup.row, *setup.environment, options);
    Trajectory trajectory(replicas.spec(), {"shared"}, {0, 0}, 8, num_envs, {});
    replicas.step(trajectory.first_rows());
    for (int t = 0; t < 8; ++t) replicas.step(trajectory.rows(t));
    return trajectory.policies()[0].observation.clone();
  };
  const at::Tensor whole = rollout(6, 0), upper = rollout(4, 2);
  EXPECT_TRUE(at::equal(whole.narrow(1, 2, 4), upper));
}

}  // namespace
}  // namespace wd
