// replay_test.cpp: which entries of a ring are drawn, and how often.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
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

// Windows of random games, compared with what was played: whole, in the order of blocks, with the successor of
// each step that is learned from; and windows from which nothing can be learned have no priority.
TEST(Replay, WindowsListTheirStepsAndSuccessors) {
  Draws draws(19);
  int later = 0, left_out = 0;
  for (const auto& [burn_in, length, n_step, per_block] :
       {std::array{3, 4, 2, 3}, {0, 1, 1, 100}, {2, 5, 3, 1}, {0, 3, 1, 4}}) {
    for (const bool prioritized : {false, true}) {
      SCOPED_TRACE(testing::Message() << burn_in << ' ' << length << ' ' << n_step << ' ' << prioritized);
      ReplayCase c{
          .num_envs = 5, .rollouts = 6, .capacity = 24, .n_step = n_step, .prioritized = prioritized};
      c.burn_in = burn_in, c.length = length, c.per_block = per_block;
      const std::vector<RolloutArrays> rollouts = random_rollouts(draws, c);
      const ReplayResult result = run_replay(HostMemory(), c, rollouts);
      const std::int64_t E = c.num_envs, C = c.capacity, T = c.steps, W = E * c.per_replica,
                         S = burn_in + length + n_step;
      const auto flag = [&](std::vector<std::uint8_t> RolloutArrays::* of, std::int64_t g, std::int64_t row,
                            std::int64_t rows) {
        const RolloutArrays& rollout = rollouts[static_cast<std::size_t>(g / T)];
        return (rollout.*of)[static_cast<std::size_t>(g % T * rows + row)] != 0;
      };
      const auto ended = [&](std::int64_t g, std::int64_t e) {
        return flag(&RolloutArrays::terminated, g, e, E) || flag(&RolloutArrays::truncated, g, e, E);
      };
      const auto played = [&](std::int64_t g, std::int64_t e, std::int64_t a) {
        return flag(&RolloutArrays::active, g, e * c.num_agents + a, E * c.num_agents) &&
               !flag(&RolloutArrays::reset_step, g, e, E);
      };
      const auto row = [&](std::int64_t window, std::int64_t step, std::int64_t steps) {
        const std::int64_t before = window / per_block * per_block,
                           size = std::min<std::int64_t>(per_block, W - before);
        return before * steps + step * size + window - before;
      };
      const auto at = [](const auto& all, std::int64_t i) { return all[static_cast<std::size_t>(i)]; };
      for (std::int64_t k = 0; k < 2 * std::int64_t{c.rollouts}; ++k) {
        const std::int64_t entries = (k / 2 + 1) * T, oldest = std::max<std::int64_t>(entries - C, 0);
        const bool any = std::min(entries, C) >= S;
        for (std::int64_t w = 0; w < W && any; ++w) {
          const std::int64_t first = at(result.first, k * W + w), e = w / c.per_replica,
                             g = oldest + (first - e * C - oldest % C + C) % C;
          const auto place = [&](std::int64_t entry) { return e * C + entry % C; };
          ASSERT_EQ(first, place(g));
          ASSERT_LE(g + S, entries);
          for (std::int64_t t = 0; t < S; ++t)
            ASSERT_EQ(at(result.window, k * W * S + row(w, t, S)), place(g + t));
          for (std::int64_t t = 0; t < length; ++t) {
            const std::int64_t now = g + burn_in + t, unit = k * W * length + row(w, t, length);
            std::int64_t next = now + 1;
            while (next < now + n_step && !ended(next - 1, e)) ++next;
            later += next > now + 1 ? 1 : 0;
            ASSERT_EQ(at(result.entry, unit), place(now));
            ASSERT_EQ(at(result.next, unit), place(next));
            const std::int64_t block = k * W * S + w / per_block * per_block * S;
            ASSERT_EQ(at(result.window, block + at(result.successor, unit)), place(next));
            ASSERT_EQ(block + at(result.successor, unit), k * W * S + row(w, next - g, S));
            for (std::int64_t a = 0; a < c.num_agents; ++a)
              ASSERT_EQ(at(result.mask, unit * c.num_agents + a) != 0, played(now, e, a));
          }
        }
        for (std::int64_t e = 0; e < E && prioritized; ++e) {
          for (std::int64_t g = oldest; g < entries; ++g) {
            bool counts = false;
            for (std::int64_t i = 0; i < length * c.num_agents && g + S <= entries; ++i)
              counts = counts || played(g + burn_in + i / c.num_agents, e, i % c.num_agents);
            left_out += !counts && g + S <= entries ? 1 : 0;
            ASSERT_EQ(at(result.tree, (k * E + e) * 64 + 32 + g % C) > 0.0f, counts) << g;
          }
        }
      }
    }
  }
  EXPECT_GT(later, 100);
  EXPECT_GT(left_out, 0);
}

// At its first entry, with 0.9 of the largest error and 0.1 of the mean of those that count.
TEST(Replay, ThePriorityOfAWindowIsMostlyThatOfItsLargestError) {
  Filled filled(1, 4, 20, 1, true);
  filled.ring.burn_in = 2;
  filled.ring.length = 3;
  filled.ring.num_agents = 2;
  // Two windows, from entries 4 and 11 on; rows of both agents.
  const std::vector<std::int64_t> entries = {6, 13, 7, 14, 8, 15};
  const std::vector<float> errors = {1, -3, 9, 9, 5, 5, 0, 0, 9, 9, 0, -1};
  const std::vector<std::uint8_t> mask = {1, 1, 0, 0, 1, 0, 1, 1, 0, 0, 1, 1};
  replay_priorities({}, {.ring = filled.ring,
                         .units = 6,
                         .per_block = 2,
                         .per_replica = 2,
                         .entry = entries.data(),
                         .error = errors.data(),
                         .mask = mask.data(),
                         .exponent = 2.0f});
  const auto priority = [&](std::int64_t slot) { return filled.ring.tree[filled.ring.leaves + slot]; };
  EXPECT_NEAR(priority(4), std::pow(0.9 * 5.0 + 0.1 * 3.0, 2.0), 1e-3) << "1, 3 and 5";
  EXPECT_NEAR(priority(11), std::pow(0.9 * 1.0 + 0.1 * 0.25, 2.0), 1e-4) << "0, 0, 0 and 1";
}

}  // namespace
}  // namespace wd
