// climb.h: the largest number that fits: halved until it does, doubled until it does not, then bisected.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "src/autoscale/trials.h"

namespace wd::scaling {

// One of the two numbers, between bounds; the other one is as in `at`.
struct Axis {
  std::int64_t least = 1, most = 1, step = 1;  // multiples of step
  std::int64_t Probe::* number = &Probe::num_envs;
  Probe at;
  std::string max_from = {};  // the setting that `most` follows from, for people

  Probe probe(std::int64_t value) const {
    Probe moved = at;
    moved.*number = value;
    return moved;
  }
  bool holds(const Probe& other) const { return probe(other.*number) == other; }
  double range() const { return static_cast<double>(most) / static_cast<double>(least); }
};

// The least multiple of `step`, above 0, that is no less than `value`.
inline std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return std::max<std::int64_t>((value + step - 1) / step, 1) * step;
}

// The least T that may be looked at.
std::int64_t min_steps(const SearchOptions& options);
// All numbers of replicas that the limits allow with rollouts of T steps; none where least > most. All T with
// so many replicas.
Axis replicas_axis(const SearchOptions& options, std::int64_t rollout_steps);
Axis rollout_axis(const SearchOptions& options, std::int64_t replicas);

struct Climb {
  std::optional<std::int64_t> found;
  std::string ended;  // why it went no further
  bool at_most = false;
};

// From `start`. For speed, a doubling that gains under 2 % ends it too, and of what fits the smallest is
// found that is within 2 % of the fastest.
Climb climb(Trials& trials, const Axis& axis, std::int64_t start);

}  // namespace wd::scaling
