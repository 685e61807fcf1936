// median.h: median of values.
#pragma once

#include <algorithm>
#include <vector>

namespace wd {

// Requires at least one value.
inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

}  // namespace wd
