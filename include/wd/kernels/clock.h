// clock.h: training progress, in the memory of the device that trains: kernels read it there, so that the
// same launches, captured once, run the next iteration.
#pragma once

#include "wd/queue.h"

namespace wd {

struct TrainingTime {
  std::int64_t iteration = 0;  // completed iterations
  std::int64_t env_steps = 0;  // of the whole job
};

struct AdvanceArgs {
  TrainingTime* time = nullptr;  // on the device
  std::int64_t env_steps = 0;    // of the completed iteration
};

// Enqueues.
WD_DECLARE_KERNEL(advance_clock, AdvanceArgs)

// Coefficients that are piecewise linear in env_steps (Schedule, wd/params.h).
struct SchedulesArgs {
  std::int64_t count = 0;          // schedules
  const double* points = nullptr;  // [n, 2]: step, value; one schedule after another
  // [count + 1]: first point of each schedule, which has at least one, and the end.
  const std::int64_t* first = nullptr;
  const TrainingTime* time = nullptr;  // on the device
  double* value = nullptr;             // [count]
  float* rounded = nullptr;            // [count]
};

// Enqueues.
WD_DECLARE_KERNEL(schedules, SchedulesArgs)

}  // namespace wd
