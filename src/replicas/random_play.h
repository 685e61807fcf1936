// random_play.h: a policy that draws among the legal actions.
#pragma once

#include <cstdint>

#include "kernels/queue.h"
#include "wd/trajectory.h"

namespace wd {

// Which draws: every (seed, policy, step) has its own.
struct RandomPlay {
  std::uint64_t seed = 1;
  std::uint32_t policy = 0;
  std::uint64_t step = 0;
};

// Writes row `action_row` of actions; what is legal stands in row `mask_row` of the action masks. Enqueues.
void play_at_random(Queue queue, PolicyBuffers& buffers, int mask_row, int action_row,
                    const RandomPlay& play);

}  // namespace wd
