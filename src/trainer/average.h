// average.h: a moving average of a policy's weights (policy.NAME.average).
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "wd/policy.h"

namespace wd {

// Moves once after each iteration's update, however many steps the optimizer made in it: weights that refused
// steps left alone then count as often on a GPU, which makes such steps without effect, as on a CPU.
class WeightsAverage {
 public:
  // Begins as a copy of the weights. 0: there is no average. Keeps a reference to the policy.
  WeightsAverage(const Policy& policy, double average);

  bool is_on() const { return !averages_.empty(); }
  // Becomes a copy of the weights, or moves towards them. Enqueue.
  void begin() { move(1.0f); }
  void move() { move(tau_); }
  // Of the network, then of the critics if there are any: [parameters] each.
  const std::vector<at::Tensor>& tensors() const { return averages_; }
  // Views of these under the names of Policy::saved(), and copies of the policy's statistics: all that a
  // policy needs to act.
  std::vector<NamedTensor> saved() const;

 private:
  void move(float tau);

  const Policy& policy_;
  float tau_;
  std::vector<at::Tensor> weights_, averages_;
};

}  // namespace wd
