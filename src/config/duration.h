// duration.h: durations written by people: 90 and 90s are 90 seconds, 10m and 10min are 600, 1.5h, 1h30m and
// 01:30:00 are 5400.
#pragma once

#include <string>
#include <string_view>

#include "src/config/numbers.h"

namespace wd::config {

// The type of such settings and options, in help and documentation.
inline constexpr const char* kDurationType = "duration";

// Whether a number of this name is a duration: "max_seconds", "--seconds".
inline bool takes_duration(std::string_view name) { return name.ends_with("seconds"); }

// Parses a number, numbers with units (s, m, min, h, d) or HOURS:MINUTES:SECONDS into seconds.
Parsed parse_duration(std::string_view text, double& seconds);

// As demand(), of a duration.
std::string demand_duration(Parsed parsed, const Range& range);

}  // namespace wd::config
