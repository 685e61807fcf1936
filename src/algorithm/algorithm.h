// algorithm.h: the interface of an algorithm that trains one policy.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "wd/algorithms.h"
#include "wd/detail/clock.h"
#include "wd/policy.h"
#include "wd/process_group.h"
#include "wd/trajectory.h"

namespace wd {

struct AlgorithmContext {
  Policy& policy;
  const Trajectory& trajectory;
  int index = 0;  // the policy's position in the trajectory
  bool to_train = true;
  std::uint64_t seed = 1;
  ProcessGroup group;

  const PolicyBuffers& buffers() const { return trajectory.policies()[static_cast<std::size_t>(index)]; }
};

// Each phase has a begin and an end, so that the sums over ranks that begin() starts are in transit while
// another policy computes. All ranks call these functions in the same order.
class Algorithm {
 public:
  virtual ~Algorithm() = default;

  // Called before the first step of a rollout. `clock` shows the time before it. Enqueues.
  virtual void begin_rollout(const TrainingClock&) {}
  // In device memory: the probability of a uniform draw, for the actions of the rollout; null: none. The
  // pointer stays the same.
  virtual const float* epsilon() const { return nullptr; }

  // Computes what the update reads from a rollout, whose last value must already be there.
  virtual void begin_prepare() = 0;
  virtual void end_prepare() = 0;

  virtual void begin_update(const TrainingClock& clock) = 0;
  // Returns true if the update has no step left to begin.
  virtual bool is_done() const = 0;
  virtual void begin_step(const TrainingClock& clock, const std::function<bool()>& should_stop) = 0;
  // Returns false if should_stop() returned true on any rank.
  virtual bool end_step() = 0;

  // Updates do nothing, on all ranks, if this number, in device memory, is not 0 on any rank when they begin.
  virtual void set_skip_flag(const std::int64_t* failed) = 0;
  // Throws like Learner::check().
  virtual void check() const = 0;
  virtual std::vector<NamedTensor> optimizer() const = 0;
  virtual std::vector<std::pair<std::string, double>> metrics() const = 0;
  // For tests: makes the "loss" or the "gradient" of the next step NaN.
  virtual void poison_next(const std::string& tensor) = 0;
};

}  // namespace wd
