// hidden_gradient.cuh: what the kernels of hidden_gradient.h share.
#pragma once

#include "kernels/hidden_gradient_body.h"
#include "wd/detail/for_each.cuh"

namespace wd::cuda {

// kEach neighboring numbers in memory, in packs of up to 16 bytes.
template <typename Number, int kEach>
struct alignas(sizeof(Number) * kEach < 16 ? sizeof(Number) * kEach : 16) Numbers {
  Number at[kEach];
};

template <typename Number, int kEach>
__device__ Numbers<Number, kEach> load(const Number* from) {
  return *reinterpret_cast<const Numbers<Number, kEach>*>(from);
}

// ReLU rounds nothing.
template <typename Out, Derivative kDerivative, typename In>
__device__ Out derived(In of_y, In y) {
  Out result{};
  if constexpr (kDerivative == Derivative::kRelu && sizeof(In) == sizeof(Out)) {
    result = load_number(&y) <= 0.0f ? Out{} : of_y;
  } else if constexpr (kDerivative == Derivative::kNone) {
    store_number(&result, load_number(&of_y));
  } else {
    store_number(&result, derive(kDerivative, load_number(&of_y), load_number(&y)));
  }
  return result;
}

template <typename Number>
__device__ Number* numbers_of(const GradientMatrix& matrix) {
  const std::int64_t first = blockIdx.z * matrix.step;
  if constexpr (sizeof(Number) == 4) {
    return matrix.floats + first;
  } else {
    return matrix.halves + first;
  }
}

__device__ inline float* parts_of(const HiddenGradientArgs& args) {
  return args.parts + blockIdx.z * HiddenGradientArgs::kMaxParts * args.width;
}

__device__ inline void add_to_bias(const HiddenGradientArgs& args, int column, float total) {
  float* const sum = args.bias_grad + blockIdx.z * args.bias_step + column;
  *sum = args.add ? *sum + total : total;
}

// Enqueues the sums of the parts' sums of columns.
void add_parts(void* stream, const HiddenGradientArgs& args, std::int64_t parts);

}  // namespace wd::cuda
