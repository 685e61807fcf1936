// assign_minibatches.h: shuffles the steps of every replica, and assigns them, or a share of them, to the
// minibatches round-robin.
#pragma once

#include "wd/kernels/clock.h"
#include "wd/queue.h"
#include "wd/random.h"

namespace wd {

// A unit is one step t of one replica e, where e counts over all ranks of the job. Replica e shuffles its T
// steps and uses the first S of them; the p-th goes to minibatch (e S + p) mod M. So any range of replicas,
// and with it each rank, has a part of every minibatch that is known in advance and varies by at most one
// unit, whatever the random numbers are.
struct AssignMinibatchesArgs {
  int steps = 0, num_envs = 0;         // T, E of this rank
  int count = 1;                       // M
  int share = 0;                       // S; 0: T
  std::int64_t first_replica = 0;      // first replica of this rank, in the whole job
  std::int64_t capacity = 0;           // max units of this rank per minibatch: ceil(S E / M)
  RandomKey key = {};                  // for RandomUse::kShuffle
  std::uint64_t iteration = 0;         // below 2^48
  const TrainingTime* time = nullptr;  // if not null, its iteration is added
  std::uint32_t epoch = 0;             // below 2^16
  std::int64_t* order = nullptr;       // [M, capacity]: units as t E + e; a last column may stay unwritten
};

// S
WD_FN int units_per_replica(const AssignMinibatchesArgs& args) {
  return args.share > 0 ? args.share : args.steps;
}

// The minibatch of this rank's first unit; the others follow round-robin.
WD_FN std::int64_t first_minibatch(const AssignMinibatchesArgs& args) {
  const std::int64_t M = args.count;
  return args.first_replica % M * (units_per_replica(args) % M) % M;
}

// Enqueues.
WD_DECLARE_KERNEL(assign_minibatches, AssignMinibatchesArgs)

}  // namespace wd
