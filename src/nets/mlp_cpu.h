// mlp_cpu.h: what the perceptrons of both precisions share on the CPU.
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/matmul.h"
#include "wd/config.h"
#include "wd/math.h"

namespace wd {

inline ConstMatrix matrix(const at::Tensor& x) {
  return {x.const_data_ptr<float>(), x.stride(0), x.stride(1)};
}

// f(value, index) becomes the value: a loop that the compiler makes vectors of.
template <typename F>
void each(float* value, std::int64_t n, F f) {
  for (std::int64_t i = 0; i < n; ++i) value[i] = f(value[i], i);
}

inline float relu(float v) { return v < 0.0f ? 0.0f : v; }  // NaN stays NaN

inline void activate(Activation activation, float* x, std::int64_t n) {
  if (activation == kRelu) {
    each(x, n, [](float v, std::int64_t) { return relu(v); });
  } else {
    each(x, n, [](float v, std::int64_t) { return tanh(v); });
  }
}

}  // namespace wd
