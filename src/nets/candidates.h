// candidates.h: autotuning: of several candidates that do the same work, the fastest that works is used.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace wd {

// A candidate is preferred to the first one only if it takes less than this fraction of the first one's time:
// if two are about equally fast, noise must not decide which bits a result has.
inline constexpr double kClearlyFaster = 0.9;

class Candidates {
 public:
  Candidates() = default;
  // Candidates 0 ... count - 1, the one that is expected to be best first. `seconds(candidate)` measures one;
  // it returns nothing if the candidate does not work.
  Candidates(std::size_t count, const std::function<std::optional<double>(std::size_t)>& seconds);
  // Candidates whose order is known; their times count as 0.
  explicit Candidates(const std::vector<std::size_t>& order);

  // The numbers of the candidates that are left, the best one first.
  std::vector<std::size_t> order() const;

  // Seconds of the candidate that run() tries first; empty if no candidate is left.
  std::optional<double> seconds() const;
  // Calls `attempt(candidate)` with the best candidate, then with the next best, and so on, until it returns
  // true. Candidates that fail are never tried again. Returns false if no candidate is left.
  bool run(const std::function<bool(std::size_t)>& attempt);

 private:
  struct Candidate {
    std::size_t number;
    double seconds;
  };
  std::vector<Candidate> left_;  // the best one first
};

}  // namespace wd
