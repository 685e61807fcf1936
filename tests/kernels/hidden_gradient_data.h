// hidden_gradient_data.h: the gradient of a layer's sums and of its bias, row by row on the host, and the
// kernel's call. No CPU kernel does this: on the CPU, networks take other steps.
#pragma once

#include <string>

#include "kernels/hidden_gradient_body.h"
#include "tests/kernels/random_data.h"

namespace wd {

struct GradientCase {
  std::int64_t rows = 0;
  int width = 0, biases = 0, padding = 0;  // entries between rows
  Derivative derivative = Derivative::kNone;
  bool halves_in = false, halves_out = false, in_place = false, writes = true, sums = true;
  bool add = true;
  int matrices = 1;
};

inline std::vector<GradientCase> gradient_cases() {
  std::vector<GradientCase> all;
  for (const std::int64_t rows : {1, 100, 1500})
    for (const int width : {1, 8, 43, 44, 64, 256})
      for (const Derivative derivative : {Derivative::kNone, Derivative::kRelu, Derivative::kTanh})
        for (const int kind : {0, 1, 2}) {
          const bool in = kind == 2, out = kind >= 1;
          const bool in_place = in == out && derivative != Derivative::kNone;
          all.push_back({rows, width, width > 8 ? width - 1 : width, width == 44 ? 4 : 0, derivative, in, out,
                         in_place});
        }
  all.push_back({400, 256, 256, 0, Derivative::kNone, true, true, false, false, true});  // only sums
  all.push_back({400, 64, 64, 8, Derivative::kRelu, true, true, true, true, false});     // no sums
  all.push_back(
      {70, 2100, 2100, 4, Derivative::kRelu, false, false, true, true, true});  // two groups of columns
  all.push_back({9000, 64, 64, 0, Derivative::kRelu, true, true, true, true, true});
  for (const std::int64_t rows : {100, 1500})
    for (const int width : {1, 43, 64})
      all.push_back(
          {rows, width, width, 4, Derivative::kRelu, false, false, true, true, true, rows > 100, 3});
  all.push_back({1500, 64, 60, 0, Derivative::kTanh, true, true, true, true, true, false, 2});
  return all;
}

struct GradientResult {
  std::vector<float> to, bias_grad;

  bool operator==(const GradientResult&) const = default;
};

// Numbers and sums as the kernel orders them.
inline GradientResult expected_gradient(const GradientCase& c, const std::vector<float>& grad,
                                        const std::vector<float>& activated) {
  const int stride = c.width + c.padding, each = c.halves_in ? 8 : 4;
  const bool packs = c.width % each == 0 && stride % each == 0;
  const GradientShape shape = GradientShape::of(c.rows, c.width, packs ? each : 1);
  if (c.matrices > 1) {
    GradientCase one = c;
    one.matrices = 1;
    GradientResult all;
    const auto size = static_cast<std::ptrdiff_t>(c.rows * stride);
    for (int m = 0; m < c.matrices; ++m) {
      const auto part = [&](const std::vector<float>& x) {
        return std::vector<float>(x.begin() + m * size, x.begin() + (m + 1) * size);
      };
      const GradientResult of = expected_gradient(one, part(grad), part(activated));
      all.to.insert(all.to.end(), of.to.begin(), of.to.end());
      all.bias_grad.insert(all.bias_grad.end(), of.bias_grad.begin(), of.bias_grad.end());
    }
    return all;
  }
  GradientResult result{c.in_place ? grad : std::vector<float>(grad.size(), 5.0f),
                        std::vector<float>(static_cast<std::size_t>(c.biases), 2.0f)};
  std::vector<float> parts(static_cast<std::size_t>(shape.parts * c.width)), numbers(grad.size());
  for (std::int64_t i = 0; i < c.rows * stride; ++i) {
    if (i % stride >= c.width) continue;
    const auto at = static_cast<std::size_t>(i);
    const float value = derive(c.derivative, grad[at], activated[at]);
    numbers[at] = c.halves_out ? round_to_bfloat16(value) : value;
    if (c.writes) result.to[at] = numbers[at];
  }
  for (std::int64_t p = 0; p < shape.parts; ++p) {
    const std::int64_t begin = p * shape.rows_per_part, end = std::min(begin + shape.rows_per_part, c.rows);
    for (int column = 0; column < c.width; ++column) {
      for (int lane = 0; lane < shape.lanes; ++lane) {
        float sum = 0.0f;
        for (std::int64_t row = begin + lane; row < end; row += shape.lanes)
          sum += numbers[row * stride + column];
        float& part = parts[p * c.width + column];
        part = lane == 0 ? sum : part + sum;
      }
    }
  }
  constexpr int kSlices = 32;
  for (int column = 0; c.sums && column < c.biases; ++column) {
    float total = 0.0f;
    for (int slice = 0; slice < kSlices; ++slice) {
      float sum = 0.0f;
      for (std::int64_t p = slice; p < shape.parts; p += kSlices) sum += parts[p * c.width + column];
      total = slice == 0 ? sum : total + sum;
    }
    float& sum = result.bias_grad[static_cast<std::size_t>(column)];
    sum = (c.add ? sum : 0.0f) + (shape.parts == 1 ? parts[column] : total);
  }
  return result;
}

template <typename Memory>
GradientResult run_gradient(Memory memory, const GradientCase& c, const std::vector<float>& grad,
                            const std::vector<float>& activated) {
  const int stride = c.width + c.padding;
  const auto put = [&](const std::vector<float>& values, bool halves) -> GradientMatrix {
    const std::int64_t step = c.rows * stride;
    if (!halves) return {memory.put(values), nullptr, stride, step};
    std::vector<std::uint16_t> rounded(values.size());
    std::transform(values.begin(), values.end(), rounded.begin(), to_bfloat16);
    return {nullptr, memory.put(rounded), stride, step};
  };
  HiddenGradientArgs args;
  args.rows = c.rows;
  args.width = c.width;
  args.matrices = c.matrices;
  args.add = c.add;
  args.derivative = c.derivative;
  args.grad = put(grad, c.halves_in);
  args.activated = put(activated, c.halves_in);
  args.to = c.in_place ? args.grad : put(std::vector<float>(grad.size(), 5.0f), c.halves_out);
  const GradientMatrix to = args.to;
  if (!c.writes) args.to = {};
  args.biases = c.biases;
  args.bias_step = c.biases;
  const auto biases = static_cast<std::size_t>(c.matrices * c.biases);
  args.bias_grad = memory.put(std::vector<float>(biases, 2.0f));
  float* const sums = args.bias_grad;
  if (!c.sums) args.bias_grad = nullptr;
  args.parts = memory.template make<float>(HiddenGradientArgs::kMaxParts *
                                           static_cast<std::size_t>(c.matrices * c.width));
  cuda::hidden_gradient(memory.queue().stream, args);
  GradientResult result;
  result.bias_grad = memory.get(sums, biases);
  if (to.floats != nullptr) {
    result.to = memory.get(to.floats, grad.size());
  } else {
    for (const std::uint16_t bits : memory.get(to.halves, grad.size()))
      result.to.push_back(from_bfloat16(bits));
  }
  return result;
}

}  // namespace wd
