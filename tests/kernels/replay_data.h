// replay_data.h: fills a ring with random rollouts, draws from it and sets priorities, on either device.
#pragma once

#include <vector>

#include "kernels/replay.h"
#include "tests/kernels/random_data.h"

namespace wd {

struct ReplayCase {
  int steps = 6, num_envs = 4, num_agents = 2, rollouts = 4;
  std::int64_t capacity = 18;
  std::int64_t n_step = 3;
  std::int64_t per_replica = 2, every = 1;
  bool prioritized = false;
  std::int64_t burn_in = 0, length = 1, per_block = 1;  // above 1: windows of a network with a state
};

// What the ring and the draws hold after every rollout.
struct ReplayResult {
  std::vector<std::uint8_t> flags, mask;
  std::vector<float> tree, highest, rows, reward, discount, weight;
  std::vector<std::int64_t> entry, next, window, first, successor;
  bool operator==(const ReplayResult&) const = default;
};

template <typename T>
void append_to(std::vector<T>& all, const std::vector<T>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

// Every rollout is appended and then drawn from twice; errors are random, the same in every call.
template <typename Memory>
ReplayResult run_replay(Memory memory, const ReplayCase& c, const std::vector<RolloutArrays>& rollouts) {
  const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  const std::int64_t rows = c.num_envs * c.capacity * c.num_agents,
                     windows = c.num_envs / c.every * c.per_replica, units = windows * c.length,
                     drawn = units * c.num_agents, span = c.burn_in + c.length + c.n_step;
  constexpr std::int64_t kLeaves = 32;
  TrainingTime* const time = memory.put(std::vector<TrainingTime>(1));
  ReplayRing ring{.steps = c.steps,
                  .num_envs = c.num_envs,
                  .num_agents = c.num_agents,
                  .capacity = c.capacity,
                  .n_step = c.n_step,
                  .burn_in = c.burn_in,
                  .length = c.length,
                  .time = time,
                  .begun = memory.put(std::vector<std::int64_t>(1)),
                  .flags = memory.put(std::vector<std::uint8_t>(size(rows)))};
  if (c.prioritized) {
    ring.tree = memory.put(std::vector<float>(size(c.num_envs * 2 * kLeaves)));
    ring.leaves = kLeaves;
    ring.highest = memory.put(std::vector<float>(size(c.num_envs), 1.0f));
  }
  float* const kept = memory.put(std::vector<float>(size(rows)));
  ReplayDrawArgs draw{.ring = ring,
                      .units = units,
                      .per_block = c.per_block,
                      .per_replica = c.per_replica,
                      .every = c.every,
                      .first_replica = 5,
                      .key = RandomKey::of(77, RandomUse::kReplay),
                      .gamma = 0.9f,
                      .reward_scale = 0.5f,
                      .importance = memory.put(std::vector{0.7f}),
                      .stored_reward = kept,
                      .entry = memory.template make<std::int64_t>(size(units)),
                      .next = memory.template make<std::int64_t>(size(units)),
                      .window = memory.template make<std::int64_t>(size(windows * span)),
                      .first = memory.template make<std::int64_t>(size(windows)),
                      .successor = memory.template make<std::int64_t>(size(units)),
                      .reward = memory.template make<float>(size(drawn)),
                      .discount = memory.template make<float>(size(drawn)),
                      .weight = memory.template make<float>(size(drawn)),
                      .mask = memory.template make<std::uint8_t>(size(drawn))};
  Draws draws(31);
  ReplayResult result;
  for (const RolloutArrays& r : rollouts) {
    ReplayAppendArgs append{.ring = ring, .num_arrays = 1};
    append.arrays[0] = GatheredArray::of(memory.put(r.reward), kept, 4 * std::int64_t{c.num_agents});
    append.active = memory.put(r.active);
    append.agent_terminated = memory.put(r.agent_terminated);
    append.terminated = memory.put(r.terminated);
    append.truncated = memory.put(r.truncated);
    append.reset_step = memory.put(r.reset_step);
    replay_append(memory.queue(), append);
    if (c.prioritized) replay_admit(memory.queue(), ring);
    for (draw.draw = 0; draw.draw < 2; ++draw.draw) {
      replay_draw(memory.queue(), draw);
      append_to(result.entry, memory.get(draw.entry, size(units)));
      append_to(result.next, memory.get(draw.next, size(units)));
      append_to(result.window, memory.get(draw.window, size(windows * span)));
      append_to(result.first, memory.get(draw.first, size(windows)));
      append_to(result.successor, memory.get(draw.successor, size(units)));
      append_to(result.reward, memory.get(draw.reward, size(drawn)));
      append_to(result.discount, memory.get(draw.discount, size(drawn)));
      append_to(result.weight, memory.get(draw.weight, size(drawn)));
      append_to(result.mask, memory.get(draw.mask, size(drawn)));
      if (!c.prioritized) continue;
      replay_priorities(memory.queue(), {.ring = ring,
                                         .units = units,
                                         .per_block = c.per_block,
                                         .per_replica = c.per_replica,
                                         .entry = draw.entry,
                                         .error = memory.put(draws.uniforms(drawn, -2.0f, 2.0f)),
                                         .mask = draw.mask});
      append_to(result.tree, memory.get(ring.tree, size(c.num_envs * 2 * kLeaves)));
      append_to(result.highest, memory.get(ring.highest, size(c.num_envs)));
    }
    append_to(result.flags, memory.get(ring.flags, size(rows)));
    append_to(result.rows, memory.get(kept, size(rows)));
    advance_clock(memory.queue(), {time, c.steps * std::int64_t{c.num_envs}});
  }
  return result;
}

inline std::vector<RolloutArrays> random_rollouts(Draws& draws, const ReplayCase& c) {
  std::vector<RolloutArrays> rollouts;
  for (int i = 0; i < c.rollouts; ++i)
    rollouts.push_back(random_rollout(draws, c.steps, c.num_envs, c.num_agents, 5));
  return rollouts;
}

}  // namespace wd
