// duration.cpp: parses durations.
#include "src/config/duration.h"

#include <cmath>

namespace wd::config {
namespace {

// Seconds per unit; 0 if it is none. A capital M is a million.
double seconds_per(char unit) {
  switch (unit) {
    case 's':
      return 1.0;
    case 'm':
      return 60.0;
    case 'h':
      return 3600.0;
    case 'd':
      return 86'400.0;
    default:
      return 0.0;
  }
}

}  // namespace

Parsed parse_duration(std::string_view text, double& seconds) {
  const double unit = text.empty() ? 0.0 : seconds_per(text.back());
  if (unit > 0.0) text.remove_suffix(1);
  double number = 0.0;
  const Parsed parsed = parse_double(text, number);
  if (parsed != Parsed::kGood) return parsed;
  const double read = unit > 0.0 ? number * unit : number;
  if (!std::isfinite(read)) return Parsed::kTooLarge;
  seconds = read;
  return Parsed::kGood;
}

std::string demand_duration(Parsed parsed, const Range& range) {
  if (parsed != Parsed::kNoNumber) return demand(parsed, false, range) + " seconds";
  const std::string allowed = format(range);
  return "must be seconds, or as 90s, 10m, 1.5h" + (allowed.empty() ? "" : "; in seconds " + allowed);
}

}  // namespace wd::config
