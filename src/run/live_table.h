// live_table.h: the metrics of each policy and the split of time, for the rows that a wide terminal shows
// below the progress line.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wd/metrics.h"

namespace wd::run {

// A part of the loop, and what users read: {"time/update_s", "update"}.
struct TimePart {
  std::string_view metric, heading;
};
// These sum to the whole time. If rollouts are replayed as a whole, their two parts are not measured, and
// time/rollout_mean_s takes their place.
std::span<const TimePart> time_parts();

// Returns a line of headings, one line per policy, and one line with the percentage of time that each part of
// the loop took, if it was measured. A value that was not measured is "-". All lines are ASCII and have at
// most kLiveTableColumns characters.
std::vector<std::string> live_table(const MetricsRow& row, const std::vector<std::string>& policies);

inline constexpr int kLiveTableColumns = 100;

}  // namespace wd::run
