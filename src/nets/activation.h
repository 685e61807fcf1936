// activation.h: the activation functions of hidden layers, on every device and in every precision.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "kernels/hidden_gradient.h"
#include "wd/config.h"

namespace wd {

// Derivatives are computed from the activated values. On the CPU, numbers may be stored in bfloat16: then
// incoming gradients are rounded first, and so are incoming sums unless `fused`.
struct ActivationFunctions {
  bool fused;  // on a GPU: computed as part of the matrix product
  // On the CPU, in place on n numbers.
  void (*forward)(float* x, std::int64_t n);
  void (*backward)(const float* activated, float* grad, std::int64_t n);
  // On a GPU, in place; and what kernels/hidden_gradient.h computes there.
  void (*forward_gpu)(at::Tensor& x);
  Derivative derivative;
};

const ActivationFunctions& functions_of(Activation activation, Precision precision);

}  // namespace wd
