// algorithm.h: the interface of an algorithm that teaches one policy.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "wd/algorithms.h"
#include "wd/clock.h"
#include "wd/policy.h"
#include "wd/process_group.h"
#include "wd/trajectory.h"

namespace wd {

struct AlgorithmContext {
  Policy& policy;
  const Trajectory& trajectory;
  int index = 0;  // of the policy in the trajectory
  bool to_train = true;
  std::uint64_t seed = 1;
  ProcessGroup group;

  const PolicyBuffers& buffers() const { return trajectory.policies()[static_cast<std::size_t>(index)]; }
};

// Pairs of begin and end: what begin() sums over ranks travels while another policy computes. All ranks call
// them in the same order.
class Algorithm {
 public:
  virtual ~Algorithm() = default;

  // Makes ready what the update reads, from a rollout whose last value is there.
  virtual void begin_prepare() = 0;
  virtual void end_prepare() = 0;

  virtual void begin_update(const TrainingClock& clock) = 0;
  // Whether the update has no step left to begin.
  virtual bool is_done() const = 0;
  virtual void begin_step(const TrainingClock& clock, const std::function<bool()>& should_stop) = 0;
  // False if should_stop() said yes on any rank.
  virtual bool end_step() = 0;

  // Updates do nothing if this number, on the device, is not 0 when they begin.
  virtual void set_skip_flag(const std::int64_t* failed) = 0;
  // Throws as Learner::check().
  virtual void check() const = 0;
  virtual std::vector<NamedTensor> optimizer() const = 0;
  virtual std::vector<std::pair<std::string, double>> metrics() const = 0;
  // For tests: the next step finds NaN in its "loss" or "gradient".
  virtual void poison_next(const std::string& tensor) = 0;
};

}  // namespace wd
