// algorithm.h: learns from a rollout with the algorithm that each policy's settings select; one learner per
// policy.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wd/config.h"
#include "wd/detail/clock.h"
#include "wd/policy.h"
#include "wd/process_group.h"
#include "wd/trajectory.h"

namespace wd {

class Learner {
 public:
  // Keeps references to policy and trajectory. Allocates everything that updates need, once. The ranks of the
  // group learn from all their rollouts together: the result is the same as that of one rank with all
  // replicas.
  Learner(Policy& policy, const Trajectory& trajectory, int index, const PolicySettings& settings,
          std::uint64_t seed, ProcessGroup group = {});
  ~Learner();
  Learner(Learner&&) noexcept;

  // Call it before the first step of every rollout, with the time before it. Enqueues.
  void begin_rollout(const TrainingClock& clock);
  // For Policy::ActOptions: the probability of a uniform draw in this rollout, in device memory, or null.
  const float* epsilon() const;

  // Updates do nothing, on all ranks, if *failed, on the device, is not 0 on any rank when they begin.
  void set_skip_flag(const std::int64_t* failed);
  // Throws std::runtime_error if an update met losses or a gradient that were not finite; neither that update
  // nor a later one made a step with them. Throws PeerError on ranks that had no part in it. On the CPU,
  // update() itself throws in the same way. Synchronizes on CUDA. All ranks.
  void check() const;

  // For tests: the next update finds NaN in the tensor named "loss" or "gradient".
  void poison_next(const std::string& tensor);

  // The optimizer's moments and step counts: the learner's own tensors, not copies.
  std::vector<NamedTensor> optimizer() const;

  // Measurements of the last update, under the names of metrics.h. Synchronizes on CUDA.
  std::vector<std::pair<std::string, double>> metrics() const;

 private:
  friend void prepare(std::span<Learner> learners);
  friend bool update(std::span<Learner> learners, const TrainingClock& clock,
                     const std::function<bool()>& should_stop);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Both functions process the learners in turn, so that the sums of one learner over ranks are transferred
// while another computes. All ranks.

// Writes masks, advantages and targets of the rollout to its buffers. The value of the last observation must
// be there already.
void prepare(std::span<Learner> learners);
// Runs epochs and minibatches over the prepared rollout. Calls should_stop at every chunk; once it returns
// true on any rank, no more steps begin, and update() returns false on all ranks. Either all ranks pass
// should_stop or none does. Schedules and the order of minibatches follow the clock, which shows the time
// before this rollout.
bool update(std::span<Learner> learners, const TrainingClock& clock,
            const std::function<bool()>& should_stop = {});

}  // namespace wd
