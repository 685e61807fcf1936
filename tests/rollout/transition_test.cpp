// transition_test.cpp: the meaning of a rollout's rows when episodes end, in environments with known ends.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/support.h"
#include "wd/trainer.h"

namespace wd {
namespace {

int flag(const at::Tensor& flags, int t, int e) { return flags[t][e].item<int>(); }

// Pendulum with episodes of 5 steps: truncated at steps 4, 10, ... and reset at 5, 11, ... in every replica.
TEST(Transition, TruncationShowsTheTrueLastObservationThenResets) {
  const Experiment setup =
      make_setup("pendulum", {"env.episode_length=5", "trainer.num_envs=3", "trainer.train_batch_size=42"});
  Trainer trainer(setup.config, *setup.environment, {});
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
  // Row 5 follows row 4 by the dynamics (theta_dot changes by at most (15 sin + 3 u) dt = 1.05); row 6 is a
  // new start.
  const auto speed = [&](int t, int e) { return buffers.observation[t][e][0][2].item<float>(); };
  for (int e = 0; e < 3; ++e) {
    EXPECT_LE(std::abs(speed(5, e) - speed(4, e)), 1.06f);
    EXPECT_LE(std::abs(speed(6, e)), 1.0f) << "starts have |theta_dot| <= 1";
    EXPECT_FALSE(at::equal(buffers.observation[6][e], buffers.observation[5][e]));
  }
}

// No algorithm takes part. Both rollouts use the same buffers, so that the first one leaves masks behind.
TEST(Transition, MasksAreWrittenFromTheFlags) {
  const Spec spec{
      .roles = {
          {.name = "one", .count = 1, .observation = {{"x", 1}}, .action = ActionSpace::discrete({2})},
          {.name = "many", .count = 3, .observation = {{"x", 1}}, .action = ActionSpace::discrete({2})}}};
  constexpr int kSteps = 9, kEnvs = 5;
  Trajectory trajectory({spec, Cast::of_roles(spec, {"one", "many"}, {0, 1}), kSteps, kEnvs});
  at::manual_seed(1);
  const auto draw = [](const at::Tensor& flags) { flags.copy_(at::rand(flags.sizes()) < 0.6); };
  for (const int length : {kSteps, 4}) {
    draw(trajectory.reset_step());
    for (const PolicyBuffers& policy : trajectory.policies()) draw(policy.active);
    trajectory.end_at(length);
    for (int p = 0; p < 2; ++p) {
      trajectory.write_mask(p);
      const PolicyBuffers& policy = trajectory.policies()[static_cast<std::size_t>(p)];
      at::Tensor expected = policy.active.slice(0, 0, kSteps) * (1 - trajectory.reset_step()).unsqueeze(2);
      expected.slice(0, length).zero_();
      EXPECT_TRUE(at::equal(policy.mask, expected)) << policy.name << ", length " << length;
      EXPECT_GT(policy.mask.sum().item<int>(), 0);
    }
  }
}

// A runner at a tagger's position is tagged in the first step; the other runner, out of reach, continues to
// play.
TEST(Transition, AnAgentThatLeavesKeepsItsLastRewardAndIsInactiveAfterwards) {
  const Experiment setup =
      make_setup("tag_continuous",
                 {"env.num_taggers=1", "env.num_runners=2", "env.max_speed=0.001",
                  "env.tagging_distance=0.02", "env.tag_reward_for_tagger=1", "env.tag_penalty_for_runner=-1",
                  "env.reset=fixed", "trainer.num_envs=1", "trainer.train_batch_size=4",
                  "policy={tagger: {algorithm: A2C}, runner: {algorithm: A2C}}"});
  Trainer trainer(setup.config, *setup.environment, {});
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

// For every episode that ends: the tags of the replica, and the mean number of steps that its runners
// survived.
TEST(Transition, StatisticsAreThoseOfTheStateAtTheEnd) {
  const Experiment setup = make_setup(
      "tag_continuous", {"env.num_taggers=2", "env.num_runners=5", "env.episode_length=6",
                         "env.tagging_distance=0.15", "trainer.num_envs=4", "trainer.train_batch_size=4",
                         "policy={tagger: {algorithm: A2C}, runner: {algorithm: A2C}}"});
  Trainer trainer(setup.config, *setup.environment, {});
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

// Games of 20 steps in rollouts of 10: the first episode of replica e is truncated after staggered_steps();
// all later ones end by the rules. Every episode begins with step 0: agents that observe the time see how
// long they have played.
TEST(Transition, StaggeredResetsCutTheFirstEpisodesAloneAndOnlyWhereRolloutsAreShorter) {
  constexpr int kReplicas = 16, kLimit = 20;
  struct Replica {
    int first, left;
    bool in_first = true;
  };
  for (const bool truncates : {true, false}) {
    for (const int steps : {kLimit / 2, kLimit}) {
      const bool staggered = steps < kLimit;
      std::vector<std::string> settings = {concat("env.episode_length=", kLimit), "trainer.seed=3",
                                           concat("trainer.num_envs=", kReplicas),
                                           concat("trainer.train_batch_size=", kReplicas * steps)};
      if (!truncates)
        settings.insert(settings.end(), {"env.num_taggers=1", "env.num_runners=2", "env.tagging_distance=0"});
      const Experiment setup = make_setup(truncates ? "pendulum" : "tag_continuous", settings);
      Trainer trainer(setup.config, *setup.environment, {});
      const Trajectory& rows = trainer.trajectory();
      std::vector<Replica> replicas;
      for (std::uint32_t e = 0; e < kReplicas; ++e) {
        const int first = staggered ? staggered_steps(3, e, kLimit) : kLimit;
        replicas.push_back({first, first});
      }
      for (int t = 0; t < 4 * kLimit; ++t) {
        if (t % steps == 0) trainer.rollout();
        for (int e = 0; e < kReplicas; ++e) {
          Replica& replica = replicas[static_cast<std::size_t>(e)];
          const std::string where = concat("rollouts of ", steps, ", step ", t, ", replica ", e);
          const bool resets = replica.left == 0, ends = replica.left == 1,
                     cut = replica.in_first && replica.first < kLimit;
          const auto got = [&](const at::Tensor& flags) { return flag(flags, t % steps, e) != 0; };
          EXPECT_EQ(got(rows.reset_step()), resets) << where;
          EXPECT_EQ(got(rows.truncated()), ends && (truncates || cut)) << where;
          EXPECT_EQ(got(rows.terminated()), ends && !truncates && !cut) << where;
          if (resets) replica.in_first = false;
          replica.left = resets ? kLimit : replica.left - 1;
          if (t % steps != steps - 1) continue;
          EXPECT_EQ(trainer.replicas().header(e).t,
                    (replica.in_first ? replica.first : kLimit) - replica.left)
              << where;
        }
      }
    }
  }
}

// For any sequence of consecutive replicas, of one worker or of all, the number of first episodes that end
// within t steps is proportional to t, to within 3.
TEST(Staggered, AreSpreadEvenlyOverTheEpisodeForAnyNumberOfReplicas) {
  for (const int limit : {1, 5, 100, 501}) {
    for (const auto& [begin, count] : {std::pair(0u, 64), {0u, 250}, {64u, 64}, {750u, 250}, {5u, 7}}) {
      for (const std::uint64_t seed : {1u, 2u}) {
        // Number of replicas that end after at most this many steps.
        std::vector<int> before(static_cast<std::size_t>(limit) + 1);
        for (int k = 0; k < count; ++k) {
          const int steps = staggered_steps(seed, begin + static_cast<std::uint32_t>(k), limit);
          ASSERT_GE(steps, 1);
          ASSERT_LE(steps, limit);
          for (int t = steps; t <= limit; ++t) ++before[static_cast<std::size_t>(t)];
        }
        for (int t = 1; t <= limit; ++t)
          EXPECT_NEAR(before[static_cast<std::size_t>(t)], 1.0 * count * t / limit, 3.0)
              << limit << ' ' << count;
      }
    }
  }
  EXPECT_NE(staggered_steps(1, 0, 1000), staggered_steps(2, 0, 1000));
}

// Only whole episodes are reported.
TEST(Staggered, CutEpisodesCountNowhere) {
  const Experiment setup =
      make_setup("pendulum", {"env.episode_length=20", "trainer.num_envs=8", "trainer.train_batch_size=80"});
  Trainer trainer(setup.config, *setup.environment, {});
  // By step, for all replicas; an episode and its reset take 21 steps.
  std::vector<int> ends_of_whole(51);
  for (std::uint32_t e = 0; e < 8; ++e) {
    const int first = staggered_steps(1, e, 20);
    EXPECT_EQ(trainer.replicas().is_first_cut(static_cast<int>(e)), first < 20);
    for (int end = first < 20 ? first + 21 : first; end <= 50; end += 21)
      ++ends_of_whole[static_cast<std::size_t>(end)];
  }
  const std::string policy = setup.config.policies[0].name;
  for (int iteration = 1; iteration <= 5; ++iteration) {
    trainer.iterate();
    const MetricsRow row = trainer.take_metrics();
    const auto value = [&](const std::string& name) {
      return std::ranges::find(row.values(), name, &std::pair<std::string, double>::first)->second;
    };
    const auto begin = ends_of_whole.begin() + 10 * (iteration - 1) + 1;
    const int ended = std::accumulate(begin, begin + 10, 0);
    EXPECT_EQ(value("episodes"), ended) << iteration;
    if (ended > 0) {
      EXPECT_EQ(value(policy + "/episode_length"), 20.0);
    }
  }
}

TEST(Staggered, FirstEpisodesGoOnFromACheckpointAsIfNothingHadHappened) {
  const Experiment setup =
      make_setup("pendulum", {"env.episode_length=20", "trainer.num_envs=8", "trainer.train_batch_size=56"});
  Trainer unharmed(setup.config, *setup.environment, {});
  unharmed.iterate();
  Trainer resumed(setup.config, *setup.environment, {});
  resumed.restore(unharmed.snapshot());
  ASSERT_EQ(resumed.replicas().header(0).episode, 0u);
  for (int i = 0; i < 5; ++i) {
    unharmed.iterate();
    resumed.iterate();
  }
  const Snapshot expected = unharmed.snapshot(), got = resumed.snapshot();
  for (const auto& [file, tensors] : expected.files) {
    for (std::size_t k = 0; k < tensors.size(); ++k)
      EXPECT_TRUE(at::equal(got.files.at(file)[k].tensor, tensors[k].tensor) ||
                  tensors[k].name.ends_with("/recent"))
          << file << ' ' << tensors[k].name;
  }
  EXPECT_EQ(resumed.mean_return(0), unharmed.mean_return(0));
  EXPECT_GT(resumed.replicas().header(0).episode, 0u);
}

// Replicas use their global ids as keys: the halves of two workers equal the whole of one worker.
TEST(Transition, EpisodesDependOnGlobalIdsAlone) {
  const Experiment setup = make_setup("tag_gridworld", {"env.start=random", "env.episode_length=8"});
  const auto rollout = [&](int num_envs, std::uint32_t first) {
    ReplicasOptions options;
    options.staggered = true;
    options.num_envs = num_envs;
    options.first_replica = first;
    options.seed = 7;
    Replicas replicas(*setup.environment, options);
    Trajectory trajectory(
        {replicas.spec(), Cast::of_roles(replicas.spec(), {"shared"}, {0, 0}), 8, num_envs});
    replicas.step(trajectory.first_rows());
    for (int t = 0; t < 8; ++t) replicas.step(trajectory.rows(t));
    return std::pair(trajectory.policies()[0].observation.clone(), trajectory.truncated().clone());
  };
  const auto whole = rollout(6, 0), upper = rollout(4, 2);
  EXPECT_TRUE(at::equal(whole.first.narrow(1, 2, 4), upper.first));
  EXPECT_TRUE(at::equal(whole.second.narrow(1, 2, 4), upper.second));
  EXPECT_GT(upper.second.sum().item<int>(), 0)
      << "no first episode was cut short: the test shows less than it says";
}

}  // namespace
}  // namespace wd
