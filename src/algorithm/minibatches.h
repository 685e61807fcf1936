// minibatches.h: a rollout's transitions in random order, gathered minibatch by minibatch into memory allocated once.
#pragma once

#include "wd/policy.h"
#include "wd/trajectory.h"

namespace wd {

// All rows of the rollout in place: views, no copy.
Batch whole_batch(const PolicyBuffers& buffers, int steps);

// What is drawn is the (step, replica) pair: all agents of a replica at one step stay together. The order, over the replicas of all
// ranks, is a function of (seed, iteration, epoch) alone; each rank has its own replicas' part of every minibatch.
class Minibatches {
 public:
  // Of rank's `num_envs` replicas among those of world_size ranks.
  Minibatches(const PolicyBuffers& buffers, int steps, int num_envs, int count, int rank = 0,
              int world_size = 1);

  // Draws a new order.
  void shuffle(std::uint64_t seed, std::int64_t iteration, int epoch);
  // Gathers this rank's part of minibatch m of count, which may be empty; the batch is valid until the next call.
  Batch gather(int m);
  int count() const { return count_; }

 private:
  const PolicyBuffers& buffers_;
  void make_room(std::int64_t units);

  std::int64_t num_envs_, first_, all_envs_;  // E, the number of its first replica, replicas of all ranks
  std::int64_t units_;                        // T * E
  std::int64_t all_units_;                    // of all ranks
  int count_;
  std::vector<std::int64_t> order_;   // all units
  std::vector<std::int64_t> begins_;  // [count + 1]: where each minibatch's part of order_tensor_ begins
  at::Tensor order_tensor_;           // [T * E] int64 on the policy's device: this rank's units
  at::Tensor observation_, action_, action_mask_, log_prob_, value_, advantage_, target_, mask_;
};

}  // namespace wd
