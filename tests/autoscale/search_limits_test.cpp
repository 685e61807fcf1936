// search_limits_test.cpp: what ends a search: limits, memory, time and failures.
#include "src/autoscale/search.h"
#include "tests/autoscale/fake_machine.h"
#include "wd/error.h"

namespace wd::scaling {
namespace {

TEST(SearchLimitsTest, ABudgetCountsAsMemoryThoughTheProbeLived) {
  FakeMachine machine;
  machine.rate = [](const Probe& p) { return static_cast<double>(p.num_envs); };
  SearchOptions options = from({64, 32});
  options.limits.memory_bytes = static_cast<std::uint64_t>(500 * kMiB);
  const SearchResult result = search_and_check(options, machine);
  ASSERT_EQ(result.status, Status::kChosen);
  EXPECT_GE(machine.bytes(result.chosen), 0.90 * 500 * kMiB);
}

TEST(SearchLimitsTest, EverythingFitsToTheLimits) {
  FakeMachine machine;
  machine.rate = [](const Probe& p) { return static_cast<double>(p.batch()); };
  machine.memory = 1e18;
  SearchOptions options = from({3, 5});
  options.limits.max_envs = 1000;
  options.limits.max_batch = 100'000;
  const SearchResult result = search_and_check(options, machine);
  ASSERT_EQ(result.status, Status::kChosen);
  EXPECT_THAT(result.reason, testing::HasSubstr("the limit is 1000 (autoscale.max_envs)"));
  EXPECT_TRUE(result.at_max_batch);
  EXPECT_GE(result.chosen.batch(), 98'000);
}

TEST(SearchLimitsTest, NothingFits) {
  FakeMachine machine;
  machine.memory = 0.0;
  const SearchResult result = search_and_check(from({1000, 32}), machine);
  EXPECT_EQ(result.status, Status::kNothingFits);
  EXPECT_EQ(result.trials.back().probe, (Probe{1, 32}));
  EXPECT_THAT(result.reason, testing::HasSubstr("memory is full at 1"));
}

TEST(SearchLimitsTest, AFailureEndsTheSearchAndIsNeverTakenForTooBig) {
  for (const int at : {0, 3, 14, 20}) {
    FakeMachine machine;
    machine.trouble = [at](const Probe&, int n) {
      return n == at ? std::optional(Kind::kFailed) : std::nullopt;
    };
    const SearchResult result = search_and_check(from({16, 32}), machine);
    EXPECT_EQ(result.status, Status::kFailed);
    EXPECT_EQ(machine.calls, at + 1);
    EXPECT_THAT(result.reason, testing::EndsWith("steps: as told"));
  }
}

TEST(SearchLimitsTest, ASuccessWithoutASpeedIsAFailure) {
  for (const double rate : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    FakeMachine machine;
    machine.rate = [rate](const Probe&) { return rate; };
    const SearchResult result = search_and_check(from({16, 32}), machine);
    EXPECT_EQ(result.status, Status::kFailed);
    EXPECT_EQ(machine.calls, 1);
  }
}

TEST(SearchLimitsTest, TooSlowIsTooLarge) {
  FakeMachine machine;
  machine.rate = [](const Probe& p) { return static_cast<double>(p.batch()); };
  machine.trouble = [](const Probe& p, int) {
    return p.batch() > 50'000 ? std::optional(Kind::kTooSlow) : std::nullopt;
  };
  const SearchResult result = search_and_check(from({8192, 32}), machine);
  ASSERT_EQ(result.status, Status::kChosen);
  EXPECT_GE(result.chosen.batch(), 48'000);
  EXPECT_THAT(result.reason, testing::HasSubstr("too slow at"));
}

TEST(SearchLimitsTest, TimeEndsItWithTheFastestSoFar) {
  FakeMachine machine;
  SearchOptions options = from({16, 32});
  options.limits.max_seconds = 100.0;
  const SearchResult result = search_and_check(options, machine);
  EXPECT_EQ(machine.calls, 10);
  ASSERT_EQ(result.status, Status::kChosen);
  std::map<Stage, int> probes;
  for (const Trial& one : result.trials) ++probes[one.stage];
  EXPECT_EQ(probes,
            (std::map<Stage, int>{{Stage::kReplicas, 5}, {Stage::kRollout, 3}, {Stage::kSmallest, 2}}));
  EXPECT_GE(machine.rate(result.chosen), 0.98 * machine.rate({256, 32}));
  EXPECT_THAT(result.reason, testing::HasSubstr("replicas: its part of autoscale.max_seconds is over"));
}

TEST(SearchLimitsTest, EachProbeIsGivenTheTimeThatIsLeftAndWhatThatCutShortIsNoMisfit) {
  FakeMachine machine;
  SearchOptions options = from({16, 32});
  options.limits.max_seconds = 45.0;
  std::vector<double> given;
  const SearchResult result =
      search(options, [&](const Probe& probe, const std::optional<Probe>& reference, double seconds) {
        given.push_back(seconds);
        ProbeEnd outcome = machine(probe, reference, seconds);
        if (seconds < outcome.seconds) outcome = {.kind = Kind::kTooSlow, .seconds = seconds};
        return outcome;
      });
  EXPECT_THAT(given, testing::ElementsAre(45.0, 35.0, 25.0, 15.0, 5.0));
  EXPECT_EQ(result.chosen, (Probe{64, 64})) << "the last of search 2";
  EXPECT_THAT(result.reason, testing::HasSubstr("its part of autoscale.max_seconds is over"));
  // A probe that ran out of the search's time is not called slow.
  EXPECT_EQ(result.trials.back().outcome.kind, Kind::kCutShort);
  EXPECT_EQ(result.trials.back().outcome.detail, "the 45s of autoscale.max_seconds are over");
}

TEST(SearchLimitsTest, TimeMayEndAnywhere) {
  for (double limit = 5.0; limit < 500.0; limit += 10.0) {
    FakeMachine machine;
    machine.rate = [](const Probe& p) {
      return static_cast<double>(p.num_envs) * (p.rollout_steps == 32 ? 1.0 : 0.5);
    };
    SearchOptions options = from({16, 32});
    options.limits.max_envs = 1000;
    options.limits.max_seconds = limit;
    double fastest = 0.0;
    const SearchResult result =
        search(options, [&](const Probe& probe, const std::optional<Probe>& reference, double seconds) {
          ProbeEnd outcome = machine(probe, reference, seconds);
          if (seconds < outcome.seconds) return ProbeEnd{.kind = Kind::kTooSlow, .seconds = seconds};
          fastest = std::max(fastest, outcome.env_steps_per_s);
          return outcome;
        });
    EXPECT_EQ(result.status, limit < 10.0 ? Status::kNothingFits : Status::kChosen) << limit;
    EXPECT_GE(result.env_steps_per_s, 0.98 * fastest) << limit;
  }
}

TEST(SearchLimitsTest, WhatMeasureThrowsPasses) {
  EXPECT_THROW(
      search(from({16, 32}),
             [](const Probe&, const std::optional<Probe>&, double) -> ProbeEnd { throw UsageError("stop"); }),
      UsageError);
}

TEST(SearchLimitsTest, ReplicasAreMultiplesOfTheWorkersAndBatchesHoldAllMinibatches) {
  for (const int workers : {1, 2, 3, 7, 8}) {
    for (const std::int64_t envs : {1, 5, 64, 1000}) {
      FakeMachine machine;
      SearchOptions options = from({envs, 4});
      options.num_workers = workers;
      options.limits.min_batch = 100;
      EXPECT_EQ(search_and_check(options, machine).status, Status::kChosen);
      machine.calls = 0;
      machine.memory = 101 * kMiB;  // less than the larger starts need
      EXPECT_EQ(search_and_check(options, machine).status, Status::kChosen);
      options.objective = Objective::kMemory;
      machine.calls = 0;
      EXPECT_EQ(search_and_check(options, machine).status, Status::kChosen);
    }
  }
}

TEST(SearchLimitsTest, LimitsThatLeaveNothingAreTold) {
  FakeMachine machine;
  SearchOptions options = from({16, 32});
  options.num_workers = 8;
  options.limits.max_batch = 200;
  EXPECT_THROW(search_and_check(options, machine), UsageError);
  options.limits.max_batch = 256;
  EXPECT_EQ(search_and_check(options, machine).chosen, (Probe{8, 32}));
}

TEST(SearchLimitsTest, TheMemoryModelSavesProbes) {
  FakeMachine blind;
  blind.rate = [](const Probe& p) { return static_cast<double>(p.num_envs); };
  SearchOptions options = from({1 << 19, 32});
  options.limits.memory_bytes = static_cast<std::uint64_t>(600 * kMiB);
  FakeMachine modelled = blind;
  const Probe found = search_and_check(options, blind).chosen;
  options.sizes = {.fixed = 0.0, .per_replica = 900.0, .per_replica_step = 100.0};
  const SearchResult result = search_and_check(options, modelled);
  EXPECT_LT(modelled.calls, blind.calls - 2);
  EXPECT_NEAR(static_cast<double>(result.chosen.num_envs), static_cast<double>(found.num_envs),
              0.05 * static_cast<double>(found.num_envs));
  EXPECT_TRUE(
      std::ranges::any_of(result.trials, [](const Trial& t) { return t.outcome.kind == Kind::kSkipped; }));
}

}  // namespace
}  // namespace wd::scaling
