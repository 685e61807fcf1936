// replicas.h: the running copies of one environment on one worker: their memory, and one call that steps them
// all.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "wd/device.h"
#include "wd/environment.h"

namespace wd {

struct ReplicasOptions {
  int num_envs = 1;                 // of this worker
  std::uint32_t first_replica = 0;  // global id of the first
  std::uint64_t seed = 1;
  std::optional<std::uint64_t> start_seed;  // of what reset() draws; none: seed
  ResetMode reset = ResetMode::kRandom;
  std::uint32_t pool_size = 0;  // kPool: starts in the pool
  std::string starts;           // kGiven: text of a JSON list of {field: value or [values by agent]}
  bool staggered = false;       // first episodes end after staggered_steps()
  Device device;
};

// Steps of the first episode of a replica, by its global id, where resets are staggered: 1 to time_limit,
// which is a whole episode. Of any number of replicas that follow one another they are spread evenly
// (docs/design/0015-staggered-resets.md).
int staggered_steps(std::uint64_t seed, std::uint32_t replica, int time_limit);

class Replicas {
 public:
  // The environment must outlive the replicas and keep its parameters. Throws UsageError on contradicting
  // parameters or starts.
  Replicas(const Environment& environment, ReplicasOptions options);

  int num_envs() const { return options_.num_envs; }
  const Spec& spec() const { return spec_; }
  const StateLayout& layout() const { return layout_; }
  Device device() const { return options_.device; }
  const ReplicasOptions& options() const { return options_; }

  // One step of every replica (or its reset where the episode had ended). The caller fills roles and flags of
  // `rows`: row t of what the step reads and pays, row t + 1 of what it shows; with null flags and rewards it
  // is the very first reset. Enqueues on CUDA, returns when done on the CPU.
  void step(StepView rows);
  // The same on the CPU with an unusual order of phases.
  void step_in_order(StepView rows, PhaseOrder order);

  // State of all replicas, [E, block_bytes] bytes on the device: all that a checkpoint needs of them.
  at::Tensor blocks() const { return blocks_; }

  // A field of one replica as numbers. Copies from the device.
  std::vector<double> read(int replica, const StateField& field) const;
  ReplicaHeader header(int replica) const;
  // Whether the first episode of a replica is cut short, so that it stands for no other.
  bool is_first_cut(int replica) const { return first_steps(replica) > 0; }
  // Overwrites fields of one replica, on the CPU only. `json`: {field: value or [values]}. Throws UsageError.
  void write(int replica, const std::string& json);

 private:
  RandomKey start_key() const;
  StepView complete(StepView rows) const;
  int first_steps(int replica) const;
  void find_statistics();

  const Environment& environment_;
  ReplicasOptions options_;
  Spec spec_;
  StateLayout layout_;
  at::Tensor blocks_;
  at::Tensor scratch_;                     // CUDA: for replicas that shared memory does not hold
  at::Tensor images_;                      // kGiven
  std::vector<StatisticView> statistics_;  // as in Spec::statistics
};

// Numbers of one field of a block.
std::vector<double> read_field(const std::byte* block, const StateField& field);

}  // namespace wd
