// activation.h: what a hidden layer does with its sums, on every device and in every precision.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "wd/config.h"

namespace wd {

// Derivatives are told from the activated values.
struct ActivationFunctions {
  bool fused;  // on a GPU a part of the product
  // On n numbers in place, on the CPU.
  void (*forward)(float* x, std::int64_t n);
  void (*backward)(const float* activated, float* grad, std::int64_t n);
  // The same where results are stored in bfloat16, and sums and gradients that come in are, too, unless they
  // are fused or `exact`.
  void (*forward_bf16)(float* x, std::int64_t n);
  void (*backward_bf16)(const float* activated, float* grad, std::int64_t n, bool exact);
  // On a GPU, in place.
  void (*forward_gpu)(at::Tensor& x);
  void (*backward_gpu)(at::Tensor& grad, const at::Tensor& activated);
};

const ActivationFunctions& functions_of(Activation activation);

}  // namespace wd
