// adam.h: the optimizer of one policy: its moments, and the numbers of the update under way.
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/adam.h"
#include "src/algorithm/coefficients.h"
#include "wd/device.h"

namespace wd {

class Adam {
 public:
  // `shadow`: a bfloat16 tensor that every step writes the parameters to as well, or undefined.
  Adam(const at::Tensor& parameters, const at::Tensor& shadow, double epsilon);

  // What every step of the coming update reads; the numbers of the last update are forgotten. Enqueues.
  // Where `failed`, on the device, is not null and not 0, the update does nothing.
  struct Limits {
    bool norm = true, kl = false;
  };
  void begin_update(const Coefficients& coefficients, Limits limits, const std::int64_t* failed);
  // One step down the summed gradient of a minibatch with these totals, [kNumLossSums] float64 (kernels/adam.h). Enqueues.
  void step(const at::Tensor& gradients, const at::Tensor& totals);
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
