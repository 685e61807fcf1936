// algorithm.h: learning from a rollout, by the algorithm of each policy's settings: one learner per policy.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wd/clock.h"
#include "wd/config.h"
#include "wd/policy.h"
#include "wd/process_group.h"
#include "wd/trajectory.h"

namespace wd {

class Learner {
 public:
  // Keeps references to policy and trajectory; allocates what updates need once.
  // Ranks of the group learn from all their rollouts together: what comes out is that of one rank with all
  // replicas.
  Learner(Policy& policy, const Trajectory& trajectory, int index, const PolicySettings& settings,
          std::uint64_t seed, ProcessGroup group = {});
  ~Learner();
  Learner(Learner&&) noexcept;

  // Updates do nothing if this number, on the device, is not 0 when they begin.
  void set_skip_flag(const std::int64_t* failed);
  // Throws std::runtime_error where an update met losses or a gradient that were not finite; it made no step
  // with them, and none was made since. On ranks that had no part in it a PeerError. On the CPU update()
  // itself throws so. Synchronises on CUDA. All ranks.
  void check() const;

  // For tests: the next update finds NaN in its "loss" or "gradient".
  void poison_next(const std::string& tensor);

  // The optimizer's moments and steps: tensors of the learner itself.
  std::vector<NamedTensor> optimizer() const;

  // What the last update measured, by the names of metrics.h. Synchronises on CUDA.
  std::vector<std::pair<std::string, double>> metrics() const;

 private:
  friend void prepare(std::span<Learner> learners);
  friend bool update(std::span<Learner> learners, const TrainingClock& clock,
                     const std::function<bool()>& should_stop);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Both go through the learners in turn, so that what one of them sums over ranks travels while another
// computes. All ranks.

// Advantages, targets and masks of the rollout, into its buffers; the value of the last observation must be
// there.
void prepare(std::span<Learner> learners);
// Epochs and minibatches over the prepared rollout. `should_stop` is asked at every chunk; when it says yes
// on any rank, no more steps are begun, and false comes back on all ranks. All ranks with should_stop or all
// without. Schedules and the order of minibatches follow the clock, which shows the time before this rollout.
bool update(std::span<Learner> learners, const TrainingClock& clock,
            const std::function<bool()>& should_stop = {});

}  // namespace wd
