// live_table.h: the metrics of each policy and the split of time, for the rows that a wide terminal shows
// below the progress line.
#pragma once

#include <string>
#include <vector>

#include "wd/metrics.h"

namespace wd::run {

// Returns a line of headings, one line per policy, and one line with the percentage of time that each part of
// the loop took, if it was measured. A value that was not measured is "-". All lines are ASCII and have at
// most kLiveTableColumns characters.
std::vector<std::string> live_table(const MetricsRow& row, const std::vector<std::string>& policies);

inline constexpr int kLiveTableColumns = 100;

}  // namespace wd::run
