// episodes.h: returns and lengths of the episodes that ended in a rollout, kept on across rollouts.
#pragma once

#include "kernels/queue.h"

namespace wd {

// The episodic return of a policy is the mean over its agents of the undiscounted sum of rewards.
struct EpisodesArgs {
  int steps = 0, num_envs = 0, num_agents = 0;  // T, E, A of the policy
  const float* reward = nullptr;                // [T, E, A]
  const std::uint8_t* terminated = nullptr;     // [T, E]
  const std::uint8_t* truncated = nullptr;      // [T, E]
  const std::uint8_t* reset_step = nullptr;     // [T, E]
  float* running_return = nullptr;              // [E]: of the episode under way
  std::int32_t* running_length = nullptr;       // [E]
  float* finished_return = nullptr;             // [T, E]: where an episode ended; elsewhere 0
  std::int32_t* finished_length = nullptr;      // [T, E]: its steps; 0 where none ended
};

// Enqueues.
void episodes(Queue queue, const EpisodesArgs& args);

namespace cuda {
void episodes(void* stream, const EpisodesArgs& args);
}

}  // namespace wd
