// episode_log_test.cpp: the return that ends training is that of the policy, for any episode lengths and any
// number of replicas.
#include "src/trainer/episode_log.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/trainer/known_policy.h"

namespace wd {
namespace {

constexpr int kSteps = 32;

RolloutShape shape_of(int replicas) {
  RolloutShape shape =
      RolloutShape::of_roles({{{"player", 1, {{"x", 1}}, ActionSpace::discrete({2})}}, 500}, replicas);
  shape.steps = kSteps;
  return shape;
}

struct Training {
  Training(int replicas, double success, float reward, unsigned seed)
      : rows(shape_of(replicas)), log(rows, {}, {}), clock({}), policy(replicas, success, reward, seed) {}

  // Runs one iteration; returns the mean of the window after it.
  double iterate() {
    policy.play(rows);
    log.accumulate(clock);
    log.read_if_due();
    clock.advance(std::int64_t{kSteps} * rows.num_envs());
    return log.window(0).mean();
  }
  bool known() const { return log.window(0).full(); }

  Trajectory rows;
  EpisodeLog log;
  TrainingClock clock;
  KnownPolicy policy;
};

TEST(ReturnWindow, HoldsAHundredEpisodesAndTwoOfEveryReplica) {
  for (const auto& [replicas, episodes] :
       {std::pair(1, 100), {3, 100}, {32, 100}, {50, 100}, {64, 128}, {1024, 2048}}) {
    ReturnWindow window(replicas);
    EXPECT_TRUE(std::isnan(window.mean()));
    // All replicas except the last play far more episodes than their share.
    for (int k = 0; k < 200; ++k)
      for (int e = 0; e + 1 < replicas; ++e) window.add(e, 1000.0);
    int added = 0;
    for (; !window.full() && added < 1000; ++added) window.add(replicas - 1, 2.0);
    ASSERT_EQ(added, episodes / replicas) << "the last replica's share is one of the smaller ones";
    EXPECT_EQ(window.mean(), (1000.0 * (episodes - added) + 2.0 * added) / episodes) << replicas;
    for (int k = 0; k < 200; ++k)
      for (int e = 0; e < replicas; ++e) window.add(e, k < 190 ? -7.0 : 1.0 * k);
    window.add(0, 300.0);
    if (replicas == 1) {
      EXPECT_EQ(window.mean(), (300.0 + 194.5 * 10 - 7.0 * 89) / 100) << "the oldest leave first";
    }
  }
}

// If all replicas improve at once, their episodes end in waves of long and of short ones. With a window of
// the last hundred episodes of any replicas, 1,024 replicas with a return of 465 would appear to have 500,
// and those that lose 1 per step would appear to have -150.
TEST(EpisodeLog, NeverTakesAWaveOfEpisodesForThePolicy) {
  for (const int replicas : {256, 1024}) {
    for (const float reward : {1.0f, -1.0f}) {
      for (const unsigned seed : {1u, 2u, 3u}) {
        Training training(replicas, 0.9, reward, seed);
        const double truth = training.policy.mean_return(), deviation = 350.0 * std::sqrt(0.9 * 0.1);
        const double tolerance = 4.5 * deviation / std::sqrt(2.0 * replicas);
        for (int iteration = 1; iteration <= 3 * 500 / kSteps; ++iteration) {
          const double seen = training.iterate();
          if (!training.known()) continue;
          EXPECT_LT(reward * seen, reward * truth + tolerance) << replicas << ", iteration " << iteration;
          // The window still includes episodes of the worse policy before.
          if (iteration * kSteps < 2 * 501 + 200) continue;
          EXPECT_NEAR(seen, truth, tolerance) << replicas << ", iteration " << iteration;
        }
        EXPECT_TRUE(training.known());
      }
    }
  }
}

TEST(EpisodeLog, AGoodPolicyIsKnownAfterTwoEpisodesOfEveryReplica) {
  Training training(1024, 1.0, 1.0f, 1);
  int steps = 0;
  while (!(training.iterate() >= 475.0 && training.known()) && steps < 5000) steps += kSteps;
  EXPECT_LE(steps, KnownPolicy::kShortMean + 2 * (KnownPolicy::kLongest + 1) + kSteps);
}

TEST(EpisodeLog, ComesBackFromItsStateAsItWas) {
  Training training(70, 0.5, 1.0f, 1);
  for (int i = 0; i < 40; ++i) training.iterate();
  std::vector<NamedTensor> state = training.log.state();
  for (NamedTensor& named : state) named.tensor = named.tensor.clone();
  const double mean = training.log.window(0).mean();
  ASSERT_TRUE(training.known());
  Training other(70, 0.5, 1.0f, 2);
  other.log.restore(state);
  EXPECT_EQ(other.log.window(0).mean(), mean);
  EXPECT_TRUE(other.known());
  other.policy = training.policy;
  other.clock.set(40, 0);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(other.iterate(), training.iterate());
}

}  // namespace
}  // namespace wd
