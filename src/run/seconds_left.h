// seconds_left.h: the ETA of the progress line and of `status`.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace wd::run {

// Steps and seconds of the whole training, including the parts before it was resumed.
struct TimeLimits {
  double total_steps = 0.0, max_seconds = 0.0;  // 0: no limit
};

// Seconds until the nearer of the two limits, at the mean speed so far, which includes evaluations and
// checkpoints; NaN if there is no limit.
inline double seconds_left(double env_steps, double wall_s, TimeLimits limits) {
  double left = std::numeric_limits<double>::infinity();
  if (limits.max_seconds > 0.0 && wall_s >= 0.0) left = limits.max_seconds - wall_s;
  if (limits.total_steps > 0.0 && env_steps > 0.0 && wall_s >= 0.0)
    left = std::min(left, (limits.total_steps - env_steps) * wall_s / env_steps);
  return std::isinf(left) ? std::nan("") : std::max(left, 0.0);
}

}  // namespace wd::run
