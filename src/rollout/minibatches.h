// minibatches.h: a rollout's transitions in random order, gathered one minibatch at a time into memory that
// is allocated once.
#pragma once

#include "kernels/assign_minibatches.h"
#include "wd/algorithm_settings.h"
#include "wd/detail/clock.h"
#include "wd/trajectory.h"

namespace wd {

// All rows of the rollout as views, without a copy.
Batch whole_batch(const PolicyBuffers& buffers, int steps);

// A unit is a pair of a step and a replica: all agents of a replica at one step stay together. Each replica's
// steps are shuffled and assigned to the minibatches round-robin (kernels/assign_minibatches.h), all of them
// or a share, which depends only on (seed, iteration, epoch, replica). So a minibatch holds the same units on
// any number of ranks, the ranks' parts of it are equal to within one unit, and shapes never change. In a
// game with turns whose two agents have one policy, the target of who waits is minus that of who moves:
// gathered units have one row.
class Minibatches {
 public:
  // `num_envs`: the replicas of this rank; every rank has the same number. If the policy learns from
  // sequences, a unit is a sequence of all agents of a replica instead of a step. `share`: units of each
  // replica that an epoch has (TrainingShape::share()); 0: all. `wait`: the choice by which an agent waits,
  // if units have one row; -1: they have those of all agents.
  Minibatches(const PolicyBuffers& buffers, int steps, int num_envs, int count, int rank = 0,
              Sequences sequences = {}, std::int64_t share = 0, int wait = -1);

  // Draws the order for the clock's iteration. Enqueues.
  void shuffle(std::uint64_t seed, const TrainingTime* time, int epoch);
  // Gathers this rank's part of minibatch m, which may be empty. The batch is valid until the next call.
  Batch gather(int m);
  int count() const { return assignment_.count; }
  // Whether rows are copied; if not, the one minibatch has the whole rollout.
  bool gathers() const { return order_.defined(); }

  // Whether rows are copied: not if one minibatch has all units in any order. `share` and `all`: units of
  // each replica.
  static bool gathers(int count, bool sequences, std::int64_t share, std::int64_t all) {
    return count > 1 || sequences || share < all;
  }
  // Rows that are copied of a field for each row of others: a sequence has one state.
  static double copied_part(const BufferField& field, std::int64_t steps_together) {
    return field.of_sequence ? 1.0 / static_cast<double>(steps_together) : 1.0;
  }

  // ZeroSumTurns::wait if a gathered unit of this policy has one row, else -1.
  static int wait_of(const Spec& spec, const PolicyLayout& policy, const AlgorithmTraits& traits);

  static double part_of_rows(const Spec& spec, const PolicyLayout& policy, const AlgorithmTraits& traits) {
    return wait_of(spec, policy, traits) >= 0 ? 0.5 : 1.0;
  }

 private:
  std::int64_t size_of(int m) const;  // [units] in this rank's part

  const PolicyBuffers& buffers_;
  Sequences sequences_;
  std::int64_t length_;  // steps per unit
  AssignMinibatchesArgs assignment_;
  std::int64_t units_;  // in an epoch of this rank
  at::Tensor order_;    // [M, ceil(units / M)] int64 on the policy's device: units of each minibatch
  // With sequences, int64: t E + e of each gathered row, and of the first one of each sequence.
  at::Tensor steps_;  // [length * ceil(units / M)]
  at::Tensor first_;  // [ceil(units / M)]
  int wait_;
  at::Tensor row_;        // [ceil(units / M)] int64: the row of each unit, if it has one
  Transitions gathered_;  // [steps of the largest minibatch, or its sequences, A, ...]
};

}  // namespace wd
