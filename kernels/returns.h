// returns.h: advantages and value targets of one policy's rollout, one pass backwards in time.
#pragma once

#include "wd/queue.h"

namespace wd {

enum class ReturnMethod : std::int32_t { kGae, kNStep, kMonteCarlo };

// docs/architecture.md defines the flags of a transition. Outputs are 0 where the mask is 0. The mask is
// that of kernels/transitions.h.
struct ReturnsArgs {
  ReturnMethod method = ReturnMethod::kGae;
  int steps = 0, num_envs = 0, num_agents = 0;  // T, E, A of the policy
  float gamma = 0.99f;
  float lambda = 1.0f;                             // of GAE (Schulman et al. 2016, eq. 16)
  float reward_scale = 1.0f;                       // rewards are multiplied by it
  const float* reward_deviation = nullptr;         // [1], on the device: and divided by this; or null
  int time_limit = 1 << 24;                        // max steps per episode; for Monte Carlo
  int n_step = 1;                                  // of n-step returns (Sutton and Barto 2018, eq. 7.1)
  const float* reward = nullptr;                   // [T, E, A]
  const float* value = nullptr;                    // [T + 1, E, A]
  const std::uint8_t* agent_terminated = nullptr;  // [T, E, A]
  const std::uint8_t* terminated = nullptr;        // [T, E]
  const std::uint8_t* truncated = nullptr;         // [T, E]
  const std::uint8_t* reset_step = nullptr;        // [T, E]
  float* advantage = nullptr;                      // [T, E, A]
  float* target = nullptr;                         // [T, E, A]: advantage + value
  std::uint8_t* mask = nullptr;                    // [T, E, A]: transitions(), which Monte Carlo narrows
};

// Enqueues. Reads and writes only the arrays of `args`.
// kMonteCarlo keeps in the mask only transitions of episodes that are certain to end within the rollout,
// by the time limit at the latest. The others have no bootstrap value, and keeping those that happen to
// end would be a selection by the outcome of the actions. If the rollout is at least time_limit long, an
// episode in progress at its start is kept.
WD_DECLARE_KERNEL(returns, ReturnsArgs)

// The discounted sums of rewards so far, R_t = gamma R_{t-1} + r_t, of every agent since it began to play.
struct RewardSumsArgs {
  ReturnsArgs rollout{};  // `target` is the output: R_t, or 0 where the mask is 0
  float* sums = nullptr;  // [E, A]: R before the rollout becomes that before the next one
};

// Enqueues.
WD_DECLARE_KERNEL(reward_sums, RewardSumsArgs)

}  // namespace wd
