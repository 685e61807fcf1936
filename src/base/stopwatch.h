// stopwatch.h: measures the seconds since its construction.
#pragma once

#include <chrono>

namespace wd {

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace wd
