// seconds_left.h: the time left, of the progress line and of `status`.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace wd::run {

// Steps and seconds of the whole training, including the parts before it was resumed.
struct TimeLimits {
  double total_steps = 0.0, max_seconds = 0.0;  // 0: no limit
};

struct TimeLeft {
  double seconds = 0.0;  // NaN if there is no limit
  bool by_time = false;  // max_seconds ends training, before it has done its steps
};

// The time until the nearer of the two limits, at the mean speed so far, which includes evaluations and
// checkpoints.
inline TimeLeft time_left(double env_steps, double wall_s, TimeLimits limits) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const bool timed = limits.max_seconds > 0.0 && wall_s >= 0.0;
  const bool counted = limits.total_steps > 0.0 && env_steps > 0.0 && wall_s >= 0.0;
  const double by_time = timed ? limits.max_seconds - wall_s : kNever;
  const double by_steps = counted ? (limits.total_steps - env_steps) * wall_s / env_steps : kNever;
  if (!timed && !counted) return {std::nan(""), false};
  return {std::max(std::min(by_time, by_steps), 0.0), by_time < by_steps};
}

}  // namespace wd::run
