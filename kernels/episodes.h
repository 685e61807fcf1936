// episodes.h: returns and lengths of the episodes that ended in a rollout; unfinished episodes continue in
// the next.
#pragma once

#include "kernels/who_plays.h"
#include "wd/env.h"
#include "wd/kernels/clock.h"
#include "wd/queue.h"

namespace wd {

// The episodic return of a policy is the mean over its agents, for which it acts itself, of the undiscounted
// sum of rewards.
struct EpisodesArgs {
  int steps = 0, num_envs = 0, num_agents = 0;  // T, E, A of the policy
  const float* reward = nullptr;                // [T, E, A]
  const std::uint8_t* terminated = nullptr;     // [T, E]
  const std::uint8_t* truncated = nullptr;      // [T, E]
  const std::uint8_t* reset_step = nullptr;     // [T, E]
  float* running_return = nullptr;              // [E]: of the current episode
  // [E]: of the current episode; negative, starting at kUncounted, if the episode does not count.
  std::int32_t* running_length = nullptr;
  // [T, E]: if an episode that counts ended, NaN if opponents acted for all agents; otherwise 0
  float* finished_return = nullptr;
  std::int32_t* finished_length = nullptr;  // [T, E]: number of its steps; 0 if none ended
  WhoPlays who{};                           // [T, E]
};

// Initial length of an episode that does not count: no episode is long enough to reach 0 from here.
inline constexpr std::int32_t kUncounted = -(1 << 30);

// Enqueues.
WD_DECLARE_KERNEL(episodes, EpisodesArgs)

// The record of finished episodes: one row of doubles per episode, ordered by step and then by replica. It
// may be read after several rollouts.
struct AppendArgs {
  int steps = 0, num_envs = 0;                   // T, E of this rank
  std::int64_t first_replica = 0, all_envs = 0;  // first one of this rank; replicas of the whole job
  const TrainingTime* time = nullptr;            // on the device
  // Steps of a whole rollout, which the clock's iterations count.
  std::int64_t rollout_steps = 0;
  const std::int32_t* finished_length = nullptr;  // [T, E]
  int num_policies = 0, num_statistics = 0;
  const float* finished_return[kMaxSeats] = {};  // [T, E] each
  const float* statistics = nullptr;             // [T, E, num_statistics]
  std::int64_t* offset = nullptr;                // [episode_chunks(T E)], working memory
  std::int64_t* count = nullptr;                 // number of rows so far
  std::int64_t capacity = 0;                     // max rows; further episodes are left out
  // [capacity, 2 + policies + statistics]: position in time, length, returns, statistics.
  double* row = nullptr;
};

inline constexpr std::int64_t kEpisodeChunk = 256;
constexpr std::int64_t episode_chunks(std::int64_t n) { return (n + kEpisodeChunk - 1) / kEpisodeChunk; }

// Enqueues.
WD_DECLARE_KERNEL(append_episodes, AppendArgs)

}  // namespace wd
