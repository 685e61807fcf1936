// ways.h: several ways to do the same work, of which the fastest one that works is used.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace wd {

// Another way than the first is preferred only if it takes less than this fraction of the first one's time:
// if two ways are about equally fast, noise must not decide which bits a result has.
inline constexpr double kClearlyFaster = 0.9;

class Ways {
 public:
  Ways() = default;
  // Ways 0 ... count - 1, the one that is expected to be best first. `seconds(way)` measures a way; it
  // returns nothing if the way does not work.
  Ways(std::size_t count, const std::function<std::optional<double>(std::size_t)>& seconds);
  // Ways whose order is known; their times count as 0.
  explicit Ways(const std::vector<std::size_t>& order);

  // The numbers of the ways that are left, the best one first.
  std::vector<std::size_t> order() const;

  // Seconds of the way that run() tries first; empty if no way is left.
  std::optional<double> seconds() const;
  // Calls `attempt(way)` with the best way, then with the next best, and so on, until it returns true. Ways
  // that fail are never tried again. Returns false if no way is left.
  bool run(const std::function<bool(std::size_t)>& attempt);

 private:
  struct Way {
    std::size_t number;
    double seconds;
  };
  std::vector<Way> left_;  // the best one first
};

}  // namespace wd
