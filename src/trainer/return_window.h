// return_window.h: the last episodes of every replica, with a number per replica that is fixed beforehand.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace wd {

// The last episodes to end are not a fair sample of a policy's episodes: if many replicas began together,
// episodes that fail early and episodes that last long end in waves, and the last hundred of a thousand
// replicas may all be from one wave. But the last episode that a replica has finished is, at any moment fixed
// beforehand, on average as long as any other of the same policy (docs/design/0014-which-episodes-count.md).
class ReturnWindow {
 public:
  static constexpr std::int64_t kMin = 100, kMinOfReplica = 2;

  explicit ReturnWindow(std::int64_t replicas);

  // Adds an episode of this replica, later than those before.
  void add(std::int64_t replica, double value);
  // Returns true if every replica has played its share.
  bool full() const { return count_ == size_; }
  // Mean of the episodes that it holds; NaN if there are none. The sum is in the order of replicas, not of
  // add().
  double mean() const;

  std::int64_t replicas() const { return replicas_; }
  std::int64_t most() const { return max_; }
  // [replicas, most]: oldest episode of a replica first; NaN if there is none.
  const std::vector<double>& values() const { return values_; }
  // Replaces the values by another window's values(), which must have the same size.
  void restore(const double* values);

 private:
  std::int64_t share(std::int64_t replica) const;

  std::int64_t replicas_, size_, max_;
  std::int64_t count_ = 0;
  std::vector<double> values_;
  mutable std::optional<double> mean_;  // set if it was requested since the last add()
};

}  // namespace wd
