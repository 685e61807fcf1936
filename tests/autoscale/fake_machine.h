// fake_machine.h: a simulated machine defined by formulas, for tests of the search.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "src/autoscale/search.h"
#include "src/autoscale/trials.h"

namespace wd::scaling {

inline constexpr double kMiB = 1048576.0;

struct FakeMachine {
  // Environment steps per second and bytes, without noise.
  std::function<double(const Probe&)> rate = [](const Probe& p) { return saturating(p, 256.0, 16.0); };
  std::function<double(const Probe&)> bytes = [](const Probe& p) {
    return 100 * kMiB + 1e3 * static_cast<double>(p.num_envs) + 100.0 * static_cast<double>(p.batch());
  };
  double memory = 8192 * kMiB;  // a probe that needs more ends as out of memory
  double noise = 0.0;           // maximum relative error of every speed and of every turn's ratio
  double seconds = 10.0;        // per probe
  // Overrides the outcome of the n-th probe, counted from 0.
  std::function<std::optional<Kind>(const Probe&, int n)> trouble = {};

  int calls = 0;
  std::uint64_t random = 1;

  // Half of the maximum speed is reached at `half_envs` replicas, and likewise at `half_steps` steps. In each
  // of the two, an iteration takes a + b n seconds.
  static double saturating(const Probe& p, double half_envs, double half_steps) {
    const auto n = static_cast<double>(p.num_envs), t = static_cast<double>(p.rollout_steps);
    return 1e6 * n / (n + half_envs) * t / (t + half_steps);
  }

  double draw() {  // in [-1, 1)
    random = random * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(random >> 11) * 0x1p-52 - 1.0;
  }

  static constexpr int kTurns = 10;

  ProbeEnd operator()(const Probe& probe, const std::optional<Probe>& reference, double) {
    const int n = calls++;
    ProbeEnd outcome{.kind = Kind::kFits, .seconds = seconds};
    if (trouble) outcome.kind = trouble(probe, n).value_or(Kind::kFits);
    if (bytes(probe) + (reference ? bytes(*reference) : 0.0) > memory) outcome.kind = Kind::kOutOfMemory;
    if (outcome.kind != Kind::kFits) return outcome.detail = "as told", outcome;
    outcome.bytes = static_cast<std::uint64_t>(bytes(probe));
    if (!reference) outcome.env_steps_per_s = rate(probe) * (1.0 + noise * draw());
    for (int k = 0; reference && k < kTurns; ++k)
      outcome.ratios.push_back(rate(probe) / rate(*reference) * (1.0 + noise * draw()));
    return outcome;
  }
};

inline double least_rollout_of(const SearchOptions& options) {
  if (options.min_rollout > 0) return static_cast<double>(options.min_rollout);
  return options.objective == Objective::kMemory ? 1.0 : static_cast<double>(options.start.rollout_steps);
}

// 2 log2(range) + 4, for the range that the stage may search.
inline double bound(const SearchOptions& options, const SearchResult& result, Stage stage) {
  const Limits& limits = options.limits;
  const double t = least_rollout_of(options), step = options.num_workers;
  double envs = 1.0, steps = 1.0;
  for (const Trial& one : result.trials) {
    envs = std::max(envs, static_cast<double>(one.probe.num_envs) / step);
    steps = std::max(steps, static_cast<double>(one.probe.rollout_steps) / t);
  }
  if (stage == Stage::kReplicas)
    envs = std::min(static_cast<double>(limits.max_envs), static_cast<double>(limits.max_batch) / t) / step;
  if (stage == Stage::kReplicas) steps = 1.0;
  if (stage == Stage::kRollout) steps = static_cast<double>(limits.max_batch) / t, envs = 1.0;
  return 2.0 * std::log2(envs * steps) + 4.0;
}

inline bool lacked_memory_together(const Trial& one) {
  return one.outcome.kind == Kind::kOutOfMemory && one.reference;
}

// Runs a search and checks the invariants of every search.
inline SearchResult search_and_check(const SearchOptions& options, FakeMachine& machine) {
  std::vector<Trial> told;
  const SearchResult result =
      search(options, std::ref(machine), [&](const Trial& one) { told.push_back(one); });
  EXPECT_EQ(told, result.trials);
  std::map<Stage, int> probes;
  std::set<Probe> misfits;
  int run = 0;
  for (const Trial& one : result.trials) {
    const Probe& probe = one.probe;
    EXPECT_EQ(probe.num_envs % options.num_workers, 0);
    EXPECT_GE(probe.num_envs, 1);
    EXPECT_LE(probe.num_envs, options.limits.max_envs);
    EXPECT_GE(probe.rollout_steps, 1);
    EXPECT_LE(probe.batch(), options.limits.max_batch);
    EXPECT_GE(probe.batch(), options.limits.min_batch);
    if (one.outcome.kind == Kind::kSkipped) continue;
    ++probes[one.stage];
    ++run;
    EXPECT_FALSE(misfits.contains(probe)) << "what did not fit is not measured again: " << probe.num_envs;
    // Running out of memory with two settings together says nothing about one of them.
    if (one.outcome.kind != Kind::kFits && !lacked_memory_together(one)) misfits.insert(probe);
  }
  EXPECT_EQ(run, machine.calls);
  for (const auto& [stage, count] : probes)
    EXPECT_LE(count, bound(options, result, stage)) << "stage " << static_cast<int>(stage);
  if (result.status != Status::kChosen) return result;
  EXPECT_LE(result.bytes, options.limits.memory_bytes);
  EXPECT_GE(result.chosen.rollout_steps, least_rollout_of(options));
  bool chosen_fits = false, start_fits = true;
  std::vector<double> start_rates;
  for (const Trial& one : result.trials) {
    const bool fits = one.outcome.kind == Kind::kFits;
    if (lacked_memory_together(one)) continue;
    if (one.probe == result.chosen) {
      EXPECT_TRUE(fits) << one.outcome.detail;
      chosen_fits = true;
    }
    if (one.probe == result.start) {
      start_fits = start_fits && fits;
      start_rates.push_back(one.outcome.env_steps_per_s);
    }
  }
  EXPECT_TRUE(chosen_fits);
  if (options.objective == Objective::kMemory) return result;
  EXPECT_FALSE(start_rates.empty());
  if (start_rates.empty() || !start_fits) return result;
  EXPECT_GE(machine.rate(result.chosen), machine.rate(result.start) * (1.0 - 2.5 * machine.noise));
  EXPECT_GE(result.env_steps_per_s, median(start_rates));
  return result;
}

// A search from `start` with only these limits.
inline SearchOptions from(Probe start, std::int64_t max_envs = 1 << 20, std::int64_t max_batch = 1 << 28) {
  SearchOptions options;
  options.start = start;
  options.limits.max_envs = max_envs;
  options.limits.max_batch = max_batch;
  return options;
}

// The highest speed of any setting within the limits and the memory, over a grid with eight points per
// doubling.
inline double best_rate(const SearchOptions& options, const FakeMachine& machine) {
  double best = 0.0;
  const double memory = std::min(machine.memory, static_cast<double>(options.limits.memory_bytes));
  for (double n = 1.0; n <= static_cast<double>(options.limits.max_envs); n *= std::exp2(0.125)) {
    for (double t = least_rollout_of(options); n * t <= static_cast<double>(options.limits.max_batch);
         t *= std::exp2(0.125)) {
      const Probe probe{static_cast<std::int64_t>(n), static_cast<std::int64_t>(t)};
      if (machine.bytes(probe) <= memory) best = std::max(best, machine.rate(probe));
    }
  }
  return best;
}

}  // namespace wd::scaling
