// value_norm.h: the units in which a network computes values (PopArt, van Hasselt et al. 2016; without a
// known output layer, ValueNorm of Yu et al. 2022: values change a little when the units do).
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "wd/device.h"
#include "wd/named_tensor.h"
#include "wd/network.h"

namespace wd {

class ValueNorm {
 public:
  // `value` is the row of the output layer that computes the value: weight [inputs], bias [1], float32; or
  // undefined, if it is not known. Values are what the weights compute.
  ValueNorm(const Layer& value, Device device);

  // [2] float32 {mean, deviation}: a value is output * deviation + mean.
  const at::Tensor& norm() const { return norm_; }
  // Of weights that compute values in units of 1 around 0, as at first: values stay what they are.
  void keep_values();
  // Of weights that mean nothing yet: until the first merge values are nearly 0, and then they are what the
  // weights compute in the units of those targets. Otherwise the targets of the first rollouts, which
  // bootstrap from values, would give the units the size of the first weights, whatever the size of rewards
  // is.
  void begin_anew();
  // [2]: the units of the outputs of the last rollout, after the merge of its targets.
  const at::Tensor& rollout_norm() const { return unit_; }
  // Merges the moments of new targets (kernels/running.h), and changes weight and bias, if they are known,
  // so that values stay what they were. Enqueues.
  void merge(const at::Tensor& moments);
  std::vector<NamedTensor> statistics() const { return {{"value_norm", norm_}, {"value_moments", running_}}; }

 private:
  Layer value_;
  Device device_;
  at::Tensor norm_, before_, unit_, running_;
};

}  // namespace wd
