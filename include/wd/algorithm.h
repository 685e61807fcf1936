// algorithm.h: how a policy learns: the interface that every algorithm implements, and the learners that run
// the algorithms of all policies. wd/algorithm_settings.h says how an algorithm gets its name;
// wd/rollout_algorithm.h, wd/learned.h and wd/lanes.h have the parts of which it is made.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wd/algorithm_settings.h"
#include "wd/algorithms.h"
#include "wd/config.h"
#include "wd/detail/clock.h"
#include "wd/policy.h"
#include "wd/process_group.h"
#include "wd/trajectory.h"

namespace wd {

class Recording;

// What an algorithm learns from, and with whom.
struct AlgorithmContext {
  std::span<Policy> policies;  // of all policies, which an algorithm may read
  const Trajectory& trajectory;
  int index = 0;  // the policy that it trains, in `policies` and in the trajectory
  bool to_train = true;
  std::uint64_t seed = 1;
  ProcessGroup group;
  // Transitions to learn from instead of what is played (trainer.offline), which outlive the algorithm; or
  // null. Rollouts are then empty.
  const Recording* recorded = nullptr;

  Policy& policy() const { return policies[static_cast<std::size_t>(index)]; }
  const PolicyBuffers& buffers() const { return trajectory.policies()[static_cast<std::size_t>(index)]; }
};

// On a GPU an iteration is captured as a graph and then repeated without the host. So whatever changes from
// one iteration to the next is in device memory: schedules (wd/coefficients.h), counts, the clock. Each phase
// has a begin and an end, so that the sums over ranks that begin() starts are in transit while another policy
// computes. All ranks call these functions in the same order.
class Algorithm {
 public:
  virtual ~Algorithm() = default;

  // Which work an iteration is made of, for algorithms whose iterations differ: 0, 1, ... for a memory that
  // fills before it is learned from, or a target that follows every tenth time. It depends on the number of
  // complete iterations alone, so that all ranks and a resumed run agree. Each stage has a graph of its own
  // for the update; rollouts are the same in all stages.
  virtual int stage(std::int64_t) const { return 0; }
  // The stage of the iteration that follows. Called on the host before each iteration, also if a graph then
  // repeats it.
  virtual void enter(int) {}
  // False if an iteration changes more than state(), or too much to be copied before each. Then nothing stops
  // within an iteration, and trainer.max_seconds is looked at between them.
  virtual bool can_be_undone() const { return true; }
  // Whether the values of the rollout's last observations must be known before begin_prepare().
  virtual bool wants_values() const { return true; }

  // Called before the first step of a rollout. `clock` shows the time before it. Enqueues.
  virtual void begin_rollout(const TrainingClock&) {}
  // In device memory: what the policy's distribution explores with in the rollout (ExplorationSchedules in
  // wd/coefficients.h). Null: nothing. The pointer stays the same.
  virtual const ExplorationNumbers* exploration() const { return nullptr; }

  // Computes what the update reads from a rollout. Enqueue.
  virtual void begin_prepare() = 0;
  virtual void end_prepare() {}

  virtual void begin_update(const TrainingClock& clock) = 0;
  // Returns true if the update has no step left to begin.
  virtual bool is_done() const = 0;
  // Calls should_stop before each block of rows, from any thread.
  virtual void begin_step(const TrainingClock& clock, const std::function<bool()>& should_stop) = 0;
  // Returns false if should_stop() returned true on any rank.
  virtual bool end_step() = 0;

  // Updates do nothing, on all ranks, if this number, in device memory, is not 0 on any rank when they begin.
  virtual void set_skip_flag(const std::int64_t* failed) = 0;
  // In device memory, where it is not 0 after an update that ended early; null, unless an update that did not
  // has shown that all observations of the rollout are finite (Network::shows_not_finite()).
  virtual const double* ended_early() const { return nullptr; }
  // Throws std::runtime_error if an update met losses or a gradient that were not finite; neither that update
  // nor a later one made a step with them. Throws PeerError on ranks that had no part in it. On the CPU,
  // update() itself throws in the same way. Synchronizes on CUDA. All ranks.
  virtual void check() const = 0;

