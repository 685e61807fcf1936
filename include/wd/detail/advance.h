// advance.h: one step of one replica, the same code on every device: reset or step, flags, rewards,
// observation rows.
#pragma once

#include <utility>

#include "wd/detail/apart.h"
#include "wd/env.h"
#include "wd/environment.h"

namespace wd::detail {

// The pointers of a State struct as offsets, which are passed to kernels by value.
template <typename State>
struct StateSlots {
  static_assert(sizeof(State) % sizeof(void*) == 0);
  static constexpr int kCount = sizeof(State) / sizeof(void*);
  std::uint32_t offset[kCount];
};

// Returns a State whose fields point into the given block and scratch memory.
template <typename State>
WD_FN State bind_state(const StateSlots<State>& slots, std::byte* block, std::byte* scratch) {
  State state;
  const auto bind = [&](int k) {
    const std::uint32_t offset = slots.offset[k];
    std::byte* const field =
        (offset & kScratchSlot) != 0 ? scratch + (offset & ~kScratchSlot) : block + offset;
    std::memcpy(reinterpret_cast<std::byte*>(&state) + k * sizeof(field), static_cast<const void*>(&field),
                sizeof(field));
  };
  // A fold instead of a loop: with constant indices the pointers stay in registers.
  [&]<int... k>(std::integer_sequence<int, k...>) {
    (bind(k), ...);
  }(std::make_integer_sequence<int, StateSlots<State>::kCount>());
  return state;
}

// The executor's own working memory for one replica: actions by head, so that loops over agents read
// consecutive words; rewards; flags.
struct Staging {
  std::int32_t* actions;     // [action_width, num_agents]
  float* rewards;            // [num_agents]
  std::int32_t* counted;     // [num_agents]: whether the agent counted before the step
  std::int32_t* terminated;  // [1]

