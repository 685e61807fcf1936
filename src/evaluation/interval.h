// interval.h: a mean and its confidence interval.
#pragma once

#include <span>

namespace wd {

// The mean, its 95 % confidence interval by Student's t distribution (of zeros and ones: Wilson's, which
// stays between them), and the sample standard deviation of the values (n - 1). For one value, all but the
// mean are NaN; for no values, all are NaN.
struct Interval {
  double mean, low, high, deviation;
};

Interval mean_interval(std::span<const double> values);

// The 97.5 % quantile of Student's t distribution; relative error below 1e-4.
double student_quantile(int degrees_of_freedom);

}  // namespace wd
