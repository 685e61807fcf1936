// chain_data.h: random layers for the kernels of kernels/chain.h, their sums in double, and
// gradient_product() in the place of chain_backward().
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/chain.h"
#include "tests/kernels/hidden_gradient_data.h"

namespace wd {

struct ChainCase {
  std::int64_t rows = 0;
  int width = 0, outputs = 0;
  bool sums = true, add = true;
};

inline std::vector<ChainCase> chain_cases() {
  return {{1, 64, 43},    {33, 64, 1},          {300, 64, 48, true, false},
          {203, 128, 43}, {105, 128, 7, false}, {1000, 128, 24},
          {2, 256, 43},   {500, 256, 16},       {300, 256, 33, true, false}};
}

struct ChainData {
  std::vector<float> below, weight, bias, output_weight, output_bias, output_grad;  // that bfloat16 has
};

inline ChainData random_chain_data(const ChainCase& c, Draws& draws) {
  const auto numbers = [&](std::int64_t count, float size) {
    std::vector<float> all = draws.uniforms(count, -size, size);
    std::ranges::transform(all, all.begin(), round_to_bfloat16);
    return all;
  };
  const std::int64_t W = c.width, O = c.outputs;
  ChainData data{numbers(c.rows * W, 1.0f), numbers(W * W, 0.1f), numbers(W, 0.5f),
                 numbers(O * W, 0.1f),      numbers(O, 0.5f),     numbers(c.rows * O, 1.0f)};
  for (float& x : data.below) x = std::max(x, 0.0f);
  return data;
}

struct ChainResult {
  std::vector<float> hidden, output, grad, below_grad, bias_grad, below_bias_grad;
};

// Runs the kernels. `chained`: whether gradients are computed by chain_backward().
template <typename Memory>
ChainResult run_chain(Memory memory, const ChainCase& c, const ChainData& data, bool chained) {
  const std::int64_t W = c.width, O = c.outputs, stride = (O + 7) / 8 * 8;
  const auto halves = [&](const std::vector<float>& x) {
    std::vector<std::uint16_t> bits(x.size());
    std::ranges::transform(x, bits.begin(), to_bfloat16);
    return memory.put(bits);
  };
  const auto many = [&](std::int64_t count) {
    return halves(std::vector<float>(static_cast<std::size_t>(count), std::nanf("")));
  };
  std::uint8_t* const signs = memory.put(std::vector<std::uint8_t>(c.rows * W / 8, 0xaa));
  std::uint8_t* const below_signs = memory.put(std::vector<std::uint8_t>(c.rows * W / 8, 0x55));
  ChainForwardArgs forward;
  forward.rows = c.rows;
  forward.width = c.width;
  forward.outputs = c.outputs;
  std::uint16_t* const below = halves(data.below);
  std::uint16_t* const weight = halves(data.weight);
  std::uint16_t* const output_weight = halves(data.output_weight);
  forward.below = below;
  forward.weight = weight;
  forward.bias = halves(data.bias);
  forward.output_weight = output_weight;
  forward.output_bias = memory.put(data.output_bias);
  forward.hidden = many(c.rows * W);
  const std::int64_t out_stride = (O + 3) / 4 * 4;
  float* const output = memory.put(std::vector<float>(c.rows * out_stride, -7.0f));
  forward.output = {output, out_stride};
  forward.signs = signs;
  forward.below_signs = below_signs;
  cuda::chain_forward(memory.queue().stream, forward);

  std::vector<float> padded(c.rows * stride, std::nanf(""));
  for (std::int64_t row = 0; row < c.rows; ++row)
    std::copy_n(data.output_grad.begin() + row * O, O, padded.begin() + row * stride);
  const auto biases = [&] { return memory.put(std::vector<float>(static_cast<std::size_t>(W), 2.0f)); };
  const auto layer = [&](std::uint16_t* activated, float* bias_grad) {
    HiddenGradientArgs args;
    args.rows = c.rows;
    args.width = c.width;
    args.derivative = Derivative::kRelu;
    args.activated = {nullptr, activated, W};
    args.to = {nullptr, many(c.rows * W), W};
    args.add = c.add;
    args.biases = c.width;
    if (c.sums) args.bias_grad = bias_grad;
    args.parts = memory.template make<float>(HiddenGradientArgs::kMaxParts * static_cast<std::size_t>(W));
    args.as_chain = true;
    return args;
  };
  float *const bias_grad = biases(), *const below_bias_grad = biases();
  ChainBackwardArgs backward{layer(forward.hidden, bias_grad), layer(below, below_bias_grad), signs,
                             below_signs};
  backward.output.grad = {nullptr, halves(padded), stride};
  backward.output.weight = {nullptr, output_weight, W};
  backward.output.inner = c.outputs;
  backward.hidden.grad = backward.output.to;
  backward.hidden.weight = {nullptr, weight, W};
  backward.hidden.inner = c.width;
  if (chained) {
    cuda::chain_backward(memory.queue().stream, backward);
  } else {
    EXPECT_TRUE(ProductShape::fits(backward.output) && ProductShape::fits(backward.hidden));
    cuda::gradient_product(memory.queue().stream, backward.output);
    cuda::gradient_product(memory.queue().stream, backward.hidden);
  }
  const auto n = static_cast<std::size_t>(c.rows * W);
  ChainResult result;
  result.hidden = get_numbers(memory, {nullptr, forward.hidden, W}, n);
  const std::vector<float> rows = memory.get(output, static_cast<std::size_t>(c.rows * out_stride));
  for (std::int64_t row = 0; row < c.rows; ++row)
    for (std::int64_t k = 0; k < out_stride; ++k) {
      const float x = rows[static_cast<std::size_t>(row * out_stride + k)];
      if (k < O)
        result.output.push_back(x);
      else
        EXPECT_EQ(x, -7.0f) << "padding is written";
    }
  result.grad = get_numbers(memory, backward.output.to, n);
  result.below_grad = get_numbers(memory, backward.hidden.to, n);
  result.bias_grad = memory.get(bias_grad, static_cast<std::size_t>(W));
  result.below_bias_grad = memory.get(below_bias_grad, static_cast<std::size_t>(W));
  return result;
}

// Each number is the sum(row, column), up to this share of it.
template <typename Sum>
void expect_sums(const std::vector<float>& of, std::int64_t columns, double places, const Sum& sum) {
  for (std::size_t i = 0; i < of.size(); ++i) {
    const double exact = sum(static_cast<std::int64_t>(i) / columns, static_cast<std::int64_t>(i) % columns);
    ASSERT_NEAR(of[i], exact, places * std::max(std::abs(exact), 0.05)) << "number " << i;
  }
}

inline void expect_chain(const ChainCase& c, const ChainData& data, const ChainResult& found) {
  const std::int64_t W = c.width, O = c.outputs;
  constexpr double kHalf = 0x1.02p-8, kSingle = 1e-5;  // half of a last place of bfloat16, and rounded sums
  const auto dot = [&](const std::vector<float>& a, std::int64_t from, const std::vector<float>& b,
                       std::int64_t at, std::int64_t step, std::int64_t terms) {
    double sum = 0.0;
    for (std::int64_t k = 0; k < terms; ++k) sum += double{a[from + k]} * b[at + k * step];
    return sum;
  };
  expect_sums(found.hidden, W, kHalf, [&](std::int64_t row, std::int64_t i) {
    return std::max(0.0, dot(data.below, row * W, data.weight, i * W, 1, W) + data.bias[i]);
  });
  expect_sums(found.output, O, kSingle, [&](std::int64_t row, std::int64_t i) {
    return dot(found.hidden, row * W, data.output_weight, i * W, 1, W) + data.output_bias[i];
  });
  const auto grad = [&](std::int64_t row, std::int64_t i) {
    return found.hidden[row * W + i] > 0.0f ? dot(data.output_grad, row * O, data.output_weight, i, W, O)
                                            : 0.0;
  };
  expect_sums(found.grad, W, kHalf, grad);
  expect_sums(found.below_grad, W, kHalf, [&](std::int64_t row, std::int64_t i) {
    return data.below[row * W + i] > 0.0f ? dot(found.grad, row * W, data.weight, i, W, W) : 0.0;
  });
  const auto expect_biases = [&](const std::vector<float>& biases, const std::vector<float>& rows) {
    expect_sums(biases, W, 1e-5, [&](std::int64_t, std::int64_t i) {
      double sum = c.sums && !c.add ? 0.0 : 2.0;
      for (std::int64_t row = 0; row < c.rows && c.sums; ++row) sum += rows[row * W + i];
      return sum;
    });
  };
  expect_biases(found.bias_grad, found.grad);
  expect_biases(found.below_bias_grad, found.below_grad);
}

}  // namespace wd
