// loss.h: policy, value and entropy losses of a chunk of rows, and their gradients with respect to the
// network's output.
#pragma once

#include "kernels/sample.h"
#include "wd/detail/loss_sum.h"

namespace wd {

// The coefficients of the loss at one time of training.
struct LossCoefficients {
  float clip = 0.2f;
  float value_clip = 0.0f;   // 0: off
  float value_coeff = 1.0f;  // of (value - target)^2
  float entropy_coeff = 0.0f;
};

struct LossArgs {
  std::int64_t rows = 0;
  ActionLayout layout{};
  // Clipped surrogate (Schulman et al. 2017, eq. 7), with the logarithm of the ratio clamped to [-20, 20],
  // beyond which the gradient is 0. If false: -log_prob * advantage.
  bool ppo = false;
  bool with_value = true;  // REINFORCE has no value loss
  LossCoefficients fixed{};
  const LossCoefficients* scheduled = nullptr;  // on the device, used instead of `fixed`; or null
  NetworkRows networks{};
  const std::int32_t* action = nullptr;       // [rows, action_width]
  const std::uint8_t* action_mask = nullptr;  // [rows, columns], or null
  // [1]: the policy's part of the loss and its sums are multiplied by it, and are 0 in rows whose heads have
  // one legal choice each; or null: such rows count as the others do. Needs action_mask.
  const float* policy_weight = nullptr;
  const float* old_log_prob = nullptr;    // [rows]
  const float* old_value = nullptr;       // [rows]
  const float* advantage = nullptr;       // [rows]
  const float* advantage_norm = nullptr;  // {mean, 1 / standard deviation}, or null
  const float* target = nullptr;          // [rows]
  // {mean, deviation}, in units of which the value loss is computed, as networks.value is; or null. If
  // value_is_plain, networks.value has the units of the target instead.
  const float* value_norm = nullptr;
  const float* old_norm = nullptr;  // with it: the units of old_value, and of a plain value
  bool value_is_plain = false;
  const std::uint8_t* mask = nullptr;  // [rows]: rows with 0 get gradient 0 and do not count
  Rows<float> output_grad{};           // gradient of the sum, not of the mean
  Rows<float> value_grad{};
  Rows<float> log_std_grad{};  // [components]; Gaussians only
  float* row_sums = nullptr;   // [kNumLossSums, rows]
};

// Enqueues.
WD_DECLARE_KERNEL(loss, LossArgs)

}  // namespace wd
