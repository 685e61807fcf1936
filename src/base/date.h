// date.h: the current date and time as text.
#pragma once

#include <array>
#include <ctime>
#include <string>

namespace wd {

// `format` is that of strftime(3), for at most 31 characters; `zone` is ::localtime_r or ::gmtime_r.
inline std::string date(const char* format, std::tm* (*zone)(const std::time_t*, std::tm*)) {
  const std::time_t now = std::time(nullptr);
  std::tm fields{};
  zone(&now, &fields);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), format, &fields)};
}

}  // namespace wd
