// policy_gradient.h: the gradient of a policy-gradient loss: a surrogate of the return, the error of the
// value, and the entropy.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

#include "wd/detail/loss_sum.h"
#include "wd/learned.h"
#include "wd/policy.h"
#include "wd/trajectory.h"

namespace wd {

// The coefficients of one update; the tensors of Batch complete the kernel's arguments.
struct LossSettings {
  bool ppo = false;
  bool with_value = true;
  float clip = 0.2f;
  float value_clip = 0.0f;
  float value_coeff = 1.0f;
  float entropy_coeff = 0.0f;
  // [4] float32 on the device: clip .. entropy_coeff, used instead of those above; or undefined.
  at::Tensor scheduled;
  at::Tensor advantage_norm;  // [2] float32 {mean, 1 / standard deviation}, or undefined
  at::Tensor policy_weight;   // [1] float32: LossArgs::policy_weight, or undefined
  at::Tensor value_norm;      // Policy::value_norm(), in whose units the value loss is computed
  // With it: Policy::rollout_value_norm(), the units of the values that the rollout has; undefined: the same.
  at::Tensor rollout_value_norm;
};

class PolicyGradient {
 public:
  // The policy must outlive it.
  explicit PolicyGradient(const Policy& policy);
  ~PolicyGradient();
  PolicyGradient(PolicyGradient&&) noexcept;

  // The names of the numbers that accumulate() returns, of which kApproxKl has a limit.
  static SumNames sums();

  // Sets the policy's gradients() to the gradient of the loss summed over the batch, in an order that depends
  // only on N. Returns the sums by LossSum, float64 on the policy's device, which are valid
  // until the next call. Enqueues on CUDA. Calls should_stop before each block, from any thread; once it
  // returns true, the remaining blocks are skipped and the result is meaningless.
  at::Tensor accumulate(const Batch& batch, const LossSettings& settings,
                        const std::function<bool()>& should_stop = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wd
