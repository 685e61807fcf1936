// random_play.h: a policy that draws at random among the legal actions.
#pragma once

#include <cstdint>

#include "wd/kernels/clock.h"
#include "wd/queue.h"
#include "wd/trajectory.h"

namespace wd {

// Selects the random numbers: every (seed, policy, step, replica) has different ones.
struct RandomPlay {
  std::uint64_t seed = 1;
  std::uint32_t policy = 0;
  std::uint64_t step = 0;
  const TrainingTime* time = nullptr;  // as of Player::Draw
  std::int64_t rollout_steps = 0;
  std::uint32_t first_replica = 0;
};

// Writes row `action_row` of the actions; row `mask_row` of the action masks says what is legal. Enqueues.
void play_at_random(Queue queue, PolicyBuffers& buffers, int mask_row, int action_row,
                    const RandomPlay& play);

}  // namespace wd
