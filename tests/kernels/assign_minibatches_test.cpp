// assign_minibatches_test.cpp: every unit is assigned exactly once, shares are equal, ranks agree, and
// every order of a replica's steps is equally likely.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/kernels/assign_minibatches_data.h"
#include "tests/kernels/memory.h"
#include "wd/detail/parallel.h"

namespace wd {
namespace {

// Units of each minibatch, as (replica of the whole job, step).
using Unit = std::pair<std::int64_t, std::int64_t>;

std::vector<std::vector<Unit>> assigned_units(AssignMinibatchesArgs args) {
  const std::vector<std::int64_t> order = run_assign_minibatches(HostMemory(), args);
  const std::size_t capacity = order.size() / static_cast<std::size_t>(args.count);
  std::vector<std::vector<Unit>> minibatches(static_cast<std::size_t>(args.count));
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] < 0) continue;
    minibatches[i / capacity].emplace_back(args.first_replica + order[i] % args.num_envs,
                                           order[i] / args.num_envs);
  }
  return minibatches;
}

std::set<Unit> as_set(const std::vector<Unit>& units) { return {units.begin(), units.end()}; }

TEST(AssignMinibatches, EveryUnitOnceAndEqualShares) {
  for (const int steps : {1, 2, 5, 20, 100}) {
    for (const int num_envs : {1, 3, 8, 64}) {
      for (const int count : {2, 3, 4, 7, 16}) {
        for (const std::int64_t first : {0, 5}) {
          const auto minibatches =
              assigned_units({.steps = steps, .num_envs = num_envs, .count = count, .first_replica = first});
          std::set<Unit> all;
          std::size_t most = 0, least = SIZE_MAX;
          for (const auto& units : minibatches) {
            most = std::max(most, units.size());
            least = std::min(least, units.size());
            all.insert(units.begin(), units.end());
          }
          EXPECT_EQ(all.size(), static_cast<std::size_t>(steps * num_envs));
          EXPECT_LE(most - least, 1u) << steps << ' ' << num_envs << ' ' << count;
          if (steps % count != 0) continue;
          // Every replica contributes the same number of steps.
          for (const auto& units : minibatches) {
            std::map<std::int64_t, int> of_replica;
            for (const Unit& unit : units) ++of_replica[unit.first];
            for (const auto& [replica, n] : of_replica) EXPECT_EQ(n, steps / count);
          }
        }
      }
    }
  }
}

TEST(AssignMinibatches, RanksTogetherDealWhatOneDoes) {
  for (const int count : {3, 4, 16}) {
    for (const int share : {0, 3}) {
      const auto whole = assigned_units(
          {.steps = 10, .num_envs = 12, .count = count, .share = share, .iteration = 9, .epoch = 2});
      for (const int ranks : {2, 4}) {
        std::vector<std::set<Unit>> joint(whole.size());
        for (int r = 0; r < ranks; ++r) {
          const int envs = 12 / ranks;
          const auto part = assigned_units({.steps = 10,
                                            .num_envs = envs,
                                            .count = count,
                                            .share = share,
                                            .first_replica = r * envs,
                                            .iteration = 9,
                                            .epoch = 2});
          for (std::size_t m = 0; m < part.size(); ++m) joint[m].insert(part[m].begin(), part[m].end());
        }
        for (std::size_t m = 0; m < whole.size(); ++m) EXPECT_EQ(joint[m], as_set(whole[m]));
      }
    }
  }
}