  WD_FN static std::uint32_t bytes(int num_agents, int action_width) {
    return (static_cast<std::uint32_t>(num_agents) * (action_width + 2) + 1) * 4;
  }
  WD_FN static Staging at(std::byte* memory, int num_agents, int action_width) {
    auto* const words = reinterpret_cast<std::int32_t*>(memory);
    return {words, reinterpret_cast<float*>(words + num_agents * action_width),
            words + num_agents * (action_width + 1), words + num_agents * (action_width + 2)};
  }
};

// Sizes that advance() needs in addition to the view.
struct ReplicaShape {
  std::uint32_t block_bytes, staging_offset, counting_offset;
  int num_agents, action_width;
};

// Tells the team which function of the environment runs next, if it is a team that checks environments.
template <typename Team>
WD_FN void enter(Team& team, EnvFunction function) {
  if constexpr (requires { team.enter(function); }) team.enter(function);
}

// The actions of the step. A team that checks environments may hold them in separate memory.
template <typename Team>
WD_FN Actions actions_of(Team& team, const Staging& staging, int num_agents) {
  if constexpr (requires { team.apart(); }) {
    if (const ApartMemory* const apart = team.apart())
      return Actions(apart->discrete, apart->continuous, apart->action_pitch);
  }
  return Actions(staging.actions, num_agents);
}

template <typename Env>
WD_FN bool in_game(const typename Env::Params& params, const typename Env::State& state, int agent) {
  if constexpr (requires { Env::in_game(params, state, agent); }) {
    return Env::in_game(params, state, agent);
  } else {
    return true;
  }
}

// StateLayout::counting of a replica; null if no role needs it.
WD_FN std::int32_t* counting(const ReplicaShape& shape, std::byte* block) {
  return shape.counting_offset == 0 ? nullptr
                                    : reinterpret_cast<std::int32_t*>(block + shape.counting_offset);
}

template <typename Env, typename Team>
WD_FN void derive(Team& team, const typename Env::Params& params, typename Env::State& state) {
  if constexpr (requires { Env::derive(team, params, state); }) Env::derive(team, params, state);
}

// Sets the fields of a new episode: drawn by the environment, or copied from a given image.
template <typename Env, typename Team>
WD_FN void start_episode(Team& team, const typename Env::Params& params, typename Env::State& state,
                         const StepView& view, const ReplicaShape& shape, std::byte* block,
                         std::uint32_t replica, std::uint32_t episode) {
  const auto drawn = [&] {
    const Philox bits = philox({{replica, episode, 0, 0}}, view.pool_key.key0, view.pool_key.key1);
    return static_cast<std::uint32_t>((std::uint64_t{bits.word[0]} * view.pool_size) >> 32);
  };
  if (view.reset == ResetMode::kGiven) {
    const auto* const image =
        reinterpret_cast<const std::int32_t*>(view.images + std::size_t{drawn()} * shape.block_bytes);
    auto* const words = reinterpret_cast<std::int32_t*>(block);
    constexpr int kHeader = sizeof(ReplicaHeader) / 4;
    team.each(static_cast<int>(shape.block_bytes / 4) - kHeader,
              [&](int i) { store_word(words, kHeader + i, load_word<std::int32_t>(image, kHeader + i)); });
    return;
  }
  const std::uint32_t start = view.reset == ResetMode::kRandom ? replica
                              : view.reset == ResetMode::kPool ? drawn()
                                                               : 0u;
  enter(team, EnvFunction::kReset);
  Env::reset(team, params, state,
             Random(view.start_key, start, view.reset == ResetMode::kRandom ? episode : 0u, 0));
  enter(team, EnvFunction::kDerive);
  derive<Env>(team, params, state);
}

// Converts a number of half-widths from the middle to a value, clamped to the bounds. Without two finite
// bounds there is no middle: the number itself is clamped at the finite side.
WD_FN float within_bounds(float half_widths, const Bounds& bounds) {
  const float low = bounds.low, high = bounds.high;
  if (!(0.5f * high - 0.5f * low < __builtin_inff()))
    return half_widths < low ? low : half_widths > high ? high : half_widths;
  return clamp((0.5f * low + 0.5f * high) + half_widths * (0.5f * high - 0.5f * low), low, high);
}

// Gathers the replica's actions from the policies' buffers and clears what the step accumulates.
template <typename Env, typename Team>
WD_FN void stage(Team& team, const typename Env::Params& params, const typename Env::State& state,
                 const StepView& view, const ReplicaShape& shape, const Staging& staging, int replica,
                 const std::int32_t* counting) {
  for (int r = 0; r < view.num_seats; ++r) {
    const SeatView& seat = view.seats[r];
    const std::int32_t* const rows =
        seat.action + static_cast<std::int64_t>(replica) * seat.policy_agents * seat.action_width;
    if (seat.bounds != nullptr) {
      team.each_pair(seat.action_width, seat.count, [&](int k, int i) {
        const auto action = load_word<float>(rows, i * seat.action_width + k);
        store_word(staging.actions, k * shape.num_agents + seat.first_agent + i,
                   within_bounds(action, seat.bounds[k]));
      });
      continue;
    }
    team.each_pair(seat.action_width, seat.count, [&](int k, int i) {
      store_word(staging.actions, k * shape.num_agents + seat.first_agent + i,
                 load_word<std::int32_t>(rows, i * seat.action_width + k));
    });
  }
  enter(team, EnvFunction::kInGame);
  team.each(shape.num_agents, [&](int i) {
    staging.rewards[i] = 0.0f;
    const bool goes_on = counting != nullptr && counting[i] != 0;
    staging.counted[i] = goes_on || in_game<Env>(params, state, i) ? 1 : 0;
    if (i == 0) *staging.terminated = 0;
  });
}

// Whether a reward is dropped: the agent did not count before the step, so that no row is there to learn it.
// NaN and infinity are passed on, so that they are reported.
WD_FN bool is_dropped(float reward, bool counted) {
  return !counted && reward != 0.0f && abs(reward) < __builtin_inff();
}

// Notes the step in which an agent left, and a reward of it that is dropped.
WD_FN void note(DroppedReward& latest, int t, bool leaves, float dropped) {
  if (t == 0) latest.left_last = 0;
  if (leaves) latest.left_last = t;
  if (dropped == 0.0f) return;
  latest.amount = dropped;
  latest.step = t;
  latest.left = latest.left_last;
}

// Writes the per-agent rows: rewards of the step, which agents left in it, and which count now. All that is
// reported and learned follows from these rows, so this is where rewards are dropped.
template <typename Env, typename Team>
WD_FN void scatter(Team& team, const typename Env::Params& params, const typename Env::State& state,
                   const StepView& view, const ReplicaShape& shape, const Staging& staging, int replica,
                   std::int32_t* counting) {
  enter(team, EnvFunction::kInGame);
  const int t = team.t();
  const bool resetting = t == 0;
  for (int r = 0; r < view.num_seats; ++r) {
    const SeatView& seat = view.seats[r];
    const std::int64_t row = static_cast<std::int64_t>(replica) * seat.policy_agents;
    team.each(seat.count, [&](int i) {
      const int agent = seat.first_agent + i;
      const bool before = !resetting && staging.counted[agent] != 0;
      const bool now = in_game<Env>(params, state, agent) || (seat.paid_after_leaving && before);
      seat.active[row + i] = now ? 1 : 0;
      if (counting != nullptr) counting[agent] = seat.paid_after_leaving && now ? 1 : 0;
      if (seat.restarted != nullptr) seat.restarted[row + i] = resetting || (now && !before) ? 1 : 0;
      if (seat.reward == nullptr) return;
      const float reward = resetting ? 0.0f : staging.rewards[agent];
      const bool dropped = is_dropped(reward, before);
      seat.reward[row + i] = dropped ? 0.0f : reward;
      seat.agent_terminated[row + i] = before && !now ? 1 : 0;
      if (view.dropped == nullptr) return;
      note(view.dropped[static_cast<std::int64_t>(replica) * shape.num_agents + agent], t, before && !now,
           dropped ? reward : 0.0f);
    });
  }
}

// Allows every choice in a row that does not count and has no legal one: something is drawn in every row.
template <typename Team>
WD_FN void open_masks(Team& team, const StepView& view, int replica) {
  for (int r = 0; r < view.num_seats; ++r) {
    const SeatView& seat = view.seats[r];
    if (seat.action_mask == nullptr) continue;
    const std::int64_t row = static_cast<std::int64_t>(replica) * seat.policy_agents;
    team.each(seat.count, [&](int i) {
      if (seat.active[row + i] != 0) return;
      std::uint8_t* const legal = seat.action_mask + (row + i) * seat.mask_width;
      bool any = false;
      for (int k = 0; k < seat.choices; ++k) any = any || legal[k] != 0;
      for (int k = 0; k < seat.choices && !any; ++k) legal[k] = 1;
    });
  }
}

WD_FN float number_at(const std::byte* field, FieldType type, int i) {
  switch (type) {
    case FieldType::kFloat:
      return reinterpret_cast<const float*>(field)[i];
    case FieldType::kDouble:
      return static_cast<float>(reinterpret_cast<const double*>(field)[i]);
    case FieldType::kInt:
      return static_cast<float>(reinterpret_cast<const std::int32_t*>(field)[i]);
    case FieldType::kUnsigned:
      return static_cast<float>(reinterpret_cast<const std::uint32_t*>(field)[i]);
  }
  return 0.0f;
}

// Writes the environment's own statistics of an episode that has just ended.
template <typename Team>
WD_FN void report_statistics(Team& team, const StepView& view, const std::byte* block, int replica) {
  for (int k = 0; k < view.num_statistics; ++k) {
    const StatisticView& statistic = view.statistics[k];
    const std::byte* const field = block + statistic.offset;
    const float sum = team.sum(statistic.count, [&](int i) { return number_at(field, statistic.type, i); });
    team.once([&] {
      view.statistic[static_cast<std::int64_t>(replica) * view.num_statistics + k] =
          sum / static_cast<float>(statistic.count);
    });
  }
}

// Inlines the environment and the team, once per observation type, so that the type is not tested for every
// entry.
template <typename Env, ObservationType kType, typename Team>
WD_FLATTEN WD_FN void observe(Team& team, const typename Env::Params& params,
                              const typename Env::State& state, const StepView& view, int replica,
                              void* rows) {
  enter(team, EnvFunction::kObserve);
  Env::observe(team, params, state,
               Observations(view.seats, view.num_seats, replica, kType, view.as_table, rows));
}

// Advances one replica by one step. `team.t()` is 0 if the replica resets, else the number of the step.
// Observation rows go to `rows` (see class Observations) if it is not null.
template <typename Env, typename Team>
WD_INLINE WD_FN void advance(Team& team, const typename Env::Params& params, const typename Env::State& bound,
                             const StepView& view, const ReplicaShape& shape, const Staging& staging,
                             int replica, std::byte* block, void* rows = nullptr) {
  auto* const header = reinterpret_cast<ReplicaHeader*>(block);
  typename Env::State state = bound;  // a local copy, whose pointers stay in registers
  const std::uint32_t id = view.first_replica + static_cast<std::uint32_t>(replica);
  const bool resetting = team.t() == 0;
  const std::uint32_t episode = header->episode + (resetting ? 1u : 0u);
  std::int32_t* const counts = counting(shape, block);
  bool terminated = false;
  if (resetting) {
    start_episode<Env>(team, params, state, view, shape, block, id, episode);
  } else {
    stage<Env>(team, params, state, view, shape, staging, replica, counts);
    Outcome outcome(staging.rewards, staging.terminated);
    enter(team, EnvFunction::kStep);
    Env::step(team, params, state, actions_of(team, staging, shape.num_agents),
              Random(view.key, id, episode, static_cast<std::uint32_t>(team.t())), outcome);
    terminated = *staging.terminated != 0;
  }
  const bool limit = !resetting && team.t() >= view.time_limit;
  terminated = terminated || (limit && view.at_time_limit == AtTimeLimit::kTerminates);
  const bool cut = !resetting && episode == 0 && header->first_steps > 0 && team.t() >= header->first_steps;
  const bool truncated = (limit || cut) && !terminated;
  scatter<Env>(team, params, state, view, shape, staging, replica, counts);
  if (view.observation_type == ObservationType::kFloat32) {
    observe<Env, ObservationType::kFloat32>(team, params, state, view, replica, rows);
  } else {
    observe<Env, ObservationType::kBfloat16>(team, params, state, view, replica, rows);
  }
  open_masks(team, view, replica);
  if constexpr (requires { Env::streams(team, params, state, Streams(view, replica)); }) {
    enter(team, EnvFunction::kStreams);
    if (view.num_streams > 0) Env::streams(team, params, state, Streams(view, replica));
  }
  if ((terminated || truncated) && view.statistic != nullptr) report_statistics(team, view, block, replica);
  team.once([&] {
    header->t = team.t();
    header->episode = episode;
    header->reset_pending = terminated || truncated ? 1 : 0;
    if (view.terminated == nullptr) return;
    view.terminated[replica] = terminated ? 1 : 0;
    view.truncated[replica] = truncated ? 1 : 0;
    view.reset_step[replica] = resetting ? 1 : 0;
  });
}

// The same for a replica whose fields are contiguous in `block` and `scratch`.
template <typename Env, typename Team>
WD_FN void advance(Team& team, const typename Env::Params& params,
                   const StateSlots<typename Env::State>& slots, const StepView& view,
                   const ReplicaShape& shape, int replica, std::byte* block, std::byte* scratch,
                   void* rows = nullptr) {
  const auto state = bind_state<typename Env::State>(slots, block, scratch);
  const Staging staging = Staging::at(scratch + shape.staging_offset, shape.num_agents, shape.action_width);
  advance<Env>(team, params, state, view, shape, staging, replica, block, rows);
}

// The number of the replica's next step; 0 is a reset.
WD_FN int next_t(const ReplicaHeader& header) { return header.reset_pending != 0 ? 0 : header.t + 1; }

}  // namespace wd::detail
