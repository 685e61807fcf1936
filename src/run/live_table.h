// live_table.h: the metrics of each policy and the split of time: below the progress line, and in `status`.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "wd/metrics.h"

namespace wd::run {

// A metric's value by its name; NaN if it was not measured.
using MetricLookup = std::function<double(std::string_view)>;

// A part of the loop under the name that users read.
struct TimePart {
  std::string_view name;
  double seconds;
};
// The parts that were measured. They sum to the whole time. If rollouts are replayed as a whole, their two
// parts are not measured, and "rollout" takes their place.
std::vector<TimePart> time_parts(const MetricLookup& metric);

// Returns a line of headings, one line per policy, and one line with the percentage of time that each part of
// the loop took, if it was measured. A value that was not measured is "-". All lines are ASCII and have at
// most `width` characters: the least important columns are left out. Returns nothing if there is no room for
// return, entropy and KL.
std::vector<std::string> live_table(const MetricLookup& metric, const std::vector<std::string>& policies,
                                    std::size_t width);
MetricLookup values_of(const MetricsRow& row);  // which must outlive it

inline constexpr std::size_t kLiveTableWidth = 100;  // with all columns

}  // namespace wd::run
