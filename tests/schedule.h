// schedule.h: the value of a schedule by other code than the kernel's.
#pragma once

#include "wd/params.h"

namespace wd {

// Value after `step` environment steps.
inline double value_at(const Schedule& schedule, double step) {
  const std::vector<Schedule::Point>& points = schedule.points;
  if (points.empty()) return 0.0;
  if (step <= points.front().step) return points.front().value;
  for (std::size_t i = 1; i < points.size(); ++i) {
    const Schedule::Point &a = points[i - 1], &b = points[i];
    if (step < b.step) return a.value + (b.value - a.value) * ((step - a.step) / (b.step - a.step));
  }
  return points.back().value;
}

}  // namespace wd
