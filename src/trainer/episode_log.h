// episode_log.h: finished episodes by policy, on all ranks: those of the logging interval, and the latest
// ones.
#pragma once

#include <limits>
#include <vector>

#include "src/game/pool.h"
#include "src/trainer/return_window.h"
#include "wd/detail/clock.h"
#include "wd/policy.h"
#include "wd/process_group.h"

namespace wd {

class EpisodeLog {
 public:
  EpisodeLog(const Trajectory& trajectory, Device device, ProcessGroup group);

  // Call it before the first accumulate(): the first episodes of these replicas of this rank do not count.
  void leave_out_first(const std::vector<bool>& replicas);
  // Adds the steps of the rollout to the running episodes, and records those that ended. Enqueues.
  void accumulate(const TrainingClock& clock);
  // Those of the last accumulate().
  EndedGames ended_games() const;
  // Call it after each accumulate(): calls read() on the CPU, where that costs nothing, or if the record
  // might not have room for another rollout. All ranks.
  void read_if_due();
  // Reads the episodes that ended on every rank, in an order that does not depend on the number of ranks.
  // Synchronizes on CUDA. All ranks.
  void read();

  struct Ended {
    std::int64_t episodes = 0;
    double mean_return = 0.0, max_return = 0.0, mean_length = 0.0;  // NaN if there is none
  };
  // Means of the environment's statistics over the episodes that ended since the last call, NaN if none did.
  std::vector<double> take_statistics();
  // The episodes that ended since the last call; returns are of those in which the policy acted itself.
  Ended take_ended(std::size_t policy);
  // Steps of this rank's longest episode that has not ended. Synchronizes on CUDA.
  int longest_running() const;
  // The last episodes of every replica of the job.
  const ReturnWindow& window(std::size_t policy) const { return policies_[policy].window; }

  // All state that it keeps from one rollout to the next, by policy.
  std::vector<NamedTensor> state() const;
  // Throws std::runtime_error if the state is not of this training.
  void restore(const std::vector<NamedTensor>& state);

 private:
  struct PolicyLog {
    at::Tensor running_return, running_length, finished_return, finished_length;
    ReturnWindow window;
    std::vector<double> returns, lengths;  // of the interval
  };

  void accumulate_policy(std::size_t policy);
  at::Tensor ended_here();

  const Trajectory& trajectory_;
  Device device_;
  ProcessGroup group_;
  std::vector<PolicyLog> policies_;
  std::vector<std::vector<double>> statistics_;  // by statistic, of the interval
  // Episodes that ended since the last read, on the device (kernels/episodes.h).
  at::Tensor record_, count_, offset_;
  std::int64_t max_ = 0;     // max episodes that can end in one rollout
  std::int64_t unread_ = 0;  // rollouts in the record
};

}  // namespace wd
