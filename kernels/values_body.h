// values_body.h: quantiles and choices of one row, the same code on both devices.
#pragma once

#include "kernels/values.h"
#include "wd/math.h"

namespace wd {

// Item: a quantile of a row.
WD_FN void dueling_of(const DuelingArgs& args, std::int64_t item) {
  const ValuesShape& shape = args.shape;
  const int K = shape.quantiles;
  const std::int64_t row = item / K, k = item % K;
  const float* const output = args.output[row] + k;
  const float* advantage = output + K;
  float* z = args.z[row] + k;
  const float state = output[0] / static_cast<float>(shape.num_heads);
  for (int h = 0; h < shape.num_heads; ++h) {
    const int n = shape.head_size[h];
    float sum = 0.0f;
    for (int i = 0; i < n; ++i) sum += advantage[i * K];
    const float shift = state - sum / static_cast<float>(n);
    for (int i = 0; i < n; ++i) z[i * K] = advantage[i * K] + shift;
    advantage += n * K;
    z += n * K;
  }
}

// Item: a choice of a row.
WD_FN void quantile_mean_of(const QuantileMeanArgs& args, std::int64_t item) {
  const int K = args.shape.quantiles;
  const std::int64_t row = item / args.shape.choices, choice = item % args.shape.choices;
  const float* const z = args.z[row] + choice * K;
  float sum = 0.0f;
  for (int k = 0; k < K; ++k) sum += z[k];
  args.q[row][choice] = sum / static_cast<float>(K);
}

// Item: a quantile of a row.
WD_FN void values_backward_of(const ValuesBackwardArgs& args, std::int64_t item) {
  const ValuesShape& shape = args.shape;
  const int K = shape.quantiles, step = args.of_mean ? 1 : K;
  const std::int64_t row = item / K, k = item % K;
  const float scale = args.of_mean ? 1.0f / static_cast<float>(K) : 1.0f;
  const float* grad = args.grad[row] + (args.of_mean ? 0 : k);
  float* const to = args.output_grad[row] + k;
  float* advantage = to + (shape.dueling ? K : 0);
  float state = 0.0f;
  for (int h = 0; h < shape.num_heads; ++h) {
    const int n = shape.head_size[h];
    float mean = 0.0f;
    if (shape.dueling) {
      float sum = 0.0f;
      for (int i = 0; i < n; ++i) sum += scale * grad[i * step];
      state += sum;
      mean = sum / static_cast<float>(n);
    }
    for (int i = 0; i < n; ++i) advantage[i * K] = scale * grad[i * step] - mean;
    grad += n * step;
    advantage += n * K;
  }
  if (shape.dueling) to[0] = state / static_cast<float>(shape.num_heads);
}

}  // namespace wd
