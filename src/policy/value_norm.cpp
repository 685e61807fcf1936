// value_norm.cpp: merges moments of targets, and preserves the values of the network.
#include "src/policy/value_norm.h"

#include <ATen/ATen.h>

#include "kernels/running.h"
#include "src/device/device.h"

namespace wd {

// The share of the newest rollout: about the last 20 count. The values of the policy of long ago say little
// about today's, and a rollout has enough rows for good moments of its own.
constexpr double kRate = 0.05;

// Values of earlier weights are kept, though their units count for nothing in those that follow.
constexpr double kOfWeights = 1e-9;

ValueNorm::ValueNorm(const Layer& value, Device device)
    : value_(value),
      device_(device),
      norm_(at::empty({2}, at::TensorOptions().dtype(at::kFloat).device(torch_device(device)))),
      before_(at::zeros_like(norm_)),
      unit_(at::zeros_like(norm_)),
      running_(at::empty({kNumRunning}, norm_.options().dtype(at::kDouble))) {
  keep_values();
}

void ValueNorm::keep_values() {
  norm_.copy_(at::tensor({0.0f, 1.0f}));
  unit_.copy_(norm_);
  running_.copy_(at::tensor({kOfWeights, 0.0, 1.0}, at::kDouble));
}

void ValueNorm::begin_anew() {
  norm_.copy_(at::tensor({0.0f, 1e-4f}));
  unit_.copy_(norm_);
  running_.zero_();
}

void ValueNorm::merge(const at::Tensor& moments) {
  const Queue queue = current_queue(device_);
  merge_moments(queue, {.moments = moments.const_data_ptr<double>(),
                        .rate = kRate,
                        .running = running_.mutable_data_ptr<double>(),
                        .norm = norm_.mutable_data_ptr<float>(),
                        .before = before_.mutable_data_ptr<float>(),
                        .unit = unit_.mutable_data_ptr<float>(),
                        .rescales = value_.weight.defined()});
  if (!value_.weight.defined()) return;
  rescale_output(queue, {.width = value_.weight.numel(),
                         .before = before_.const_data_ptr<float>(),
                         .norm = norm_.const_data_ptr<float>(),
                         .weight = value_.weight.mutable_data_ptr<float>(),
                         .bias = value_.bias.mutable_data_ptr<float>()});
}

}  // namespace wd
