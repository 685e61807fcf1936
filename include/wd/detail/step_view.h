// step_view.h: the arguments of one step of all replicas: pointers into the trajectory buffers and to the
// replicas' state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wd/random.h"
#include "wd/spec.h"

namespace wd {

inline constexpr int kMaxRoles = 8;
inline constexpr int kMaxSeats = 32;  // seats of agents with one policy: wd/cast.h
inline constexpr int kMaxStatistics = 16;

// The location of the rows of a seat (wd/cast.h), a run of agents of one role, in the buffers of its policy.
// Pointers point to replica 0 and the seat's first agent.
struct SeatView {
  int first_agent = 0;
  int count = 0;
  int policy_agents = 0;  // agents of the whole policy: number of rows per replica
  // The same for observations: all agents of the replica if observations are a table.
  int observed_agents = 0;
  int action_width = 0;
  // Entries from one agent's row to the next: rows start at multiples of 16 bytes.
  int observation_stride = 0;
  int mask_width = 0;               // from one agent's mask to the next
  int choices = 0;                  // of all heads
  bool paid_after_leaving = false;  // Role::paid_after_leaving
  // [action_width]. Not null if the actions come from a policy: components with finite bounds are then in
  // half-widths from the middle.
  const Bounds* bounds = nullptr;
  const std::int32_t* action = nullptr;      // [E, policy_agents, action_width], row t; floats if continuous
  float* reward = nullptr;                   // [E, policy_agents], row t
  std::uint8_t* agent_terminated = nullptr;  // [E, policy_agents], row t
  // [E, policy_agents], row t + 1: what the agent does there counts. Those in the game do, and with
  // paid_after_leaving those that have left it.
  std::uint8_t* active = nullptr;
  // [E, policy_agents], row t + 1: an episode begins there, or the agent has begun to count; null: not
  // wanted.
  std::uint8_t* restarted = nullptr;
  // [E, observed_agents, observation_stride] of StepView::observation_type, row t + 1
  void* observation = nullptr;
  // [E, policy_agents, mask_width], row t + 1; null if the role has no mask.
  std::uint8_t* action_mask = nullptr;
  // [E, policy_agents, StepView::stream_bytes[k]], row t + 1, of each stream of agents
  void* streams[kMaxStreams] = {};

  // A seat whose buffers hold only its own agents. Pointers are null; observation rows have no padding.
  static SeatView of(const Role& role, int first_agent, int count) {
    SeatView view;
    view.first_agent = first_agent;
    view.count = view.policy_agents = view.observed_agents = count;
    view.action_width = role.action.width();
    view.observation_stride = role.observation_size();
    view.mask_width = view.choices = role.action.choices();
    view.paid_after_leaving = role.paid_after_leaving;
    return view;
  }
};

// The seat of an agent. An index takes one register of a GPU, a pointer two; on a CPU a pointer makes a step
// of tag_gridworld 5 % faster.
WD_FN const SeatView& seat_of(const SeatView* seats, int num_seats, int agent) {
#if defined(__CUDA_ARCH__)
  int r = 0;
  while (r + 1 < num_seats && agent >= seats[r + 1].first_agent) ++r;
  return seats[r];
#else
  const SeatView* const last = seats + (num_seats - 1);
  while (seats != last && agent >= seats[1].first_agent) ++seats;
  return *seats;
#endif
}

// The latest reward of one agent of one replica that was dropped, because the agent was out of the game.
struct DroppedReward {
  float amount = 0.0f;         // 0: none was dropped so far
  std::int32_t step = 0;       // of the episode, in which it was paid
  std::int32_t left = 0;       // the step of that episode in which the agent had left; 0: it had not played
  std::int32_t left_last = 0;  // the same of the present episode
};

enum class FieldType { kFloat, kDouble, kInt, kUnsigned };

// The location of one of Spec::statistics in a replica's block.
struct StatisticView {
  std::uint32_t offset = 0;
  std::int32_t count = 1;  // number of values to average
  FieldType type = FieldType::kFloat;
};

// The arguments of one step of all replicas. Plain data: it is passed to kernels by value.
struct StepView {
  int num_replicas = 0;             // on this worker
  std::uint32_t first_replica = 0;  // global id of replica 0
  int time_limit = 0;
  AtTimeLimit at_time_limit = AtTimeLimit::kTruncates;
  RandomKey key{};        // RandomUse::kEnvironment
  RandomKey start_key{};  // the same, for reset()
  RandomKey pool_key{};   // RandomUse::kPool
  ResetMode reset = ResetMode::kRandom;
  std::uint32_t pool_size = 0;        // kPool: number of starts; kGiven: number of images
  const std::byte* images = nullptr;  // kGiven: [pool_size, block_bytes]
  std::byte* blocks = nullptr;        // [E, block_bytes]
  std::byte* scratch = nullptr;       // CUDA, if shared memory cannot hold a replica: [E, scratch_bytes]
  int num_seats = 0;
  ObservationType observation_type = ObservationType::kFloat32;  // of all seats
  bool as_table = false;                                         // observations are Spec::table
  int num_statistics = 0;
  StatisticView statistics[kMaxStatistics];
  int num_streams = 0;                 // Spec::streams; 0: not wanted
  int stream_bytes[kMaxStreams] = {};  // of a row
  void* streams[kMaxStreams] = {};     // [E, stream_bytes[k]], row t + 1, of each stream of replicas
  float* statistic = nullptr;  // [E, num_statistics], row t: written where an episode ends; null: not wanted
  std::uint8_t* terminated = nullptr;  // [E], row t; null in the very first reset, like everything of row t
  std::uint8_t* truncated = nullptr;   // [E], row t
  std::uint8_t* reset_step = nullptr;  // [E], row t
  DroppedReward* dropped = nullptr;    // [E, num_agents]; null: not wanted
  // [E]: 0 leaves a replica and its rows as they are; null: all are stepped.
  const std::uint8_t* chosen = nullptr;
  // In the order of their agents. Last, so that what every replica reads stays together.
  SeatView seats[kMaxSeats];

  WD_FN bool chooses(int replica) const { return chosen == nullptr || chosen[replica] != 0; }

  // Adds the agents of an environment, a seat per role, each with buffers that hold only its own agents.
  void add_roles(const Spec& spec) {
    time_limit = spec.time_limit;
    at_time_limit = spec.at_time_limit;
    int agent = 0;
    for (const Role& role : spec.roles) {
      seats[num_seats++] = SeatView::of(role, agent, role.count);
      agent += role.count;
    }
  }
};

}  // namespace wd
