// returns.h: advantages and value targets of one policy's rollout, one pass backwards in time.
#pragma once

#include "wd/queue.h"

namespace wd {

enum class ReturnMethod : std::int32_t { kGae, kNStep, kMonteCarlo };

// docs/architecture.md defines the flags of a transition. Outputs are 0 where the mask is 0. The mask is
// that of kernels/transitions.h.
//
// In a game with turns (Spec::zero_sum_turns) whose agents are both the policy's, an agent that waits has the
// reward and the value of the one on turn, with the other sign. So the value of what follows a move has the
// other sign if the turn changes, and the target of who waits is minus that of who moves. Where another
// player has the seat of who is on turn, whose row then does not count, an agent that waits has its own.
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
  const std::uint8_t* waits = nullptr;             // entry `wait` of action masks [T + 1, E, 2, choices]
  int choices = 0;                                 // with it; without turns it is null
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
