// replicas.h: the replicas of one environment on one worker: their memory, and one call that steps all of
// them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "wd/device.h"
#include "wd/environment.h"
#include "wd/outside.h"

namespace wd {

class HostRows;

struct ReplicasOptions {
  int num_envs = 1;                 // on this worker
  std::uint32_t first_replica = 0;  // global id of the first one
  std::uint64_t seed = 1;
  std::optional<std::uint64_t> start_seed;  // seed of the draws in reset(); none: seed
  ResetMode reset = ResetMode::kRandom;
  std::uint32_t pool_size = 0;  // kPool: number of starts in the pool
  std::string starts;           // kGiven: a JSON list of {field: value or [values by agent]}
  bool staggered = false;       // first episodes end after staggered_steps()
  bool pictures = false;        // picture() will be called
  bool notes_dropped = false;   // keep the rewards that scatter() dropped, for dropped()
  Device device;
};

// Number of steps in the first episode of a replica, by its global id, if resets are staggered: 1 to
// time_limit, which is a whole episode. The lengths of any number of consecutive replicas are spread evenly
// (docs/design/0015-staggered-resets.md).
int staggered_steps(std::uint64_t seed, std::uint32_t replica, int time_limit);

class Replicas {
 public:
  // The environment must outlive the replicas, and its parameters must not change. Throws UsageError if
  // parameters or starts contradict each other.
  Replicas(const Environment& environment, ReplicasOptions options);

  int num_envs() const { return options_.num_envs; }
  const Spec& spec() const { return spec_; }
  const StateLayout& layout() const { return layout_; }
  Device device() const { return options_.device; }
  // Whether the host steps them, whatever the device: nothing that includes step() can be captured in a
  // graph.
  bool is_outside() const { return outside_ != nullptr; }
  const ReplicasOptions& options() const { return options_; }

  // Steps every replica once, or resets it if its episode has ended. The caller fills in roles and flags of
  // `rows`: row t for actions, rewards and flags, row t + 1 for what agents observe. With null flags and
  // rewards, this is the very first reset. Enqueues on CUDA; on the CPU, returns when done.
  void step(StepView rows);

  // The next step of these replicas begins an episode: [E] bool on the device; undefined: of all. Enqueues.
  void begin_episodes(const at::Tensor& chosen = {});
  // All episodes are those of another seed from now on, from the first; the next step resets all replicas.
  void restart(std::uint64_t seed);

  // The state of all replicas, [E, block_bytes] bytes on the device: everything that a checkpoint needs of
  // them.
  at::Tensor blocks() const { return blocks_; }

  // The values of a field of one replica. Copies from the device.
  std::vector<double> read(int replica, const StateField& field) const;
  ReplicaHeader header(int replica) const;
  // Whether the first episode of a replica is cut short, and therefore not representative of others.
  bool is_first_cut(int replica) const { return first_steps(replica) > 0; }
  // Whether agents are in the game, [num_agents] 0 or 1, by the state in this block on the host.
  std::vector<std::uint8_t> in_game(const std::byte* block) const;
  // The latest rewards that were dropped because their agents were out of the game: [E, num_agents, 4] int32
  // on the device, each a DroppedReward. Undefined if they are not noted.
  at::Tensor dropped() const { return dropped_; }
  // What a replica outside (wd/outside.h) looks like after the last step. Of others, and of those that show
  // nothing, the width is 0.
  Picture picture(int replica) const;
  // Overwrites fields of one replica, on the CPU only. `json`: {field: value or [values]}. Throws UsageError.
  void write(int replica, const std::string& json);

 private:
  void write_fresh_headers();
  void make_given_starts();
  RandomKey start_key() const;
  void complete(StepView& rows) const;
  int first_steps(int replica) const;
  void find_statistics();

  void step_outside(const StepView& rows);

  const Environment& environment_;
  ReplicasOptions options_;
  Spec spec_;
  StateLayout layout_;
  at::Tensor blocks_;
  at::Tensor scratch_;                        // CUDA: for replicas that do not fit in shared memory
  at::Tensor images_;                         // kGiven
  at::Tensor dropped_;                        // if they are noted
  std::shared_ptr<OutsideReplicas> outside_;  // wd/outside.h; null: their state is in blocks_
  std::shared_ptr<HostRows> host_rows_;       // outside_ on a GPU
  std::vector<StatisticView> statistics_;     // as in Spec::statistics
};

// The values of one field of a block.
std::vector<double> read_field(const std::byte* block, const StateField& field);

}  // namespace wd
