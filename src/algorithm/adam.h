// adam.h: the optimizer of one policy: its moments, and the numbers of the update under way.
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/adam.h"
#include "wd/device.h"

namespace wd {

class Adam {
 public:
  // `shadow`: a bfloat16 tensor that every step writes the parameters to as well, or undefined.
  Adam(const at::Tensor& parameters, const at::Tensor& shadow, double epsilon);

  // Begins an update, and forgets the numbers of the last one unless that refused a step. lr and
  // max_grad_norm (null: no limit) are on the device. If `failed`, on the device, is neither null nor 0, the
  // steps of the update do nothing. Enqueues.
  void begin_update(const double* lr, const double* max_grad_norm, const std::int64_t* failed);
  // One step down the summed gradient of a minibatch, of which `input` [kStepInputNumbers] float64 says the
  // rest. Enqueues.
  void step(const at::Tensor& gradients, const at::Tensor& input);
  // On the device.
  const StepRecord* live_record() const;
  // The numbers of the update so far. Waits for the device.
  StepRecord record() const;

  const at::Tensor& first_moment() const { return first_moment_; }
  const at::Tensor& second_moment() const { return second_moment_; }
  const at::Tensor& steps() const { return steps_; }

 private:
  Device device_;
  at::Tensor parameters_, shadow_, first_moment_, second_moment_;  // [P]
  at::Tensor steps_;                                               // [] float32
  at::Tensor record_, partial_;                                    // [kStepNumbers], working memory, float64
  double epsilon_;
};

}  // namespace wd
