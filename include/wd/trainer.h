// trainer.h: the training loop: rollout, returns, update, over and over, and when to stop.
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
#include "wd/fault.h"
#include "wd/metrics.h"
#include "wd/phase.h"
#include "wd/policy.h"
#include "wd/process_group.h"
#include "wd/replicas.h"
#include "wd/run.h"
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
  Trainer(const Config& config, const EnvironmentRow& row, const Environment& environment, Device device,
          ProcessGroup group = {});
  ~Trainer();

  // Gives all ranks the parameters and moments of rank 0. All ranks.
  void synchronize();

  struct IterateOptions {
    std::function<bool()> give_up = {};       // asked at every step and chunk
    std::chrono::microseconds step_delay{0};  // for tests: waited before every step of the rollout
    // For tests: "observation", "reward", "loss", "gradient" or "weight" gets a NaN; "drift": a weight
    // changes a little.
    std::string poison = {};
  };
  // One rollout and the update of every policy. False when give_up said yes on any rank: all is then as it
  // was before the call. All ranks, all with give_up or all without. On the CPU it throws std::runtime_error,
  // before anything is learned from it, where a number is NaN or infinite; on a GPU nothing is learned from
  // it or after it, and check() throws. With trainer.cuda_graphs a GPU replays what it did before, unless an
  // option asks the host to do something within the iteration.
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

// Why training with this configuration has come to its end: "total_steps", "stop_return"; empty where it has
// not.
std::string finished(const Config& config, const Trainer& trainer);

struct TrainOptions {
  const Config& config;
  std::function<int()> interrupted =
      {};            // asked after every iteration: not 0, a signal, ends training in good order
  Fault fault = {};  // for tests
  bool strict_device =
      false;  // fail on any allocation, copy or wait of the loop once it is warm (docs/architecture.md)
  // Iterations to profile, after two that warm up; 0: none. Rank 0 profiles itself; table (for people) and
  // JSON are handed over once.
  int profile = 0;
  std::function<void(const std::string& table, const std::string& json)> profiled = {};
};

struct TrainEnd {
  std::string reason;  // "total_steps", "max_seconds", "stop_return", "signal"
  int signal = 0;      // that any rank received
};

// Trains to the end that the configuration sets, or until `interrupted`; writes the run's files, and a
// checkpoint at the start, every saving.checkpoint_freq iterations and at the end. trainer.max_seconds,
// counted from this call, is looked at in every step and chunk; the iteration that it cuts short does not
// count. All ranks, which end at the same iteration; run and checkpoints are rank 0's, null elsewhere.
TrainEnd train(const TrainOptions& options, Trainer& trainer, Run* run, Checkpoints* checkpoints);

}  // namespace wd
