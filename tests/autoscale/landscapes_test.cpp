// landscapes_test.cpp: the search on other shapes of the speed: with steps, with noise, with a peak, with
// outcomes that change.
#include "tests/autoscale/fake_machine.h"

namespace wd::scaling {
namespace {

constexpr int kSeeds = 200;

SearchOptions in_reach(Probe start) { return from(start, 1 << 16, 1 << 24); }

// Waves of blocks: a GPU takes as long for one block as for `wave` blocks.
double in_waves(const Probe& p, std::int64_t wave) {
  const double waves = static_cast<double>((p.num_envs + wave - 1) / wave);
  return static_cast<double>(p.num_envs) / (0.002 + 0.001 * waves);
}

TEST(LandscapesTest, Steps) {
  for (const std::int64_t start : {1, 100, 132, 1000, 50'000}) {
    FakeMachine machine;
    machine.rate = [](const Probe& p) { return in_waves(p, 132); };
    const SearchOptions options = in_reach({start, 16});
    const SearchResult result = search_and_check(options, machine);
    ASSERT_EQ(result.status, Status::kChosen);
    EXPECT_GE(machine.rate(result.chosen), 0.9 * best_rate(options, machine)) << "from " << start;
  }
}

TEST(LandscapesTest, MemoryInSteps) {
  FakeMachine machine;
  machine.rate = [](const Probe& p) { return static_cast<double>(p.num_envs); };
  machine.bytes = [](const Probe& p) {
    return std::ceil(static_cast<double>(p.batch()) * 1000 / (64 * kMiB)) * 64 * kMiB;
  };
  machine.memory = 520 * kMiB;  // 512 of them can be used, in steps of 64
  SearchOptions options = in_reach({64, 16});
  options.sizes = {.per_replica_step = 1000.0};
  const SearchResult result = search_and_check(options, machine);
  EXPECT_GE(static_cast<double>(result.chosen.num_envs), 0.96 * 512 * kMiB / 16'000);
}

// The peak is between doublings of the start, and larger settings are slower.
TEST(LandscapesTest, APeak) {
  for (const std::int64_t start : {1, 48, 512, 700, 20'000}) {
    FakeMachine machine;
    machine.rate = [](const Probe& p) {
      const double n = static_cast<double>(p.num_envs) / 512.0;
      return 1e6 * n / (1.0 + n * n);
    };
    const SearchOptions options = in_reach({start, 16});
    const SearchResult result = search_and_check(options, machine);
    ASSERT_EQ(result.status, Status::kChosen);
    EXPECT_GE(machine.rate(result.chosen), machine.rate(result.start));
    if (start <= 512) {
      EXPECT_GE(machine.rate(result.chosen), 0.92 * best_rate(options, machine));
    }
  }
}

TEST(LandscapesTest, NoiseNeitherBreaksTheBoundNorChoosesWhatIsSlow) {
  std::vector<double> parts;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    FakeMachine machine;
    machine.noise = 0.03;
    machine.random = seed;
    machine.rate = [](const Probe& p) { return FakeMachine::saturating(p, 100.0, 4.0); };
    const SearchOptions options = in_reach({std::int64_t{1} << seed % 15, 32});
    const SearchResult result = search_and_check(options, machine);
    ASSERT_EQ(result.status, Status::kChosen);
    parts.push_back(machine.rate(result.chosen) / best_rate(options, machine));
  }
  std::ranges::sort(parts);
  EXPECT_GE(parts[kSeeds / 10], 0.8);
  // 0.74 is reached by a climb that decides by a single timing of each setting.
  EXPECT_GE(parts[kSeeds / 2], 0.9);
}

// The speed is constant from 512 replicas on: noise must not drive the search to the largest setting.
TEST(LandscapesTest, NoiseOnAPlateauStillShrinks) {
  int small = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    FakeMachine machine;
    machine.noise = 0.01;
    machine.random = seed;
    machine.rate = [](const Probe& p) {
      return p.num_envs < 512 ? 1e3 * static_cast<double>(p.num_envs) : 512e3;
    };
    const SearchResult result = search_and_check(in_reach({32, 32}), machine);
    EXPECT_GE(result.chosen.num_envs, 480);
    small += result.chosen.num_envs <= 640;
  }
  EXPECT_GE(small, kSeeds / 2);
}

// The start already has full speed: settings that were not slower in pairs may still be slower over all
// measurements.
TEST(LandscapesTest, NoiseAroundAStartOfFullSpeed) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    FakeMachine machine;
    machine.noise = 0.015;
    machine.random = seed;
    machine.rate = [](const Probe&) { return 1e6; };
    EXPECT_EQ(search_and_check(in_reach({4096, 32}), machine).status, Status::kChosen);
  }
}

TEST(LandscapesTest, WhatFitsOnlyAtTimesIsNotChosen) {
  int chosen = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    FakeMachine machine;
    machine.random = seed;
    machine.memory = 1e18;
    machine.trouble = [&machine](const Probe& p, int) {
      const double chance = p.num_envs >= 2048 ? 0.5 : p.num_envs >= 256 ? 0.1 : 0.0;
      return machine.draw() < 2.0 * chance - 1.0 ? std::optional(Kind::kOutOfMemory) : std::nullopt;
    };
    const SearchResult result = search_and_check(in_reach({64, 32}), machine);
    chosen += result.status == Status::kChosen;
  }
  EXPECT_EQ(chosen, kSeeds) << "the start always fits";
}

// Everything fails at times, even the start: the search ends within the bound and chooses nothing that has
// ever failed.
TEST(LandscapesTest, EverythingFlaps) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    FakeMachine machine;
    machine.random = seed;
    machine.noise = 0.1;
    machine.trouble = [&machine](const Probe&, int) {
      return machine.draw() < -0.2 ? std::optional(machine.draw() < 0.0 ? Kind::kOutOfMemory : Kind::kTooSlow)
                                   : std::nullopt;
    };
    SearchOptions options = in_reach({64, 32});
    options.objective = seed % 3 == 0 ? Objective::kMemory : Objective::kSpeed;
    search_and_check(options, machine);
  }
}

// Limits and starts of all sizes, on a machine with all kinds of trouble at once.
TEST(LandscapesTest, TheBoundHoldsForAllRanges) {
  for (int envs = 0; envs <= 12; ++envs) {
    for (int batch = envs + 2; batch <= 20; batch += 3) {
      for (const std::int64_t start : {1, 3, 60, 5000}) {
        FakeMachine machine;
        machine.noise = 0.05;
        machine.memory = 120 * kMiB;
        SearchOptions options = in_reach({start, 3});
        options.limits.max_envs = (1 << envs) + 1;
        options.limits.max_batch = 1 << batch;
        search_and_check(options, machine);
      }
    }
  }
}

}  // namespace
}  // namespace wd::scaling
