// return_window.h: the last episodes of every replica, from each a number that is fixed beforehand.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace wd {

// The last episodes to end are no fair sample of a policy's: where many replicas began together, those that
// fail early and those that last come in waves, and a hundred of a thousand replicas' may all be of one wave.
// But the last episode that a replica has finished is, at any moment fixed beforehand, as long as any other
// of the same policy (docs/design/0014-which-episodes-count.md).
class ReturnWindow {
 public:
  static constexpr std::int64_t kMin = 100, kMinOfReplica = 2;

  explicit ReturnWindow(std::int64_t replicas);

  // An episode of this replica, later than those before.
  void add(std::int64_t replica, double value);
  // Whether every replica has played its share.
  bool full() const { return count_ == size_; }
  // Of what it holds; NaN while that is nothing. Summed in the order of replicas, whoever added first.
  double mean() const;

  std::int64_t replicas() const { return replicas_; }
  std::int64_t most() const { return max_; }
  // [replicas, most]: the oldest of a replica first; NaN where there is none.
  const std::vector<double>& values() const { return values_; }
  // Takes over what another's values() were: as many numbers as this one's.
  void restore(const double* values);

 private:
  std::int64_t share(std::int64_t replica) const;

  std::int64_t replicas_, size_, max_;
  std::int64_t count_ = 0;
  std::vector<double> values_;
  mutable std::optional<double> mean_;  // where it has been asked for since the last add()
};

}  // namespace wd
