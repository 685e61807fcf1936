// adam.h: the Adam optimizer of one policy: its moments, and the record of the current update.
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/adam.h"
#include "wd/device.h"

namespace wd {

class Adam {
 public:
  // `shadow`: a bfloat16 tensor to which every step also writes the parameters, or undefined.
  Adam(const at::Tensor& parameters, const at::Tensor& shadow, double epsilon);

  // Begins an update. Resets the record of the last update unless that update refused a step. lr and
  // max_grad_norm (null: no limit) are in device memory. If `failed` is not null and the number there (in
  // device memory) is not 0, the steps of the update do nothing. Enqueues.
  void begin_update(const double* lr, const double* max_grad_norm, const std::int64_t* failed);
  // Makes one step along the negative summed gradient of a minibatch, whose losses it records first.
  // Enqueues.
  void step(const at::Tensor& gradients, const RecordLossArgs& losses);
  // In device memory.
  const StepRecord* live_record() const;
  // Returns the record of the update so far. Waits for the device.
  StepRecord record() const;
  // The norm of the update's last step, divided by that of the parameters; NaN if it made none. Waits for the
  // device.
  double step_ratio() const;

  const at::Tensor& first_moment() const { return first_moment_; }
  const at::Tensor& second_moment() const { return second_moment_; }
  const at::Tensor& steps() const { return steps_; }

 private:
  Device device_;
  at::Tensor parameters_, shadow_, first_moment_, second_moment_;  // [P]
  at::Tensor steps_;                                               // [] int64
  at::Tensor record_, partial_;  // [kStepNumbers] and working memory, float64
  double epsilon_;
};

}  // namespace wd
