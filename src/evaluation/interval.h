// interval.h: a mean and how far it can be trusted.
#pragma once

#include <span>

namespace wd {

// Student's 95 % interval of the mean. NaN bounds for fewer than two values, NaN throughout for none.
struct Interval {
  double mean, low, high;
};

Interval mean_interval(std::span<const double> values);

// The 97.5 % quantile of Student's t distribution; relative error below 1e-4.
double student_quantile(int degrees_of_freedom);

}  // namespace wd
