// adam.h: Adam (Kingma and Ba 2015) over one flat tensor, by torch's fused kernel of either device.
#pragma once

#include <ATen/core/Tensor.h>

namespace wd {

class Adam {
 public:
  Adam(const at::Tensor& parameters, double epsilon);

  // One step along -gradients; none where `skip`, a float32 on the device, is not 0. Enqueues on CUDA.
  void step(const at::Tensor& gradients, double lr, const at::Tensor& skip);

  const at::Tensor& first_moment() const { return first_moment_; }
  const at::Tensor& second_moment() const { return second_moment_; }
  const at::Tensor& steps() const { return steps_; }

 private:
  at::Tensor parameters_, first_moment_, second_moment_, steps_;
  double epsilon_;
};

}  // namespace wd
