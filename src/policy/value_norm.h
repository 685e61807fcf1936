// value_norm.h: the units in which a network computes values (PopArt, van Hasselt et al. 2016).
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "wd/device.h"
#include "wd/named_tensor.h"
#include "wd/network.h"

namespace wd {

class ValueNorm {
 public:
  // `value` is the row of the output layer that computes the value: weight [inputs], bias [1], float32.
  ValueNorm(const Layer& value, Device device);

  // [2] float32 {mean, deviation}: a value is output * deviation + mean.
  const at::Tensor& norm() const { return norm_; }
  // Merges the moments of new targets (kernels/running.h), and changes weight and bias so that values stay
  // what they were. Enqueues.
  void merge(const at::Tensor& moments);
  std::vector<NamedTensor> statistics() const { return {{"value_norm", norm_}, {"value_moments", running_}}; }

 private:
  Layer value_;
  Device device_;
  at::Tensor norm_, before_, running_;
};

}  // namespace wd
