// episode_log.h: returns and lengths of finished episodes by policy, on all ranks: of the logging interval, and of the last hundred.
#pragma once

#include <deque>
#include <vector>

#include "wd/clock.h"
#include "wd/policy.h"
#include "wd/process_group.h"

namespace wd {

class EpisodeLog {
 public:
  static constexpr std::size_t kWindow = 100;

  EpisodeLog(const Trajectory& trajectory, Device device, ProcessGroup group);

  // Follows the episodes of the rollout, and keeps a record of those that ended. Enqueues.
  void follow(const TrainingClock& clock);
  // After each follow(): takes in what ended where that costs nothing, on the CPU, or where the record might not hold another
  // rollout's. All ranks.
  void read_if_due();
  // Takes in what ended on every rank, in one order for all numbers of ranks. Synchronises on CUDA. All ranks.
  void read();

  struct Interval {
    std::int64_t episodes = 0;
    double mean_return = 0.0, max_return = 0.0, mean_length = 0.0;  // NaN where no episode ended
  };
  // Means of the environment's statistics over the episodes that ended since the last call, NaN where none did.
  std::vector<double> take_statistics();
  // What ended since the last call.
  Interval take_interval(std::size_t policy);
  // Mean over the last kWindow episodes; NaN while fewer than one has ended.
  double recent_mean(std::size_t policy) const;

  // All that it keeps from one rollout to the next, by policy.
  std::vector<NamedTensor> state() const;
  // Throws std::runtime_error where the state is not of this training.
  void restore(const std::vector<NamedTensor>& state);

  std::size_t recent_count() const { return policies_.empty() ? 0 : policies_[0].recent.size(); }

 private:
  struct PolicyLog {
    at::Tensor running_return, running_length, finished_return, finished_length;
    std::deque<double> recent;
    std::vector<double> returns, lengths;  // of the interval
  };

  void follow_policy(std::size_t policy);
  at::Tensor ended_here();

  const Trajectory& trajectory_;
  Device device_;
  ProcessGroup group_;
  std::vector<PolicyLog> policies_;
  std::vector<std::vector<double>> statistics_;  // by statistic, of the interval
  // Episodes that ended since the last read, on the device (kernels/episodes.h).
  at::Tensor record_, count_, offset_;
  std::int64_t most_ = 0;    // episodes that one rollout can end
  std::int64_t unread_ = 0;  // rollouts in the record
};

}  // namespace wd
