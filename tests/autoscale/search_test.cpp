// search_test.cpp: what the search finds on simulated machines.
#include "src/autoscale/search.h"

#include "tests/autoscale/fake_machine.h"

namespace wd::scaling {
namespace {

TEST(SearchTest, GrowsFromASmallStartAndStopsWhereMoreReplicasGainNothing) {
  FakeMachine machine;
  const SearchOptions options = from({16, 32});
  const SearchResult result = search_and_check(options, machine);
  ASSERT_EQ(result.status, Status::kChosen);
  EXPECT_GE(machine.rate(result.chosen), 0.94 * best_rate(options, machine));
  EXPECT_GT(result.chosen.num_envs, 4096);
  EXPECT_LT(result.chosen.num_envs, 65'536) << "memory would hold far more";
  EXPECT_THAT(result.reason, testing::HasSubstr("replicas: no faster at"));
}

TEST(SearchTest, ChoosesTheSmallestThatIsWithinTwoPercentOfTheFastestMeasured) {
  FakeMachine machine;
  machine.rate = [](const Probe& p) { return FakeMachine::saturating(p, 100.0, 0.0); };  // T has no effect
  const SearchResult result = search_and_check(from({16, 32}), machine);
  ASSERT_EQ(result.status, Status::kChosen);
  double fastest = 0.0;
  for (const Trial& one : result.trials) fastest = std::max(fastest, one.outcome.env_steps_per_s);
  EXPECT_GE(result.env_steps_per_s, 0.98 * fastest);
  EXPECT_EQ(result.chosen.rollout_steps, 32);
  const double part = 0.98 * fastest / 1e6, smallest = part * 100.0 / (1.0 - part);
  EXPECT_LE(static_cast<double>(result.chosen.num_envs), 1.13 * smallest);
}

TEST(SearchTest, KeepsAStartThatIsTheSmallestOfTheFastest) {
  FakeMachine machine;
  machine.rate = [](const Probe& p) {
    return p.num_envs < 512 ? 1e3 * static_cast<double>(p.num_envs) : 512e3;
  };
  const SearchResult result = search_and_check(from({512, 8}), machine);
  ASSERT_EQ(result.status, Status::kChosen);
  EXPECT_EQ(result.chosen, (Probe{512, 8}));
}

TEST(SearchTest, ShrinksAStartThatIsNeedlesslyLarge) {
  FakeMachine machine;
  machine.rate = [](const Probe& p) {
    return p.num_envs < 512 ? 1e3 * static_cast<double>(p.num_envs) : 512e3;
  };
  const SearchResult result = search_and_check(from({8192, 8}), machine);
  ASSERT_EQ(result.status, Status::kChosen);
  EXPECT_GE(result.chosen.num_envs, 512);
  EXPECT_LE(result.chosen.num_envs, 576);
}

// Settings of 512 to 2047 replicas are slower than the start, by less than 2 %.
TEST(SearchTest, BesideAStartOfFullSpeedASmallerOneMustBeNoSlower) {
  FakeMachine machine;
  machine.rate = [](const Probe& p) {
    return p.num_envs < 512 ? 1e3 * static_cast<double>(p.num_envs) : p.num_envs < 2048 ? 990e3 : 1e6;
  };
  const SearchResult result = search_and_check(from({8192, 8}), machine);
  EXPECT_GE(result.chosen.num_envs, 2048);
  EXPECT_LE(result.chosen.num_envs, 2304);
}

TEST(SearchTest, ShrinksTheRolloutToo) {
  FakeMachine machine;
  machine.rate = [](const Probe& p) { return FakeMachine::saturating(p, 0.0, 4.0); };
  SearchOptions options = from({1, 8});
  options.min_rollout = 2;
  options.limits.max_envs = 1;
  const SearchResult result = search_and_check(options, machine);
  // 512 is faster than 256 by less than 2 %, and 1024 by less than twice that: it is the last one tried.
  const double part = 0.98 * 1024.0 / 1028.0;
  EXPECT_GE(machine.rate(result.chosen), 0.98 * 256.0 / 260.0 * 1e6);
  EXPECT_LE(static_cast<double>(result.chosen.rollout_steps), 1.4 * part * 4.0 / (1.0 - part));
}

// At T = 32 every setting is slow, which says nothing about the number of replicas at a larger T.
TEST(SearchTest, SlownessOfShortRolloutsIsNoneOfFewReplicas) {
  FakeMachine machine;
  machine.rate = [](const Probe& p) { return FakeMachine::saturating(p, 50.0, 500.0); };
  const SearchResult result = search_and_check(from({16, 32}), machine);
  std::int64_t most = 0;
  for (const Trial& one : result.trials) most = std::max(most, one.probe.num_envs);
  EXPECT_EQ(most, 32'768);  // no gain at 4096 nor beyond it
  EXPECT_LE(result.chosen.num_envs, 2000);
}

TEST(SearchTest, RolloutsAreTriedWithReplicasOfFullSpeed) {
  FakeMachine machine;
  machine.rate = [](const Probe& p) {
    return p.num_envs == 1024 ? 1e6 : 1e3 * static_cast<double>(std::min<std::int64_t>(p.num_envs, 500));
  };
  const SearchResult result = search_and_check(from({64, 8}), machine);
  for (const Trial& one : result.trials) {
    EXPECT_TRUE(one.stage != Stage::kRollout || one.probe.num_envs == 1024) << one.probe.num_envs;
  }
  EXPECT_EQ(result.chosen.num_envs, 1024);
}

TEST(SearchTest, HalvesUntilItFitsAndBisectsToTwoPercent) {
  FakeMachine machine;
  machine.rate = [](const Probe& p) { return static_cast<double>(p.num_envs); };  // faster with every replica
  machine.memory = 300 * kMiB;
  const SearchResult result = search_and_check(from({1 << 19, 32}), machine);
  ASSERT_EQ(result.status, Status::kChosen);
  EXPECT_EQ(result.chosen.rollout_steps, 32);
  EXPECT_GE(static_cast<double>(result.chosen.num_envs), 0.96 * 200 * kMiB / 4200.0);
  EXPECT_LT(machine.calls, 36);
}

TEST(SearchTest, MemoryThatReplicasAloneWouldFillKeepsRoomForARollout) {
  FakeMachine machine;
  machine.rate = [](const Probe& p) { return static_cast<double>(p.num_envs); };
  machine.memory = 1024 * kMiB;
  SearchOptions options = from({64, 32});
  options.min_rollout = 16;
  const SearchResult result = search_and_check(options, machine);
  ASSERT_EQ(result.status, Status::kChosen);
  EXPECT_GE(result.chosen.rollout_steps, 16);
  for (const Trial& one : result.trials) EXPECT_GE(one.probe.rollout_steps, 16);
}

TEST(SearchTest, ObjectiveMemoryFillsItWithReplicasThenWithSteps) {
  FakeMachine machine;
  machine.memory = 1024 * kMiB;
  SearchOptions options = from({64, 32});
  options.objective = Objective::kMemory;
  const SearchResult result = search_and_check(options, machine);
  ASSERT_EQ(result.status, Status::kChosen);
  EXPECT_GE(static_cast<double>(result.chosen.num_envs), 924 * kMiB / 1100.0 * 0.96);
  EXPECT_EQ(result.chosen.rollout_steps, 1);
  for (const Trial& one : result.trials) EXPECT_FALSE(one.reference) << "no speed decides here";

  machine.calls = 0;
  options.limits.max_envs = 1000;  // so that there is room for more steps
  const SearchResult limited = search_and_check(options, machine);
  EXPECT_EQ(limited.chosen.num_envs, 1000);
  EXPECT_GE(machine.bytes(limited.chosen), 0.95 * machine.memory);
}

}  // namespace
}  // namespace wd::scaling
