// activation.h: the activation functions of hidden layers, on every device and in every precision.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "wd/config.h"

namespace wd {

// Derivatives are computed from the activated values.
struct ActivationFunctions {
  bool fused;  // on a GPU: computed as part of the matrix product
  // On the CPU, in place on n numbers.
  void (*forward)(float* x, std::int64_t n);
  void (*backward)(const float* activated, float* grad, std::int64_t n);
  // The same with results stored in bfloat16. Incoming sums are rounded to bfloat16 first unless `fused`,
  // incoming gradients unless `exact`.
  void (*forward_bf16)(float* x, std::int64_t n);
  void (*backward_bf16)(const float* activated, float* grad, std::int64_t n, bool exact);
  // On a GPU, in place.
  void (*forward_gpu)(at::Tensor& x);
  void (*backward_gpu)(at::Tensor& grad, const at::Tensor& activated);
};

const ActivationFunctions& functions_of(Activation activation);

}  // namespace wd
