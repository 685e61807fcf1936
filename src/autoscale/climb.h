// climb.h: finds the largest value that fits: halves until it fits, doubles until it does not, then bisects.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "src/autoscale/trials.h"

namespace wd::scaling {

// One of the two numbers (replicas or rollout steps) within its bounds. The other number is fixed at its
// value in `at`.
struct Axis {
  std::int64_t least = 1, most = 1, step = 1;  // both bounds are multiples of step
  std::int64_t Probe::* number = &Probe::num_envs;
  Probe at;
  std::string max_from = {};  // name of the setting that determines `most`, for messages

  Probe probe(std::int64_t value) const {
    Probe moved = at;
    moved.*number = value;
    return moved;
  }
  bool holds(const Probe& other) const { return probe(other.*number) == other; }
  double range() const { return static_cast<double>(most) / static_cast<double>(least); }
};

// The smallest positive multiple of `step` that is not below `value`.
inline std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return std::max<std::int64_t>((value + step - 1) / step, 1) * step;
}

// The smallest T that the search may try.
std::int64_t min_steps(const SearchOptions& options);
// replicas_axis: all numbers of replicas that the limits allow with rollouts of T steps; least > most if
// there are none. rollout_axis: all T that the limits allow with this number of replicas.
Axis replicas_axis(const SearchOptions& options, std::int64_t rollout_steps);
Axis rollout_axis(const SearchOptions& options, std::int64_t replicas);

struct Climb {
  std::optional<std::int64_t> found;
  std::string ended;  // why the climb stopped
  bool at_most = false;
};

// Climbs from `start`. For speed, a doubling that gains less than 2 % also ends the climb, and `found` is the
// smallest fitting value within 2 % of the fastest.
Climb climb(Trials& trials, const Axis& axis, std::int64_t start);

}  // namespace wd::scaling
