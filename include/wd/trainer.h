// trainer.h: one iteration of training: rollout, returns, update.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "wd/checkpoint.h"
#include "wd/config.h"
#include "wd/environment.h"
#include "wd/metrics.h"
#include "wd/phase.h"
#include "wd/policy.h"
#include "wd/process_group.h"
#include "wd/replicas.h"
#include "wd/trajectory.h"

namespace wd {

// The replicas that a configuration asks for, of this rank's share. Throws UsageError when its file of starts
// cannot be read, or its replicas cannot be shared equally.
ReplicasOptions replicas_options(const Config& config, Device device, int rank = 0, int world_size = 1);

// Throws UsageError, naming numbers that would do, where num_envs is no multiple of world_size.
void check_shares(const Config& config, int world_size);

// One rank's part of a training. Calls marked "all ranks" are collective.
class Trainer {
 public:
  // Allocates everything that training needs. Environment and row must outlive the trainer. Throws UsageError
  // where configuration and environment contradict each other.
  Trainer(const Config& config, const Environment& environment, Device device, ProcessGroup group = {});
  ~Trainer();

  // Gives all ranks the parameters and moments of rank 0. All ranks.
  void synchronize();

  struct IterateOptions {
    std::function<bool()> should_stop = {};   // asked at every step and chunk
    std::chrono::microseconds step_delay{0};  // for tests: waited before every step of the rollout
    // For tests: "observation", "reward", "loss", "gradient" or "weight" gets a NaN; "drift": a weight
    // changes a little.
    std::string poison = {};
  };
  // One rollout and the update of every policy. False when should_stop said yes on any rank: all is then as
  // it was before the call. All ranks, all with should_stop or all without. On the CPU it throws
  // std::runtime_error, before anything is learned from it, where a number is NaN or infinite; on a GPU
  // nothing is learned from it or after it, and check() throws. With trainer.cuda_graphs a GPU replays what
  // it did before, unless an option asks the host to do something within the iteration.
  bool iterate(const IterateOptions& options);
  bool iterate() { return iterate({}); }

  // Everything that the next iteration depends on, in host memory: on rank 0, for all. Synchronises on CUDA.
  // All ranks.
  Snapshot snapshot() const;
  // What restore() asks of rank 0's snapshot.
  SnapshotForms snapshot_forms() const;
  // Goes on from there: the same bits as if training had never stopped (on the CPU). Throws
  // std::runtime_error where the snapshot is of another training. All ranks; rank 0's snapshot counts,
  // written by any number of ranks.
  void restore(const Snapshot& snapshot);

  // Throws std::runtime_error naming the first number that was NaN or infinite: nothing has been learned
  // since. On the CPU iterate() has thrown so already; on a GPU take_metrics() and snapshot() look first, and
  // nobody else before this call. Synchronises on CUDA. All ranks.
  void check() const;

  // Throws std::runtime_error naming the ranks whose parameters, moments or counters differ from rank 0's.
  // All ranks.
  void check_ranks_agree() const;

  // The rollout alone, for measurements.
  void rollout();

  const StepCounts& counts() const;
  double wall_s() const;  // since training began, sessions before a restore() included
  Trajectory& trajectory();
  Replicas& replicas();
  std::vector<Policy>& policies();

  // Mean episodic return of a policy over the last episodes of every replica, of each a share of at least 100
  // in all and at least two (docs/design/0014-which-episodes-count.md); NaN before the first has ended.
  double mean_return(std::size_t policy) const;
  // Whether every replica has played its share: only then does mean_return() stand for the policy.
  bool return_known() const;
  // Whether stop_return is reached: the first policy's mean return, once it is known.
  bool return_reached() const;
  // Seconds that this rank spent in each phase since construction. Synchronises on CUDA.
  std::array<double, kNumPhases> phase_seconds();
  const ProcessGroup& group() const;
  // Everything measured since the last call, over all ranks. Synchronises on CUDA. All ranks.
  MetricsRow take_metrics();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wd
