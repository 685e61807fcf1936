// transitions.h: which rows of one policy's rollout are transitions.
#pragma once

#include "kernels/who_plays.h"
#include "wd/queue.h"

namespace wd {

struct TransitionsArgs {
  std::int64_t rows = 0;                     // T E
  std::int64_t played = 0;                   // rows of the current rollout: its length times E
  int num_agents = 0;                        // A of the policy
  const std::uint8_t* active = nullptr;      // [T + 1, E, A]
  const std::uint8_t* reset_step = nullptr;  // [T, E]
  std::uint8_t* mask = nullptr;              // [T, E, A]
  WhoPlays who{};                            // [T + 1, E]
};

// Sets mask = active and not reset_step (docs/architecture.md), and 0 for agents of opponents, in the rows of
// the current rollout, and 0 in the rows after it. Enqueues.
WD_DECLARE_KERNEL(transitions, TransitionsArgs)

}  // namespace wd
