// minibatches.h: a rollout's transitions in random order, gathered minibatch by minibatch into memory
// allocated once.
#pragma once

#include "kernels/deal.h"
#include "wd/clock.h"
#include "wd/trajectory.h"

namespace wd {

// All rows of the rollout in place: views, no copy.
Batch whole_batch(const PolicyBuffers& buffers, int steps);

// What is drawn is a unit, the pair of a step and a replica: all agents of a replica at one step stay
// together. Each replica's steps are shuffled and dealt to the minibatches in turn (kernels/deal.h), a
// function of (seed, iteration, epoch, replica) alone. So a minibatch holds the same units on any number of
// ranks, each has an equal part of it to within one unit, and shapes never change.
class Minibatches {
 public:
  // Of rank's `num_envs` replicas, where every rank has as many. If the policy learns from sequences, these
  // take the place of the steps: a unit is a sequence of all agents of a replica.
  Minibatches(const PolicyBuffers& buffers, int steps, int num_envs, int count, int rank = 0,
              Sequences sequences = {});

  // Draws the order of the clock's iteration. Enqueues.
  void shuffle(std::uint64_t seed, const TrainingTime* time, int epoch);
  // Gathers this rank's part of minibatch m of count, which may be empty; the batch is valid until the next
  // call.
  Batch gather(int m);
  int count() const { return deal_.count; }

 private:
  std::int64_t size_of(int m) const;  // [units] of this rank's part
  bool gathers() const { return order_.defined(); }

  const PolicyBuffers& buffers_;
  Sequences sequences_;
  std::int64_t length_;  // steps of a unit
  DealArgs deal_;
  std::int64_t units_;    // T * E / length
  at::Tensor order_;      // [M, ceil(units / M)] int64 on the policy's device: units of each minibatch
  at::Tensor steps_;      // [length * ceil(units / M)] int64, with sequences: t E + e of each gathered row
  Transitions gathered_;  // [steps of the largest minibatch, A, ...]
};

}  // namespace wd
