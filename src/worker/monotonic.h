// monotonic.h: the clock by which failures are ordered and waits are limited.
#pragma once

#include <cstdint>
#include <ctime>

namespace wd::launcher {

inline constexpr std::int64_t kNanosecondsInASecond = 1'000'000'000;

// CLOCK_MONOTONIC: the same for all processes of a machine, and safe to read in a signal handler.
inline std::int64_t now_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * kNanosecondsInASecond + time.tv_nsec;
}

constexpr std::int64_t nanoseconds(double seconds) {
  return static_cast<std::int64_t>(seconds * static_cast<double>(kNanosecondsInASecond));
}

constexpr double seconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / static_cast<double>(kNanosecondsInASecond);
}

}  // namespace wd::launcher
