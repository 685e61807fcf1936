// interval.h: a mean and how far it can be trusted.
#pragma once

#include <span>

namespace wd {

// The mean, Student's 95 % interval of it, and the standard deviation of the values (of a sample: n - 1). NaN
// but for the mean for fewer than two values, NaN throughout for none.
struct Interval {
  double mean, low, high, deviation;
};

Interval mean_interval(std::span<const double> values);

// The 97.5 % quantile of Student's t distribution; relative error below 1e-4.
double student_quantile(int degrees_of_freedom);

}  // namespace wd
