// perceptron_data.h: random rows for the kernel of kernels/perceptron.h, and its sums in double.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/perceptron.h"
#include "tests/kernels/hidden_gradient_data.h"

namespace wd {

struct PerceptronCase {
  std::int64_t rows = 0;
  int inputs = 0, outputs = 0;
  bool add = true;
  int padding = 0;  // packs of 16 bytes behind a row of inputs, and numbers behind one of outputs
  std::int64_t most_parts = PerceptronShape::kMaxParts;

  PerceptronShape shape() const { return {inputs, outputs, most_parts}; }
};

inline std::vector<PerceptronCase> perceptron_cases() {
  return {{1, 4, 43},
          {5, 64, 1, false},
          {63, 48, 48, true, 1},
          {64, 1, 3},
          {65, 48, 43},
          {700, 64, 64, true, 4},
          {700, 37, 2, false},
          {400, 48, 43, false, 1},
          {130, 5, 33, true, 4},
          {700, 48, 43, true, 0, 3},
          {700, 4, 3, false, 0, 1}};
}

// Sums that give gradients of rows are exact in every order: weights are eighths, and gradients of outputs
// are rounded to multiples of 2^-8.
struct PerceptronData {
  std::vector<float> x, first, second, weight, output_weight;  // that bfloat16 has
  std::vector<float> grad;                                     // to be rounded
};

inline PerceptronData random_perceptron_data(const PerceptronCase& c, Draws& draws) {
  constexpr std::int64_t W = PerceptronShape::kWidth;
  const auto numbers = [&](std::int64_t count) {
    std::vector<float> all = draws.uniforms(count, -1.0f, 1.0f);
    std::ranges::transform(all, all.begin(), round_to_bfloat16);
    return all;
  };
  const auto eighths = [&](std::int64_t count) {
    std::vector<float> all = draws.uniforms(count, -1.0f, 1.0f);
    for (float& x : all) x = std::round(8.0f * x) / 8.0f;
    return all;
  };
  PerceptronData data{numbers(c.rows * c.inputs), numbers(c.rows * W),
                      numbers(c.rows * W),        eighths(W * W),
                      eighths(c.outputs * W),     draws.uniforms(c.rows * c.outputs, -0.5f, 0.5f)};
  for (float& x : data.grad) x += x < 0.0f ? -0.5f : 0.5f;
  for (std::vector<float>* activated : {&data.first, &data.second})
    for (float& y : *activated) y = std::max(y, 0.0f);
  return data;
}

// The flat gradient; `before` is what it held.
template <typename Memory>
std::vector<float> run_perceptron(Memory memory, const PerceptronCase& c, const PerceptronData& data,
                                  const std::vector<float>& before) {
  const auto halves = [&](const std::vector<float>& numbers, std::int64_t columns, std::int64_t stride) {
    std::vector<std::uint16_t> bits(numbers.size() / columns * stride, to_bfloat16(std::nanf("")));
    for (std::size_t i = 0; i < numbers.size(); ++i)
      bits[i / columns * stride + i % columns] = to_bfloat16(numbers[i]);
    return memory.put(bits);
  };
  constexpr std::int64_t W = PerceptronShape::kWidth;
  const std::int64_t x_stride = PerceptronShape::padded(c.inputs) + 8 * c.padding,
                     stride = c.outputs + c.padding;
  std::vector<float> grad(static_cast<std::size_t>(c.rows * stride), std::nanf(""));
  for (std::int64_t i = 0; i < c.rows * c.outputs; ++i)
    grad[i / c.outputs * stride + i % c.outputs] = data.grad[i];
  PerceptronBackwardArgs args;
  args.shape = c.shape();
  args.rows = c.rows;
  args.x = {halves(data.x, c.inputs, x_stride), x_stride};
  args.first = halves(data.first, W, W);
  args.second = halves(data.second, W, W);
  args.grad = {memory.put(grad), stride};
  args.weight = halves(data.weight, W, W);
  args.output_weight = halves(data.output_weight, W, W);
  args.gradient = memory.put(before);
  args.add = c.add;
  args.parts = memory.put(std::vector<float>(PerceptronShape::kMaxParts * before.size(), std::nanf("")));
  cuda::perceptron_backward(memory.queue().stream, args);
  return memory.get(args.gradient, before.size());
}

// Every number is the sum of the products of rounded factors, up to the rounding of sums in float32: 3e-5 of
// the root of the sum of its terms' squares. A row of 700 more or less is 1,000 times as much.
inline void expect_perceptron(const PerceptronCase& c, const PerceptronData& data,
                              const std::vector<float>& before, const std::vector<float>& found) {
  constexpr int W = PerceptronShape::kWidth;
  const PerceptronShape shape = c.shape();
  const auto below = [&](const std::vector<double>& grad, int outputs, const std::vector<float>& weight,
                         const std::vector<float>& activated) {
    std::vector<double> result(static_cast<std::size_t>(c.rows * W));
    for (std::int64_t row = 0; row < c.rows; ++row)
      for (int i = 0; i < W; ++i) {
        double sum = 0.0;
        for (int k = 0; k < outputs; ++k) sum += grad[row * outputs + k] * weight[k * W + i];
        result[row * W + i] =
            activated[row * W + i] > 0.0f ? round_to_bfloat16(static_cast<float>(sum)) : 0.0;
      }
    return result;
  };
  std::vector<double> outputs(data.grad.size());
  std::ranges::transform(data.grad, outputs.begin(), round_to_bfloat16);
  const std::vector<double> second = below(outputs, c.outputs, data.output_weight, data.second),
                            first = below(second, W, data.weight, data.first);
  std::vector<double> sums(before.size()), sizes(before.size());
  const auto add = [&](int l, const std::vector<double>& grad, int rows, const std::vector<float>& input,
                       int columns) {
    const int stride = l == 0 ? PerceptronShape::padded(columns) : columns;
    for (std::int64_t row = 0; row < c.rows; ++row)
      for (int i = 0; i < rows; ++i)
        for (int j = 0; j <= columns; ++j) {
          const double y = grad[row * rows + i] * (j < columns ? input[row * columns + j] : 1.0f);
          const auto at =
              static_cast<std::size_t>(shape.begin(l) + (j < columns ? i * stride + j : rows * stride + i));
          sums[at] += y;
          sizes[at] += y * y;
        }
  };
  add(0, first, W, data.x, c.inputs);
  add(1, second, W, data.first, W);
  add(2, outputs, c.outputs, data.second, W);
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], sums[i] + (c.add ? before[i] : 0.0f), 1e-6 + 3e-5 * std::sqrt(sizes[i]))
        << "number " << i;
}

}  // namespace wd
