// layer_norm_data.h: runs layer normalization and its gradient, on either device.
#pragma once

#include <vector>

#include "kernels/layer_norm.h"
#include "tests/kernels/random_data.h"
#include "wd/detail/bfloat16.h"

namespace wd {

struct NormData {
  std::int64_t rows = 0;
  int width = 0, padding = 0;                               // padding: numbers between rows
  std::vector<float> x, grad;                               // [rows, width + padding]
  std::vector<float> scale, shift, scale_grad, shift_grad;  // [width]; gradients: what they are added to

  std::int64_t stride() const { return width + padding; }
};

inline NormData random_norm(Draws& draws, std::int64_t rows, int width, int padding) {
  const std::int64_t n = rows * (width + padding);
  return {rows,
          width,
          padding,
          draws.uniforms(n, -1.0f, 3.0f),
          draws.uniforms(n, -1.0f, 1.0f),
          draws.uniforms(width, 0.5f, 1.5f),
          draws.uniforms(width, -1.0f, 1.0f),
          draws.uniforms(width, -1.0f, 1.0f),
          draws.uniforms(width, -1.0f, 1.0f)};
}

struct NormResult {
  std::vector<float> normalized, inverse_std, y, grad, scale_grad, shift_grad;
};

// halves: y and the gradient are bfloat16 numbers in memory.
template <typename Memory>
NormResult run_layer_norm(Memory memory, const NormData& data, bool halves = false) {
  const auto n = static_cast<std::size_t>(data.rows * data.stride()),
             rows = static_cast<std::size_t>(data.rows), width = static_cast<std::size_t>(data.width);
  const auto put = [&](const std::vector<float>& values) -> NormMatrix {
    if (!halves) return {.floats = memory.put(values)};
    std::vector<std::uint16_t> rounded;
    for (const float value : values) rounded.push_back(to_bfloat16(value));
    return {.halves = memory.put(rounded)};
  };
  const auto get = [&](const NormMatrix& matrix) {
    if (!halves) return memory.get(matrix.floats, n);
    std::vector<float> values;
    for (const std::uint16_t bits : memory.get(matrix.halves, n)) values.push_back(from_bfloat16(bits));
    return values;
  };
  LayerNormArgs forward{.rows = data.rows, .stride = data.stride(), .width = data.width};
  forward.scale = memory.put(data.scale);
  forward.shift = memory.put(data.shift);
  forward.normalized = memory.put(data.x);
  forward.inverse_std = memory.template make<float>(rows);
  forward.y = put(std::vector<float>(n, 7.0f));
  layer_norm(memory.queue(), forward);

  LayerNormBackwardArgs backward{.rows = data.rows, .stride = data.stride(), .width = data.width};
  backward.scale = forward.scale;
  backward.normalized = forward.normalized;
  backward.inverse_std = forward.inverse_std;
  backward.grad = put(data.grad);
  backward.scale_grad = memory.put(data.scale_grad);
  backward.shift_grad = memory.put(data.shift_grad);
  backward.parts = memory.template make<float>(2 * kNormParts * width);
  layer_norm_backward(memory.queue(), backward);
  return {memory.get(forward.normalized, n),
          memory.get(forward.inverse_std, rows),
          get(forward.y),
          get(backward.grad),
          memory.get(backward.scale_grad, width),
          memory.get(backward.shift_grad, width)};
}

}  // namespace wd
