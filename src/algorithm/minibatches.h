// minibatches.h: a rollout's transitions in random order, gathered minibatch by minibatch into memory allocated once.
#pragma once

#include "wd/policy.h"
#include "wd/trajectory.h"

namespace wd {

// All rows of the rollout in place: views, no copy.
Batch whole_batch(const PolicyBuffers& buffers, int steps);

// What is drawn is the (step, replica) pair: all agents of a replica at one step stay together. The order is a function of
// (seed, iteration, epoch) alone.
class Minibatches {
 public:
  Minibatches(const PolicyBuffers& buffers, int steps, int num_envs, int count);

  // Draws a new order.
  void shuffle(std::uint64_t seed, std::int64_t iteration, int epoch);
  // Gathers minibatch m of count; the batch is valid until the next call.
  Batch gather(int m);
  int count() const { return count_; }

 private:
  const PolicyBuffers& buffers_;
  std::int64_t units_;  // T * E
  int count_;
  std::vector<std::int64_t> order_;
  at::Tensor order_tensor_;  // [T * E] int64 on the policy's device
  at::Tensor observation_, action_, action_mask_, log_prob_, value_, advantage_, target_, mask_;
};

}  // namespace wd
