// replay.h: a replay memory on the device: a ring of the last steps of every replica, from which an algorithm
// learns (Lin 1992; Mnih et al. 2015; prioritized: Schaul et al. 2016, arXiv 1511.05952).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "wd/algorithm.h"
#include "wd/detail/clock.h"
#include "wd/replay_settings.h"
#include "wd/trajectory.h"

namespace wd {

struct ReplayRing;

// Units to learn from, in memory that the next draw overwrites. Rows are [units * A]. Of a network with a
// state they are sequences, `now.sequences`: the learned parts of windows (Kapturowski et al. 2019, ICLR).
struct ReplayBatch {
  Batch now;            // the transitions: observation, action_mask, action, mask
  Batch next;           // n steps later, or where the episode ended: observation, action_mask
  at::Tensor reward;    // float32: discounted sum of the rewards up to there
  at::Tensor discount;  // float32: of the value of what is there; 0 if nothing follows
  at::Tensor weight;    // float32: of the row's loss; 0 where the mask is 0
  at::Tensor entry;     // [units] int64: their places in the ring
  // Of a network with a state: all `steps` of the windows, [windows * steps * A] rows in the order of `now`,
  // with the states that were stored at their beginnings, or 0 if they were recorded. The first `burn_in`
  // steps only lead to the states in `now`, which ReplayAlgorithm computes. successor: [units] int64, which
  // of its block's rows in `all` the unit's `next` is, in units.
  Batch all;
  int steps = 0, burn_in = 0;
  at::Tensor successor;
  // Rows of `all`, or else of `next`, of windows that have so many rows in `now`.
  std::int64_t rows_of_all(std::int64_t rows) const {
    return steps > 0 ? rows / now.sequences.length * steps : rows;
  }
};

// Every replica has its own ring, in the memory of the rank that steps it, and gives as many units, or
// windows of them, to a batch as any other; or, if a batch has fewer than there are replicas, evenly spaced
// replicas give one each.
// Draws depend only on (seed, iteration, number of the draw, replica). So 1, 2 and 4 ranks learn from the
// same units. All memory is allocated by the constructor.
//
// With AlgorithmContext::recorded, the constructor fills the ring from files, and nothing is appended: every
// replica gets an equal piece of the recorded entries, which only its rank reads (Recording::share).
class Replay {
 public:
  // Keeps references to the trajectory. gamma: discount per step; reward_scale multiplies rewards; team: rows
  // are those of TeamTargetArgs (wd/kernels/team.h). Throws UsageError if the batch cannot be shared equally
  // by replicas and ranks, or if too little is recorded; std::runtime_error naming a file that cannot be
  // read.
  Replay(const AlgorithmContext& context, const ReplaySettings& settings, double gamma, double reward_scale,
         bool team = false);

  // Whether anything can be learned in the iteration after so many complete ones, when its rollout has been
  // appended. The same on all ranks.
  bool learns(std::int64_t iteration) const;
  // Appends the rollout, unless the ring has what was recorded; `clock` shows the time before it. Once per
  // iteration, before its draws. Enqueues.
  void append(const TrainingClock& clock);
  // Draws and gathers a batch. `draw` counts the draws of an iteration. importance: [1] float32 on the
  // device, the exponent of weights; not read unless prioritized. Enqueues.
  const ReplayBatch& draw(const TrainingClock& clock, int draw, const float* importance);
  // Prioritized: gives the units of the last draw priorities by their errors, [units * A] float32. Enqueues.
  void set_priorities(const TrainingClock& clock, const at::Tensor& error);

  std::int64_t rows() const { return batch_.weight.size(0); }      // of a batch
  int agents() const { return buffers_.num_agents; }               // whose rows are together
  std::int64_t sequences() const { return windows() * agents(); }  // of a batch
  // Replicas of all ranks, and steps of a rollout.
  TrainingShape shape() const { return {.num_envs = num_envs_, .rollout_steps = trajectory_.steps()}; }
  // Batches to learn from in an iteration.
  std::int64_t batches() const { return settings_.batches(shape()); }

  // Transitions of all replicas that are there after so many complete iterations; and the mean age of those
  // of the last batch [environment steps], of this rank, NaN if they were recorded. The second synchronizes
  // on CUDA.
  std::int64_t size(std::int64_t iteration) const { return filled(iteration) * num_envs_; }
  double mean_age(std::int64_t iteration) const;

  // Units of the newest entries of some replicas, evenly spaced and of all ranks at most about `units`,
  // behind which the discounted return of an agent is known (Followed in src/algorithm/measure.h): their
  // rows, with the mask of where it is, and that return, [rows] float64 on the CPU; of a network with a
  // state, sequences of one step from the states that were stored there. Synchronizes on CUDA.
  // All ranks.
  struct Known {
    Batch batch;
    at::Tensor value;
  };
  Known known_returns(std::int64_t iteration, std::int64_t units, const ProcessGroup& group) const;
  // The largest |reward| in the memories of all ranks, before reward_scale; of teams, times the number of
  // agents. Synchronizes on CUDA. All ranks.
  double largest_reward(const ProcessGroup& group) const;

  // For the functions of Algorithm with these names. The ring is memory; since when it fills is state.
  std::vector<NamedTensor> state() const;
  void state_changed();  // synchronizes on CUDA
  std::vector<NamedTensor> memory(std::int64_t iteration) const;
  std::string memory_fault(std::int64_t iteration) const;
  void memory_changed();
  void forget(std::int64_t iteration);

  // Rows of a batch that one worker draws: the mean over workers.
  static double rows(const WorkerShape& worker, const ReplaySettings& settings);
  // Bytes that one worker allocates.
  static double bytes(const WorkerShape& worker, const ReplaySettings& settings);

 private:
  void allocate();
  static bool remembers(const BufferField& field, const PolicyLayout& layout, bool recorded);
  std::int64_t windows() const { return units_ / length_; }
  std::int64_t span() const { return settings_.span(length_); }
  at::Tensor ring_of(at::Tensor PolicyBuffers::* tensor) const;  // undefined if it is not remembered
  void load(const Recording& recording);
  void admit_recorded();
  std::int64_t filled(std::int64_t iteration) const;  // entries of each replica
  std::string entries_fault(std::int64_t e, std::int64_t first, std::int64_t n) const;
  ReplayRing ring(const TrainingClock& clock) const;

  const Trajectory& trajectory_;
  const PolicyBuffers& buffers_;
  ReplaySettings settings_;
  float gamma_, reward_scale_;
  bool team_;
  std::uint64_t seed_;
  std::uint32_t policy_;
  Device device_;
  std::int64_t num_envs_, first_replica_;     // of all ranks; the first one of this rank
  Sequences sequences_;                       // length 0: the network has no state
  std::int64_t length_ = 1;                   // units of a window
  std::int64_t units_, per_replica_, every_;  // of a batch; windows of a replica; of so many replicas, one
  std::int64_t recorded_ =
      0;  // entries of each replica that were read from files; 0: the ring is appended to
  std::int64_t begun_here_ = 0;  // a copy of begun_ on the host
  struct Remembered {
    const BufferField* field;
    at::Tensor rows;  // [E, C, ...]: as a step of the trajectory has them
  };
  std::vector<Remembered> remembered_;
  // [E, C, A]; the tree [E, 2 leaves]; [E]; [1].
  at::Tensor flags_, tree_, highest_, begun_;
  at::Tensor next_entry_, all_entries_, first_entry_;
  ReplayBatch batch_;
};

}  // namespace wd
