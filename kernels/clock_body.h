// clock_body.h: advances the clock, and evaluates a coefficient at the current time, the same code on both
// devices.
#pragma once

#include "wd/kernels/clock.h"
#include "wd/math.h"

namespace wd {

WD_FN void advance_clock_once(const AdvanceArgs& args, std::int64_t) {
  ++args.time->iteration;
  args.time->env_steps += args.env_steps;
}

// Linear between points, constant before the first and after the last.
WD_FN double interpolate(const double* points, std::int64_t n, double step) {
  if (step <= points[0]) return points[1];
  for (std::int64_t i = 1; i < n; ++i) {
    const double *const a = points + 2 * (i - 1), *const b = a + 2;
    if (step < b[0]) return a[1] + (b[1] - a[1]) * ((step - a[0]) / (b[0] - a[0]));
  }
  return points[2 * n - 1];
}

WD_FN void evaluate_schedule(const SchedulesArgs& args, std::int64_t k) {
  const std::int64_t first = args.first[k];
  const double value = interpolate(args.points + 2 * first, args.first[k + 1] - first,
                                   static_cast<double>(args.time->env_steps));
  args.value[k] = value;
  args.rounded[k] = static_cast<float>(value);
}

}  // namespace wd
