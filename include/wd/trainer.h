// trainer.h: one iteration of training: rollout, returns, update.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "wd/checkpoint.h"
#include "wd/config.h"
#include "wd/detail/phase.h"
#include "wd/environment.h"
#include "wd/metrics.h"
#include "wd/policy.h"
#include "wd/process_group.h"
#include "wd/replicas.h"
#include "wd/trajectory.h"

namespace wd {

struct InjectedFaults;  // of tests
struct Evidence;        // of a failure

// The options of this rank's share of the replicas. Throws UsageError if the file of starts cannot be read,
// or if the replicas cannot be shared equally.
ReplicasOptions replicas_options(const Config& config, Device device, int rank = 0, int world_size = 1);

// Throws UsageError, naming numbers that work, if num_envs is not a multiple of world_size.
void check_shares(const Config& config, int world_size);

// One rank's part of a training run. Calls marked "All ranks" are collective.
class Trainer {
 public:
  // Allocates everything that training needs. The environment must outlive the trainer. Throws UsageError if
  // configuration and environment contradict each other.
  Trainer(const Config& config, const Environment& environment, Device device, ProcessGroup group = {});
  ~Trainer();

  // Copies parameters and moments from rank 0 to all ranks. All ranks.
  void synchronize();
  // The same after the policies' weights were changed on rank 0, before the first iteration: networks that
  // follow them, and averages, begin as copies of them.
  void start_from_weights();

  // Runs one rollout and the update of every policy. `should_stop` is called at every step and chunk, from
  // any thread. Returns false if it returned true on any rank; the state is then the same as before the call.
  // All ranks, either all with should_stop or all without. Throws UsageError with should_stop if an algorithm
  // cannot undo an iteration. If a number is NaN or infinite: on the CPU,
  // iterate() throws std::runtime_error before anything is learned from it; on a GPU, nothing is learned from
  // it or after it, and check() throws. With trainer.cuda_graphs and without should_stop, a GPU replays what
  // it did before. On a GPU it returns when the iteration is enqueued and the one before it is done.
  bool iterate(const std::function<bool()>& should_stop = {});

  // Everything that the next iteration depends on, in host memory; rank 0 gets it for all ranks. Synchronizes
  // on CUDA. All ranks.
  Snapshot snapshot() const;
  // The tensors that restore() needs in rank 0's snapshot.
  SnapshotForms snapshot_forms() const;
  // Continues from a snapshot: with the same bits as if training had never stopped (on the CPU). Throws
  // std::runtime_error if the snapshot is of another training run. If has_memory(), call read_memory() next.
  // All ranks; only rank 0's snapshot counts, which may have been written by any number of ranks.
  void restore(const Snapshot& snapshot);

  // Whether algorithms remember former rollouts (Algorithm::memory), which is not in snapshots.
  bool has_memory() const;
  // [bytes] of these memories of all ranks, when they are full.
  double memory_bytes() const;
  // Writes them, piece by piece, to folder/POLICY.safetensors; rank 0 makes the folder and writes for all
  // ranks. Returns the files by policy. If a file cannot be written, rank 0 throws at the end, when all ranks
  // have done their part. All ranks.
  std::map<std::string, std::filesystem::path> write_memory(const std::filesystem::path& folder) const;
  // After restore(): reads these files, which only rank 0 passes. What has no file is forgotten. Returns
  // whether nothing was, on every rank. Throws UsageError if a file is of another training, or has content
  // that no training can have (Algorithm::memory_fault); std::runtime_error if it cannot be read. All ranks.
  bool read_memory(const std::map<std::string, std::filesystem::path>& files);

  // Throws std::runtime_error naming the first number that was NaN or infinite; nothing has been learned
  // since. On the CPU, iterate() has already thrown. On a GPU, only this call, take_metrics() and snapshot()
  // detect it. Synchronizes on CUDA. All ranks.
  void check() const;

  // Throws std::runtime_error naming the ranks whose parameters, moments or counters differ from rank 0's.
  // All ranks.
  void check_ranks_agree() const;

  // Ends the part of a rank that has failed: destroys the CUDA graphs and aborts the group's operations.
  // Returns false if that is not done after `seconds`; then only _exit() ends the process
  // (ProcessGroup::abort). Afterwards the trainer can only be destroyed or asked for its counts. Not
  // collective.
  bool abort(double seconds);

  // Runs only the rollout, for measurements.
  void rollout();

  // Whether iterate() may get a should_stop: iterations of all algorithms can be undone.
  bool can_be_undone() const;
  // How many iterations this object has made of the kind that comes next (Algorithm::stage): 0: it will
  // allocate, and with graphs 1: it will be captured.
  std::int64_t times_made() const;

  const StepCounts& counts() const;
  // The number, counted from 1, of the iteration that is under way or comes next. On a GPU, iterate() returns
  // while its iteration is still under way: counts() includes it already.
  std::int64_t iteration_under_way() const;
  double wall_s() const;  // since training began, including the time before a restore()
  Trajectory& trajectory();
  Replicas& replicas();
  std::vector<Policy>& policies();
  // The moving average of the policy's weights (policy.NAME.average), under the names of Policy::saved();
  // empty if there is none.
  std::vector<NamedTensor> average(std::size_t policy) const;

  // Mean episodic return of a policy over the last episodes of every replica. Each replica contributes an
  // equal share: at least 100 episodes in total and at least two per replica
  // (docs/design/0014-which-episodes-count.md). NaN before the first episode has ended.
  double mean_return(std::size_t policy) const;
  // Whether every replica has played its share; only then is mean_return() representative of the policy.
  bool return_known() const;
  // Whether the first policy's mean return is known and has reached stop_return; never with stop_on: eval.
  bool return_reached() const;
  // Makes mean_return() and return_reached() include every complete iteration: on a GPU they know only what
  // was read, as by take_metrics() and snapshot(). Synchronizes on CUDA. All ranks.
  void read_returns();
  // Gives the policies the weights and statistics that played the last rollout, as when its update had not
  // been made; those that the update made are kept beside them, in snapshots too (trained/), and iterate()
  // and restore() go on from them. Does nothing if training does not end by its own return, and before an
  // iteration. Enqueues.
  void take_back_update();
  // The memory that this takes: copies of weights and statistics. Empty if training does not end by its own
  // return.
  const std::vector<at::Tensor>& played() const;
  // Seconds that this rank has spent in each phase since construction. Synchronizes on CUDA.
  std::array<double, kNumPhases> phase_seconds();
  const ProcessGroup& group() const;
  // All measurements since the last call, over all ranks. Synchronizes on CUDA. All ranks.
  MetricsRow take_metrics();

 private:
  friend bool iterate_with_faults(Trainer& trainer, const std::function<bool()>& should_stop,
                                  const InjectedFaults& faults);
  friend std::optional<Evidence> evidence_of(const Trainer& trainer);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wd
