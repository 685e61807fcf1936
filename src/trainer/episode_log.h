// episode_log.h: finished episodes by policy, on all ranks: those of the logging interval, and the last ones.
#pragma once

#include <vector>

#include "src/trainer/return_window.h"
#include "wd/clock.h"
#include "wd/policy.h"
#include "wd/process_group.h"

namespace wd {

class EpisodeLog {
 public:
  EpisodeLog(const Trajectory& trajectory, Device device, ProcessGroup group);

  // Before the first follow(): the first episodes of these replicas of this rank do not count.
  void leave_out_first(const std::vector<bool>& replicas);
  // Follows the episodes of the rollout, and keeps a record of those that ended. Enqueues.
  void follow(const TrainingClock& clock);
  // After each follow(): takes in what ended where that costs nothing, on the CPU, or where the record might
  // not hold another rollout's. All ranks.
  void read_if_due();
  // Takes in what ended on every rank, in one order for all numbers of ranks. Synchronises on CUDA. All
  // ranks.
  void read();

  struct Interval {
    std::int64_t episodes = 0;
    double mean_return = 0.0, max_return = 0.0, mean_length = 0.0;  // NaN where no episode ended
  };
  // Means of the environment's statistics over the episodes that ended since the last call, NaN where none
  // did.
  std::vector<double> take_statistics();
  // What ended since the last call.
  Interval take_interval(std::size_t policy);
  // The last episodes of every replica of the job.
  const ReturnWindow& window(std::size_t policy) const { return policies_[policy].window; }

  // All that it keeps from one rollout to the next, by policy.
  std::vector<NamedTensor> state() const;
  // Throws std::runtime_error where the state is not of this training.
  void restore(const std::vector<NamedTensor>& state);

 private:
  struct PolicyLog {
    at::Tensor running_return, running_length, finished_return, finished_length;
    ReturnWindow window;
    std::vector<double> returns, lengths;  // of the interval
  };

  static void restore_window(const NamedTensor& saved, ReturnWindow& window);
  void follow_policy(std::size_t policy);
  at::Tensor ended_here();

  const Trajectory& trajectory_;
  Device device_;
  ProcessGroup group_;
  std::vector<PolicyLog> policies_;
  std::vector<std::vector<double>> statistics_;  // by statistic, of the interval
  // Episodes that ended since the last read, on the device (kernels/episodes.h).
  at::Tensor record_, count_, offset_;
  std::int64_t max_ = 0;     // episodes that one rollout can end
  std::int64_t unread_ = 0;  // rollouts in the record
};

}  // namespace wd
