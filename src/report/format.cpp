// format.cpp: formats numbers for display.
#include "src/report/format.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace wd::report {
namespace {

template <typename... Values>
std::string print(const char* pattern, Values... values) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), pattern, values...);
  return text.data();
}

}  // namespace

std::string format_number(const char* pattern, double value) { return print(pattern, value); }

std::string format_count(double value) {
  constexpr std::array kUnits{"", "k", "M", "G", "T", "P"};
  std::size_t unit = 0;
  // 999.5 of a unit would be displayed as 1000.
  while (unit + 1 < kUnits.size() && std::abs(value) >= 999.5) {
    value /= 1000.0;
    ++unit;
  }
  if (unit == 0) return print("%.0f", value);
  const int decimals = std::abs(value) < 9.995 ? 2 : std::abs(value) < 99.95 ? 1 : 0;
  return print("%.*f%s", decimals, value, kUnits[unit]);
}

std::string format_duration(double seconds) {
  constexpr double kLongest = 8.64e9;  // [s] 100,000 days
  if (!(seconds >= 0.0) || seconds > kLongest) return "?";
  const auto whole = static_cast<long long>(std::llround(seconds));
  const long long minutes = whole / 60;
  const long long hours = minutes / 60;
  if (minutes == 0) return print("%llds", whole);
  if (hours == 0) return print("%lldm%02llds", minutes, whole % 60);
  if (hours < 24) return print("%lldh%02lldm", hours, minutes % 60);
  return print("%lldd%02lldh", hours / 24, hours % 24);
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr double kMiB = 1024.0 * 1024.0;
  const double mebibytes = static_cast<double>(bytes) / kMiB;
  if (bytes < 1024 * 1024) return print("%.0f KiB", std::ceil(mebibytes * 1024.0));
  return mebibytes < 1000.0 ? print("%.0f MiB", mebibytes) : print("%.1f GiB", mebibytes / 1024.0);
}

std::string counted(std::int64_t n, const std::string& noun) {
  return std::to_string(n) + ' ' + noun + (n == 1 ? "" : "s");
}

std::string format_return(double value) {
  if (!std::isfinite(value)) return "-";
  return std::abs(value) < 1e5 ? print("%.2f", value) : format_count(value);
}

}  // namespace wd::report
