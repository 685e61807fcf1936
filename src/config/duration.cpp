// duration.cpp: parses durations.
#include "src/config/duration.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace wd::config {
namespace {

// A capital M is a million.
constexpr std::pair<std::string_view, double> kUnits[] = {
    {"s", 1.0}, {"m", 60.0}, {"min", 60.0}, {"h", 3600.0}, {"d", 86'400.0}};

}  // namespace

Parsed parse_duration(std::string_view text, double& seconds) {
  const bool clock = std::ranges::count(text, ':') == 2 && !text.ends_with(':');  // 01:30:00
  double sum = 0.0, of_clock = 3600.0;
  for (bool first = true; first || !text.empty(); first = false) {
    const std::size_t end = std::min(text.find_first_of(clock ? ":" : "smhd"), text.size());
    const bool padded = clock && end == 2 && text.front() == '0';
    double number = 0.0;
    const Parsed parsed = parse_double(text.substr(padded ? 1 : 0, end - (padded ? 1 : 0)), number);
    if (parsed != Parsed::kGood) return parsed;
    if (!first && number < 0.0) return Parsed::kNoNumber;
    text.remove_prefix(end);
    double unit = std::exchange(of_clock, of_clock / 60.0);
    if (clock) {
      text.remove_prefix(std::min<std::size_t>(text.size(), 1));
    } else if (text.empty() && first) {
      unit = 1.0;
    } else {
      const std::string_view word = text.substr(0, std::min(text.find_first_not_of("smhdin"), text.size()));
      const auto* const known = std::ranges::find(kUnits, word, &std::pair<std::string_view, double>::first);
      if (known == std::end(kUnits)) return Parsed::kNoNumber;
      unit = known->second;
      text.remove_prefix(word.size());
    }
    sum += number * unit;
  }
  if (!std::isfinite(sum)) return Parsed::kTooLarge;
  seconds = sum;
  return Parsed::kGood;
}

std::string demand_duration(Parsed parsed, const Range& range) {
  if (parsed != Parsed::kNoNumber) return demand(parsed, false, range) + " seconds";
  const std::string allowed = format(range);
  return "must be seconds, or as 90s, 10m, 1.5h, 1h30m, 01:30:00" +
         (allowed.empty() ? "" : "; in seconds " + allowed);
}

}  // namespace wd::config