// What is used of each replica's steps are the first S of the order in which all of them are dealt to one
// minibatch.
TEST(AssignMinibatches, AShareIsTheBeginningOfEveryReplicasOrder) {
  constexpr int kSteps = 11, kReplicas = 6;
  for (const std::uint32_t epoch : {0u, 1u}) {
    const AssignMinibatchesArgs all{
        .steps = kSteps, .num_envs = kReplicas, .first_replica = 6, .iteration = 3, .epoch = epoch};
    const std::vector<Unit> whole = assigned_units(all)[0];
    for (const int share : {1, 2, 10, 11}) {
      for (const int count : {1, 2, 5, 6}) {
        AssignMinibatchesArgs args = all;
        args.share = share;
        args.count = count;
        std::vector<std::vector<Unit>> expected(static_cast<std::size_t>(count));
        for (int e = 0; e < kReplicas; ++e)
          for (int p = 0; p < share; ++p)
            expected[static_cast<std::size_t>(((6 + e) * share + p) % count)].push_back(
                whole[static_cast<std::size_t>(e * kSteps + p)]);
        EXPECT_EQ(assigned_units(args), expected) << share << ' ' << count;
      }
    }
  }
}

// Of 20 steps each epoch draws 5, so a step is in all of 4 epochs with probability 1 / 256, and each equally
// often.
TEST(AssignMinibatches, SharesAreFreshAndEveryStepIsEquallyLikely) {
  constexpr int kSteps = 20, kReplicas = 1000, kShare = 5, kEpochs = 4;
  std::map<Unit, int> drawn;
  std::map<std::int64_t, int> of_step;
  for (std::uint32_t epoch = 0; epoch < kEpochs; ++epoch) {
    std::set<Unit> distinct;
    for (const auto& units : assigned_units(
             {.steps = kSteps, .num_envs = kReplicas, .count = 3, .share = kShare, .epoch = epoch})) {
      for (const Unit& unit : units) {
        distinct.insert(unit);
        ++drawn[unit];
        ++of_step[unit.second];
      }
    }
    EXPECT_EQ(distinct.size(), static_cast<std::size_t>(kShare * kReplicas));
  }
  const auto always = std::ranges::count_if(drawn, [](const auto& d) { return d.second == kEpochs; });
  EXPECT_NEAR(static_cast<double>(always), kSteps * kReplicas / 256.0, 45);  // five standard deviations
  for (int t = 0; t < kSteps; ++t) EXPECT_NEAR(of_step[t], 1000, 140) << t;  // five standard deviations
}

// Six orders of three steps, over replicas, epochs and iterations: all are equally likely, and none of the
// three determines another.
TEST(AssignMinibatches, EveryOrderIsEquallyLikely) {
  constexpr int kReplicas = 2000;
  std::map<std::vector<std::int64_t>, int> seen;
  std::vector<std::vector<std::int64_t>> before;
  for (const std::uint64_t iteration : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 40}) {
    for (const std::uint32_t epoch : {0u, 1u}) {
      const auto now = run_assign_minibatches(
          HostMemory(),
          {.steps = 3, .num_envs = kReplicas, .count = 3, .iteration = iteration, .epoch = epoch});
      for (std::size_t e = 0; e < kReplicas; ++e) {
        std::vector<std::int64_t> order;
        for (std::size_t m = 0; m < 3; ++m) order.push_back(now[m * kReplicas + e] / kReplicas);
        ++seen[order];
      }
      for (const std::vector<std::int64_t>& other :
           before) {  // a third of the first units is equal by chance
        int repeated = 0;
        for (std::size_t e = 0; e < kReplicas; ++e) repeated += now[e] == other[e] ? 1 : 0;
        EXPECT_NEAR(repeated, kReplicas / 3, 105) << iteration << ' ' << epoch;  // five standard deviations
      }
      before.push_back(now);
    }
  }
  ASSERT_EQ(seen.size(), 6u);
  for (const auto& [order, count] : seen) EXPECT_NEAR(count, 2000, 200);  // five standard deviations
}

TEST(AssignMinibatches, IsTheSameForAnyNumberOfThreads) {
  const AssignMinibatchesArgs args{.steps = 9, .num_envs = 5000, .count = 4};
  const int threads = num_threads();
  set_num_threads(4);
  const auto expected = run_assign_minibatches(HostMemory(), args);
  set_num_threads(1);
  EXPECT_EQ(run_assign_minibatches(HostMemory(), args), expected);
  set_num_threads(threads);
}

}  // namespace
}  // namespace wd
