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
  RandomKey random{};                         // RandomUse::kRandomPlay
  std::uint32_t policy = 0;                   // each has its own draws
  std::uint64_t step = 0;                     // each has its own draws
  const TrainingTime* time = nullptr;         // if not null, steps are counted from iteration * rollout_steps
  std::int64_t rollout_steps = 0;
  std::uint32_t first_row = 0;     // number of row 0 among those of all workers
  std::int32_t* action = nullptr;  // [rows, heads or components]; floats if continuous
};

// Arguments for this action space and the draws of one step of a policy; the caller sets rows, bounds, mask,
// and action. Throws std::runtime_error for more than kMaxHeads heads.
RandomActionsArgs random_actions_of(const ActionSpace& space, std::uint64_t seed, std::uint32_t policy,
                                    std::uint64_t step);

// Enqueues.
WD_DECLARE_KERNEL(random_actions, RandomActionsArgs)

}  // namespace wd