  // Everything that the next iteration depends on, besides the policy's parameters: its own tensors, not
  // copies. Tensors of replicas say so (NamedTensor::per_replica), and the others are the same on all ranks.
  virtual std::vector<NamedTensor> state() const = 0;
  // Called after these tensors were changed from outside. Enqueues.
  virtual void state_changed() {}

  // Called after the policy's weights were changed from outside, before the first iteration, as by
  // --warm_start: networks that follow them become copies. Enqueues.
  virtual void weights_changed() {}

  // What the algorithm remembers of former rollouts after so many complete iterations, if that is too much
  // for state(): tensors [replicas, ...] or views of the part that is filled. Checkpoints write and read them
  // piece by piece, after state(), or leave them out (saving.replay).
  virtual std::vector<NamedTensor> memory(std::int64_t) const { return {}; }
  // Called after these tensors were read, before memory_changed(): says what in them, or in state(), cannot
  // be after so many complete iterations; or nothing. A checkpoint may be a stranger's, so what indexes
  // memory must be looked at here. Synchronizes on CUDA.
  virtual std::string memory_fault(std::int64_t) const { return {}; }
  // Called after these tensors were read. Enqueues.
  virtual void memory_changed() {}
  // Called if there is nothing to read: begins anew after so many complete iterations. Enqueues.
  virtual void forget(std::int64_t) {}

  // Measurements of the last update, under names that wd/metrics.h declares. Synchronizes on CUDA.
  virtual std::vector<std::pair<std::string, double>> metrics() const = 0;
  // What users should know about what has been learned so far, with the remedy; or nothing. The trainer logs
  // it once. Synchronizes on CUDA. All ranks, with the same result.
  virtual std::string warning() const { return {}; }
  // For tests: makes the "loss" or the "gradient" of the next step NaN.
  virtual void poison_next(const std::string&) {}
};

// One policy with its algorithm.
class Learner {
 public:
  // Keeps references to policies and trajectory. Allocates everything that updates need, once. The ranks of
  // the group learn from all their rollouts together: the result is the same as that of one rank with all
  // replicas.
  Learner(std::span<Policy> policies, const Trajectory& trajectory, int index, const PolicySettings& settings,
          std::uint64_t seed, ProcessGroup group = {}, const Recording* recorded = nullptr);

  // Call these before the first step of every rollout: with the number of complete iterations, if the
  // algorithm has stages; and with the time before the rollout. The second enqueues.
  void enter(std::int64_t iteration) { algorithm_->enter(algorithm_->stage(iteration)); }
  void begin_rollout(const TrainingClock& clock) { algorithm_->begin_rollout(clock); }
  // For Policy::ActOptions.
  const ExplorationNumbers* exploration() const { return algorithm_->exploration(); }
  // The algorithm, which holds the state, the memory and the measurements.
  Algorithm& algorithm() const { return *algorithm_; }

 private:
  friend void prepare(std::span<Learner> learners);
  friend bool update(std::span<Learner> learners, const TrainingClock& clock,
                     const std::function<bool()>& should_stop);
  Policy* policy_;
  const Trajectory* trajectory_;
  int index_;
  bool to_train_;
  ProcessGroup group_;
  std::unique_ptr<AlgorithmChoice> settings_;  // the algorithm may keep a reference
  std::unique_ptr<Algorithm> algorithm_;
};

// Both functions process the learners in turn, so that the sums of one learner over ranks are transferred
// while another computes. All ranks.

// Writes masks, and what the algorithms compute from the rollout, to its buffers. The value of the last
// observation must be there already, if they want it.
void prepare(std::span<Learner> learners);
// Runs the steps of all updates over the prepared rollout. Calls should_stop at every chunk; once it returns
// true on any rank, no more steps begin, and update() returns false on all ranks. Either all ranks pass
// should_stop or none does. Schedules and the order of minibatches follow the clock, which shows the time
// before this rollout.
bool update(std::span<Learner> learners, const TrainingClock& clock,
            const std::function<bool()>& should_stop = {});

}  // namespace wd
