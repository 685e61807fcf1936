// interval.cpp: means with confidence intervals.
#include "src/evaluation/interval.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace wd {

namespace {
constexpr double kNormalQuantile = 1.959963984540054;  // 97.5 %
}

double student_quantile(int degrees_of_freedom) {
  constexpr std::array<double, 8> kSmall = {12.7062, 4.30265, 3.18245, 2.77645,
                                            2.57058, 2.44691, 2.36462, 2.30600};
  if (degrees_of_freedom < 1) return std::numeric_limits<double>::quiet_NaN();
  if (degrees_of_freedom <= static_cast<int>(kSmall.size()))
    return kSmall[static_cast<std::size_t>(degrees_of_freedom) - 1];
  // Abramowitz and Stegun 26.7.5: an expansion around the normal quantile.
  constexpr double z = kNormalQuantile, z2 = z * z;
  const double n = degrees_of_freedom;
  const double g1 = (z2 + 1.0) / 4.0, g2 = ((5.0 * z2 + 16.0) * z2 + 3.0) / 96.0,
               g3 = (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) / 384.0,
               g4 = ((((79.0 * z2 + 776.0) * z2 + 1482.0) * z2 - 1920.0) * z2 - 945.0) / 92160.0;
  return z * (1.0 + (g1 + (g2 + (g3 + g4 / n) / n) / n) / n);
}

Interval mean_interval(std::span<const double> values) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (values.empty()) return {nan, nan, nan, nan};
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  if (values.size() < 2) return {mean, nan, nan, nan};
  double squares = 0.0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double deviation = std::sqrt(squares / (n - 1.0));
  if (deviation > 0.0 && std::ranges::all_of(values, [](double x) { return x == 0.0 || x == 1.0; })) {
    const double z2 = kNormalQuantile * kNormalQuantile;  // Wilson (1927)
    const double middle = (mean + z2 / (2.0 * n)) / (1.0 + z2 / n);
    const double half = std::sqrt(z2 / n * (mean * (1.0 - mean) + z2 / (4.0 * n))) / (1.0 + z2 / n);
    return {mean, middle - half, middle + half, deviation};
  }
  const double half = student_quantile(static_cast<int>(values.size()) - 1) * deviation / std::sqrt(n);
  return {mean, mean - half, mean + half, deviation};
}

}  // namespace wd
