// number.cpp: writes numbers as JSON text.
#include "src/metrics/number.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace wd {
namespace {

constexpr double kLargestExact = 9007199254740992.0;  // 2^53: whole doubles up to here are exact as integers

}  // namespace

std::string json_number(double value) {
  if (!std::isfinite(value)) return "null";
  if (value == 0.0 && std::signbit(value)) return "-0.0";  // "-0" reads back as the integer 0
  std::array<char, 32> text{};
  char* const end = text.data() + text.size();
  const bool whole = std::abs(value) <= kLargestExact && value == std::trunc(value);
  const auto written = whole ? std::to_chars(text.data(), end, static_cast<std::int64_t>(value))
                             : std::to_chars(text.data(), end, value);
  return {text.data(), written.ptr};
}

}  // namespace wd
