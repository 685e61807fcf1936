// schedule.cpp: the value of a coefficient at a step of training.
#include "wd/params.h"

namespace wd {

double Schedule::at(double step) const {
  if (points.empty()) return 0.0;
  if (step <= points.front().step) return points.front().value;
  for (std::size_t i = 1; i < points.size(); ++i) {
    const Point &a = points[i - 1], &b = points[i];
    if (step < b.step) return a.value + (b.value - a.value) * ((step - a.step) / (b.step - a.step));
  }
  return points.back().value;
}

}  // namespace wd
