// replay_body.h: one word that is appended, one entry that is drawn, the priorities of one replica: the same
// code on both devices.
#pragma once

#include "kernels/ends.h"
#include "kernels/gather_body.h"
#include "kernels/replay.h"

namespace wd {

// The entries of every replica so far, with the newest rollout.
WD_FN std::int64_t entries_of(const ReplayRing& ring) {
  return ring.loaded > 0 ? ring.loaded : (ring.time->iteration - *ring.begun + 1) * ring.steps;
}
// Entries of a window with the successors of all that is learned from.
WD_FN std::int64_t span_of(const ReplayRing& ring) { return ring.burn_in + ring.length + ring.n_step; }
// With how many of them a window can begin: with all that are still there, but the newest ones.
WD_FN std::int64_t drawable_of(const ReplayRing& ring, std::int64_t entries) {
  const std::int64_t there = entries < ring.capacity ? entries : ring.capacity, span = span_of(ring);
  return there >= span ? there - span + 1 : 0;
}
// Where a window is among rows of `steps` steps, in blocks: its row of step 0, and how far apart its steps
// are.
struct WindowRows {
  std::int64_t first, stride;
};
WD_FN WindowRows rows_of_window(std::int64_t windows, std::int64_t per_block, std::int64_t window,
                                std::int64_t steps) {
  const std::int64_t before = window / per_block * per_block, left = windows - before;
  return {before * steps + window - before, left < per_block ? left : per_block};
}
// The place of entry g of replica e in arrays [E, C].
WD_FN std::int64_t place_of(const ReplayRing& ring, std::int64_t e, std::int64_t g) {
  return e * ring.capacity + g % ring.capacity;
}

// --- append ------------------------------------------------------------------------------------------------

WD_FN std::uint8_t replay_flag(std::uint8_t active, std::uint8_t agent_terminated, std::uint8_t terminated,
                               std::uint8_t truncated, std::uint8_t reset_step) {
  const StepEnd end = end_of_step(terminated, truncated, agent_terminated);
  const bool played = active != 0 && reset_step == 0, ends = terminated != 0 || truncated != 0;
  return static_cast<std::uint8_t>((played ? kReplayPlayed : 0) | (end.over ? kReplayOver : 0) |
                                   (ends ? kReplayEnds : 0));
}

WD_FN void append_flags(const ReplayAppendArgs& args, std::int64_t i) {
  const ReplayRing& ring = args.ring;
  const std::int64_t row = i / ring.num_agents, agent = i % ring.num_agents, e = row % ring.num_envs;
  const std::int64_t g = entries_of(ring) - ring.steps + row / ring.num_envs;
  const bool own = args.who.is_own(row, static_cast<int>(agent));
  ring.flags[place_of(ring, e, g) * ring.num_agents + agent] =
      replay_flag(own ? args.active[i] : 0, args.agent_terminated[i], args.terminated[row],
                  args.truncated[row], args.reset_step[row]);
}

// Items: the words of all rows of the first array, then of the second, ..., then the flags of all rows.
WD_FN void append_word(const ReplayAppendArgs& args, std::int64_t i) {
  const ReplayRing& ring = args.ring;
  const std::int64_t rows = std::int64_t{ring.steps} * ring.num_envs;
  for (int k = 0; k < args.num_arrays; ++k) {
    const GatheredArray& array = args.arrays[k];
    const std::int64_t words = array.row_bytes / array.word_bytes, all = rows * words;
    if (i >= all) {
      i -= all;
      continue;
    }
    const std::int64_t from = i / words;
    const std::int64_t to =
        place_of(ring, from % ring.num_envs, entries_of(ring) - ring.steps + from / ring.num_envs);
    return copy_word(array, from, to, i % words);
  }
  append_flags(args, i);
}

// --- priorities --------------------------------------------------------------------------------------------

WD_FN float* tree_of(const ReplayRing& ring, std::int64_t e) { return ring.tree + e * 2 * ring.leaves; }

WD_FN void set_leaf(float* tree, std::int64_t leaves, std::int64_t slot, float priority) {
  std::int64_t node = leaves + slot;
  tree[node] = priority;
  for (node /= 2; node >= 1; node /= 2) tree[node] = tree[2 * node] + tree[2 * node + 1];
}

// The slot at which the sum of priorities from the first on exceeds u times their total, u in [0, 1). Never
// one without priority, unless none has any.
WD_FN std::int64_t find_leaf(const float* tree, std::int64_t leaves, float u) {
  float left = u * tree[1];
  std::int64_t node = 1;
  while (node < leaves) {
    node *= 2;
    if (left < tree[node] || !(tree[node + 1] > 0.0f)) continue;
    left -= tree[node];
    ++node;
  }
  return node - leaves;
}

// In what is learned from in the window that begins with entry g.
WD_FN bool anyone_played(const ReplayRing& ring, std::int64_t e, std::int64_t g) {
  bool played = false;
  for (std::int64_t t = g + ring.burn_in; t < g + ring.burn_in + ring.length; ++t)
    for (int a = 0; a < ring.num_agents; ++a)
      played = played || (ring.flags[place_of(ring, e, t) * ring.num_agents + a] & kReplayPlayed) != 0;
  return played;
}

WD_FN void admit_replica(const ReplayRing& ring, std::int64_t e) {
  float* const tree = tree_of(ring, e);
  const std::int64_t entries = entries_of(ring), drawable = entries - span_of(ring) + 1;
  for (std::int64_t g = drawable > ring.steps ? drawable - ring.steps : 0; g < entries; ++g) {
    const bool can_be_drawn = g < drawable && anyone_played(ring, e, g);
    set_leaf(tree, ring.leaves, g % ring.capacity, can_be_drawn ? ring.highest[e] : 0.0f);
  }
}

// One item for each replica that gave windows. In order: one that was drawn twice keeps its last error.
WD_FN void prioritize_replica(const ReplayPriorityArgs& args, std::int64_t i) {
  constexpr float kLargest = 0.9f;
  const ReplayRing& ring = args.ring;
  for (std::int64_t window = i * args.per_replica; window < (i + 1) * args.per_replica; ++window) {
    const WindowRows rows = rows_of_window(args.units / ring.length, args.per_block, window, ring.length);
    float largest = 0.0f, sum = 0.0f, count = 0.0f;
    for (std::int64_t row = 0; row < ring.length * ring.num_agents; ++row) {
      const std::int64_t unit = rows.first + row / ring.num_agents * rows.stride,
                         k = unit * ring.num_agents + row % ring.num_agents;
      if (args.mask[k] == 0) continue;
      largest = max(largest, abs(args.error[k]));
      sum += abs(args.error[k]);
      count += 1.0f;
    }
    if (count == 0.0f) continue;
    const float mean = sum / count,
                error = ring.length == 1 ? mean : kLargest * largest + (1.0f - kLargest) * mean;
    const float priority = exp(args.exponent * log(error + args.floor));
    const std::int64_t place = args.entry[rows.first], e = place / ring.capacity;
    set_leaf(tree_of(ring, e), ring.leaves, (place + ring.capacity - ring.burn_in) % ring.capacity, priority);
    ring.highest[e] = max(ring.highest[e], priority);
  }
}

// --- draw --------------------------------------------------------------------------------------------------

WD_FN Philox draw_bits(const ReplayDrawArgs& args, std::uint32_t replica, std::uint32_t k) {
  const auto iteration = static_cast<std::uint64_t>(args.ring.time->iteration);
  return philox({{replica, k | args.policy << 24, static_cast<std::uint32_t>(iteration),
                  static_cast<std::uint32_t>(iteration >> 32) << 16 | static_cast<std::uint32_t>(args.draw)}},
                args.key.key0, args.key.key1);
}

// n-step returns from entry g on: steps until the successor, at most n, and rows of all agents.
WD_FN std::int64_t steps_to_successor(const ReplayRing& ring, std::int64_t e, std::int64_t g) {
  std::int64_t m = 1;
  while (m < ring.n_step && (ring.flags[place_of(ring, e, g + m - 1) * ring.num_agents] & kReplayEnds) == 0)
    ++m;
  return m;
}

// Whether an agent is in the game in the state before entry g. After the end of an episode that is its last
// state, of which the entry before g tells it.
WD_FN bool is_in_game_after(const ReplayRing& ring, std::int64_t e, std::int64_t g, int agent) {
  const std::uint8_t before = ring.flags[place_of(ring, e, g - 1) * ring.num_agents + agent];
  if ((before & kReplayEnds) != 0) return (before & kReplayPlayed) != 0 && (before & kReplayOver) == 0;
  return (ring.flags[place_of(ring, e, g) * ring.num_agents + agent] & kReplayPlayed) != 0;
}

WD_FN void draw_agent(const ReplayDrawArgs& args, std::int64_t e, std::int64_t g, std::int64_t m, int agent,
                      float weight, std::int64_t to) {
  const ReplayRing& ring = args.ring;
  float sum = 0.0f, discount = 1.0f;
  for (std::int64_t k = 0; k < m; ++k) {
    const std::int64_t at = place_of(ring, e, g + k) * ring.num_agents + agent;
    const bool counts = !args.team || (ring.flags[at] & kReplayPlayed) != 0;
    sum += counts ? discount * (args.reward_scale * args.stored_reward[at]) : 0.0f;
    discount *= args.gamma;
    if (args.team || (ring.flags[at] & kReplayOver) == 0) continue;
    discount = 0.0f;
    break;
  }
  if (args.team && !is_in_game_after(ring, e, g + m, agent)) discount = 0.0f;
  const bool played =
      (ring.flags[place_of(ring, e, g) * ring.num_agents + agent] & kReplayPlayed) != 0 && weight > 0.0f;
  args.reward[to] = sum;
  args.discount[to] = discount;
  args.mask[to] = played ? 1 : 0;
  args.weight[to] = played ? weight : 0.0f;
}

// An item is a step that is learned from in one window, and lists every L-th entry of that from it on.
WD_FN void draw_unit(const ReplayDrawArgs& args, std::int64_t item) {
  const ReplayRing& ring = args.ring;
  const std::int64_t window = item / ring.length, step = item % ring.length;
  const auto number = [](std::uint32_t word, std::int64_t n) {  // uniform on 0 .. n - 1, n < 2^32
    return static_cast<std::int64_t>((std::uint64_t{word} * static_cast<std::uint64_t>(n)) >> 32);
  };
  // All ranks skip the same number of replicas.
  const std::int64_t offset = args.every > 1 ? number(draw_bits(args, ~0u, 0).word[0], args.every) : 0;
  const std::int64_t e = window / args.per_replica * args.every + offset, k = window % args.per_replica;
  const Philox bits =
      draw_bits(args, static_cast<std::uint32_t>(args.first_replica + e), static_cast<std::uint32_t>(k));
  const std::int64_t entries = entries_of(ring), drawable = drawable_of(ring, entries);
  // The oldest entry that is still there, and from it on the one with which the window begins.
  const std::int64_t oldest = entries > ring.capacity ? entries - ring.capacity : 0;
  std::int64_t g = oldest + number(bits.word[0], drawable);
  float weight = drawable > 0 ? 1.0f : 0.0f;
  if (ring.tree != nullptr) {
    const float* const tree = tree_of(ring, e);
    const float u = (static_cast<float>(k) + uniform_of(bits.word[0])) / static_cast<float>(args.per_replica);
    const std::int64_t slot = find_leaf(tree, ring.leaves, u);
    const float probability = tree[ring.leaves + slot] / tree[1];
    weight = probability > 0.0f ? exp(-*args.importance * log(static_cast<float>(drawable) * probability))
                                : 0.0f;  // nothing can be drawn here
    if (weight > 0.0f) g = oldest + (slot - oldest % ring.capacity + ring.capacity) % ring.capacity;
  }
  const std::int64_t windows = args.units / ring.length, now = g + ring.burn_in + step,
                     m = steps_to_successor(ring, e, now);
  const WindowRows rows = rows_of_window(windows, args.per_block, window, ring.length);
  const std::int64_t unit = rows.first + step * rows.stride;
  args.entry[unit] = place_of(ring, e, now);
  args.next[unit] = place_of(ring, e, now + m);
  for (int a = 0; a < ring.num_agents; ++a)
    draw_agent(args, e, now, m, a, weight, unit * ring.num_agents + a);
  if (args.window == nullptr) return;
  const WindowRows all = rows_of_window(windows, args.per_block, window, span_of(ring));
  for (std::int64_t t = step; t < span_of(ring); t += ring.length)
    args.window[all.first + t * all.stride] = place_of(ring, e, g + t);
  if (step == 0) args.first[window] = place_of(ring, e, g);
  args.successor[unit] = (now + m - g) * all.stride + window % args.per_block;
}

}  // namespace wd
