// random_actions.h: legal actions drawn uniformly by a very cheap generator, for measurements, checks, and
// opponents that play at random.
#pragma once

#include "kernels/sample.h"
#include "wd/queue.h"
#include "wd/spec.h"

namespace wd {

// Rows are (replica, agent) pairs of one step, E * A of them.
struct RandomActionsArgs {
  std::int64_t rows = 0;
  int num_heads = 0;  // 0: continuous
  int head_size[kMaxHeads] = {};
  int components = 0;                         // components of a continuous action
  const Bounds* bounds = nullptr;             // [components]
  const std::uint8_t* action_mask = nullptr;  // [rows, choices of all heads], or null
  std::uint32_t key[2] = {};                  // made by random_actions_key()
  std::int32_t* action = nullptr;             // [rows, heads or components]; floats if continuous
};

// Returns arguments for this action space; the caller sets rows, bounds, mask, key and action. Throws
// std::runtime_error for more than kMaxHeads heads.
RandomActionsArgs random_actions_of(const ActionSpace& space);

// Sets the key for the draws of one step of one policy; it is different for every (seed, policy, step).
void random_actions_key(std::uint64_t seed, std::uint32_t policy, std::uint64_t step,
                        RandomActionsArgs& args);

// Enqueues.
WD_DECLARE_KERNEL(random_actions, RandomActionsArgs)

}  // namespace wd
