// replay_test.cpp: which entries of a ring are drawn, and how often.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/kernels/memory.h"
#include "tests/kernels/replay_data.h"

namespace wd {
namespace {

// The ring of one agent after so many rollouts, all of whose steps are transitions.
struct Filled {
  HostMemory memory;
  ReplayRing ring;
  std::vector<float*> rows;

  Filled(int num_envs, int rollouts, std::int64_t capacity, std::int64_t n_step, bool prioritized) {
    constexpr int kT = 5;
    const auto E = static_cast<std::size_t>(num_envs), C = static_cast<std::size_t>(capacity);
    TrainingTime* const time = memory.put(std::vector<TrainingTime>(1));
    ring = {.steps = kT,
            .num_envs = num_envs,
            .num_agents = 1,
            .capacity = capacity,
            .n_step = n_step,
            .time = time,
            .begun = memory.put(std::vector<std::int64_t>(1)),
            .flags = memory.put(std::vector<std::uint8_t>(E * C))};
    if (prioritized) {
      ring.tree = memory.put(std::vector<float>(E * 64));
      ring.leaves = 32;
      ring.highest = memory.put(std::vector<float>(E, 1.0f));
    }
    const std::uint8_t* const ones = memory.put(std::vector<std::uint8_t>(E * kT, 1));
    const std::uint8_t* const zeros = memory.put(std::vector<std::uint8_t>(E * kT));
    for (time->iteration = 0; time->iteration < rollouts; ++time->iteration) {
      replay_append({}, {.ring = ring,
                         .active = ones,
                         .agent_terminated = zeros,
                         .terminated = zeros,
                         .truncated = zeros,
                         .reset_step = zeros});
      if (prioritized) replay_admit({}, ring);
    }
    --time->iteration;
  }

  // The places of the entries that draw number `draw` gives, of replicas [first, first + num_envs).
  std::vector<std::int64_t> draw(int number, std::int64_t per_replica, std::int64_t every,
                                 std::int64_t first_replica = 0) {
    const std::int64_t units = ring.num_envs / every * per_replica;
    const auto n = static_cast<std::size_t>(units);
    ReplayDrawArgs args{.ring = ring, .units = units, .per_replica = per_replica, .every = every};
    args.first_replica = first_replica;
    args.draw = number;
    args.key = RandomKey::of(3, RandomUse::kReplay);
    args.importance = memory.put(std::vector{1.0f});
    args.stored_reward =
        memory.put(std::vector<float>(static_cast<std::size_t>(ring.num_envs * ring.capacity)));
    args.entry = memory.make<std::int64_t>(n);
    args.next = memory.make<std::int64_t>(n);
    args.reward = memory.make<float>(n);
    args.discount = memory.make<float>(n);
    args.weight = memory.make<float>(n);
    args.mask = memory.make<std::uint8_t>(n);
    replay_draw({}, args);
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_EQ(args.mask[i], 1);
      EXPECT_EQ((args.next[i] - args.entry[i] + ring.capacity) % ring.capacity, ring.n_step);
    }
    return memory.get(args.entry, n);
  }
};

// All entries but the newest n, about equally often; before the ring is full, and when it has wrapped.
TEST(Replay, EveryEntryWithASuccessorIsDrawnEquallyOften) {
  constexpr int kC = 20, kN = 3, kDraws = 500;
  for (const bool prioritized : {false, true}) {
    for (const int rollouts : {2, 4, 6, 7}) {
      SCOPED_TRACE(testing::Message() << rollouts << " rollouts, " << prioritized);
      Filled filled(1, rollouts, kC, kN, prioritized);
      std::map<std::int64_t, int> times;
      for (int k = 0; k < kDraws; ++k)
        for (const std::int64_t place : filled.draw(k, 4, 1)) ++times[place];
      const int entries = 5 * rollouts, there = std::min(entries, kC);
      EXPECT_EQ(times.size(), there - kN);
      for (int g = entries - kN; g < entries; ++g) EXPECT_FALSE(times.contains(g % kC)) << g;
      const double expected = 4.0 * kDraws / (there - kN);
      for (const auto& [place, count] : times)
        EXPECT_NEAR(count, expected, 5.0 * std::sqrt(expected)) << place;
    }
  }
}

TEST(Replay, AllRanksTogetherDrawWhatOneRankDraws) {
  for (const bool prioritized : {false, true}) {
    for (const auto& [per_replica, every] : {std::pair{3, 1}, std::pair{1, 1}, std::pair{1, 4}}) {
      Filled one(8, 5, 20, 2, prioritized), first(4, 5, 20, 2, prioritized), second(4, 5, 20, 2, prioritized);
      std::set<std::int64_t> offsets;
      for (int k = 0; k < 20; ++k) {
        const std::vector<std::int64_t> all = one.draw(k, per_replica, every);
        std::vector<std::int64_t> parts = first.draw(k, per_replica, every);
        for (const std::int64_t place : second.draw(k, per_replica, every, 4))
          parts.push_back(place + 4 * one.ring.capacity);
        EXPECT_EQ(all, parts);
        offsets.insert(all[0] / one.ring.capacity);
      }
      EXPECT_EQ(offsets.size(), every) << "every replica gives in turn";
    }
  }
}

TEST(Replay, EntriesAreDrawnByTheirPriorities) {
  Filled filled(1, 4, 20, 1, true);
  constexpr int kDraws = 4000;
  std::vector<float> errors(19);
  std::vector<std::int64_t> entries(19);
  std::vector<std::uint8_t> ones(19, 1);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i] = static_cast<std::int64_t>(i);
    errors[i] = static_cast<float>(i % 4);  // an error of 0 leaves the floor: almost never drawn
  }
  replay_priorities({}, {.ring = filled.ring,
                         .units = 19,
                         .per_replica = 19,
                         .entry = entries.data(),
                         .error = errors.data(),
                         .mask = ones.data(),
                         .exponent = 2.0f});
  EXPECT_NEAR(filled.ring.highest[0], 9.0f, 1e-4f);
  double total = 0.0;
  for (std::size_t i = 0; i < errors.size(); ++i) total += double{errors[i]} * errors[i];
  EXPECT_NEAR(filled.ring.tree[1], total, 1e-3);
  std::map<std::int64_t, int> times;
  for (int k = 0; k < kDraws; ++k) ++times[filled.draw(k, 1, 1)[0]];
  for (std::size_t i = 0; i < errors.size(); ++i) {
    const double expected = kDraws * errors[i] * errors[i] / total;
    EXPECT_NEAR(times[static_cast<std::int64_t>(i)], expected, 5.0 * std::sqrt(expected) + 1e-9) << i;
  }
}

}  // namespace
}  // namespace wd
