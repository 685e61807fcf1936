// hidden_gradient_data.h: the gradient of a layer's sums and of its bias, row by row on the host, and the
// kernel's call. No CPU kernel does this: on the CPU, networks take other steps.
#pragma once

#include <cmath>
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

// Matrices of these numbers on the device, their rows `stride` apart.
template <typename Memory>
GradientMatrix put_matrices(Memory& memory, const std::vector<float>& values, bool halves, int stride,
                            std::int64_t step) {
  if (!halves) return {memory.put(values), nullptr, stride, step};
  std::vector<std::uint16_t> rounded(values.size());
  std::transform(values.begin(), values.end(), rounded.begin(), to_bfloat16);
  return {nullptr, memory.put(rounded), stride, step};
}

template <typename Memory>
std::vector<float> get_numbers(Memory& memory, const GradientMatrix& matrices, std::size_t count) {
  if (matrices.floats != nullptr) return memory.get(matrices.floats, count);
  std::vector<float> numbers;
  for (const std::uint16_t bits : memory.get(matrices.halves, count)) numbers.push_back(from_bfloat16(bits));
  return numbers;
}

template <typename Memory>
GradientResult run_gradient(Memory memory, const GradientCase& c, const std::vector<float>& grad,
                            const std::vector<float>& activated) {
  const int stride = c.width + c.padding;
  const auto put = [&](const std::vector<float>& values, bool halves) {
    return put_matrices(memory, values, halves, stride, c.rows * stride);
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
  result.to = get_numbers(memory, to, grad.size());
  return result;
}

// --- products ---------------------------------------------------------------------------------------------

struct ProductCase {
  std::int64_t rows = 0;
  int inner = 0, width = 0, biases = 0, padding = 0;  // NaNs behind a row of grad
  Derivative derivative = Derivative::kNone;
  bool halves = false, sums = true, add = true;
  int matrices = 1;
};

inline std::vector<ProductCase> product_cases() {
  std::vector<ProductCase> all;
  for (const bool halves : {false, true})
    for (const int inner : {1, 43, 64, 128})
      for (const int width : {8, 32, 64, 104, 160})
        for (const std::int64_t rows : {1, 100, 700})
          all.push_back({rows, inner, width, width > 8 ? width - 3 : width,
                         halves ? 7 - (inner + 7) % 8 : 3 - (inner + 3) % 4,
                         rows == 100 ? Derivative::kTanh : Derivative::kRelu, halves});
  all.push_back({300, 256, 256, 256, 0, Derivative::kRelu, true});
  all.push_back({3000, 24, 64, 64, 8, Derivative::kRelu, true, true, false});
  all.push_back({90, 16, 40, 40, 0, Derivative::kNone, true, true, true});
  all.push_back({200, 20, 64, 64, 4, Derivative::kRelu, false, false});  // no sums
  for (const bool halves : {false, true})
    all.push_back({600, 40, 64, 60, 0, Derivative::kTanh, halves, true, true, 3});
  return all;
}

// [matrices, rows, columns + padding]
struct ProductData {
  std::vector<float> grad, weight, activated;
};

// Numbers of which all sums are exact in every order. Those of float32 are so near to integers that rounding
// them to the nearest tf32 number gives these; cutting digits off does not.
inline ProductData exact_product_data(const ProductCase& c, Draws& draws) {
  const auto draw = [&](std::int64_t count, int largest, bool near) {
    std::vector<float> numbers;
    for (const float u : draws.uniforms(count, 0.0f, 1.0f)) {
      const float whole = std::floor(u * static_cast<float>(2 * largest + 1)) - static_cast<float>(largest);
      numbers.push_back(near ? whole * (1.0f - 0x1p-13f) : whole);
    }
    return numbers;
  };
  ProductData data;
  data.grad = draw(c.matrices * c.rows * (c.inner + c.padding), 2, !c.halves);
  for (std::size_t i = 0; i < data.grad.size(); ++i)
    if (static_cast<int>(i) % (c.inner + c.padding) >= c.inner) data.grad[i] = std::nanf("");
  data.weight = draw(std::int64_t{c.matrices} * c.inner * c.width, 3, !c.halves);
  data.activated = draw(c.matrices * c.rows * c.width, 2, false);
  for (float& y : data.activated) y *= 0.5f;
  return data;
}

inline GradientResult expected_product(const ProductCase& c, const ProductData& data) {
  GradientResult result;
  for (int m = 0; m < c.matrices; ++m) {
    std::vector<float> sums(static_cast<std::size_t>(c.width));
    for (std::int64_t row = 0; row < c.rows; ++row) {
      const float* const grad = data.grad.data() + (m * c.rows + row) * (c.inner + c.padding);
      for (int column = 0; column < c.width; ++column) {
        double sum = 0.0;
        for (int k = 0; k < c.inner; ++k)
          sum += std::round(grad[k]) *
                 std::round(data.weight[(std::int64_t{m} * c.inner + k) * c.width + column]);
        const auto rounded = [&](float value) { return c.halves ? round_to_bfloat16(value) : value; };
        const float y = data.activated[(m * c.rows + row) * c.width + column];
        result.to.push_back(rounded(derive(c.derivative, rounded(static_cast<float>(sum)), y)));
        sums[static_cast<std::size_t>(column)] += result.to.back();
      }
    }
    for (int column = 0; column < c.biases; ++column)
      result.bias_grad.push_back(!c.sums ? 2.0f
                                         : sums[static_cast<std::size_t>(column)] + (c.add ? 2.0f : 0.0f));
  }
  return result;
}

template <typename Memory>
GradientResult run_product(Memory memory, const ProductCase& c, const ProductData& data) {
  const auto put = [&](const std::vector<float>& values, int stride) {
    return put_matrices(memory, values, c.halves, stride,
                        static_cast<std::int64_t>(values.size()) / c.matrices);
  };
  HiddenGradientArgs args;
  args.rows = c.rows;
  args.width = c.width;
  args.matrices = c.matrices;
  args.derivative = c.derivative;
  args.add = c.add;
  args.grad = put(data.grad, c.inner + c.padding);
  args.weight = put(data.weight, c.width);
  args.inner = c.inner;
  args.activated = put(data.activated, c.width);
  args.to = put(std::vector<float>(data.activated.size(), 5.0f), c.width);
  args.biases = args.bias_step = c.biases;
  const auto biases = static_cast<std::size_t>(c.matrices * c.biases);
  float* const sums = memory.put(std::vector<float>(biases, 2.0f));
  if (c.sums) args.bias_grad = sums;
  args.parts = memory.template make<float>(HiddenGradientArgs::kMaxParts *
                                           static_cast<std::size_t>(c.matrices * c.width));
  EXPECT_TRUE(ProductShape::fits(args));
  cuda::gradient_product(memory.queue().stream, args);
  GradientResult result;
  result.bias_grad = memory.get(sums, biases);
  result.to = get_numbers(memory, args.to, data.activated.size());
  return result;
}

}  // namespace wd
