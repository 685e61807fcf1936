// values.h: the values of choices from the outputs of a network that computes them in parts: the value of the
// state and advantages (dueling), or quantiles of each value.
#pragma once

#include <cstdint>

#include "wd/kernels/action_layout.h"
#include "wd/queue.h"

namespace wd {

// With N choices of all heads, H heads and K quantiles. A row of outputs has K numbers for each choice, A_1
// .. A_N; with dueling, the K numbers of the state's value V come before them.
struct ValuesShape {
  int choices = 0, num_heads = 0;  // N, H
  int head_size[kMaxHeads] = {};
  int quantiles = 1;  // K
  bool dueling = false;

  WD_FN int outputs() const { return quantiles * (choices + (dueling ? 1 : 0)); }
};

// Z[i][k] = A_i[k] + V[k] / H - mean over the choices j of i's head of A_j[k] (Wang et al. 2016, arXiv
// 1511.06581, equation 9, of each head and quantile: the sum over heads then has V once). With dueling only.
struct DuelingArgs {
  ValuesShape shape;
  std::int64_t rows = 0;
  Rows<const float> output{};  // [shape.outputs()]
  Rows<float> z{};             // [N, K]
};

// Q[i] = mean over k of Z[i][k].
struct QuantileMeanArgs {
  ValuesShape shape;
  std::int64_t rows = 0;
  Rows<const float> z{};  // [N, K]
  Rows<float> q{};        // [N]
};

// Writes the gradient of the outputs from that of Z, or from that of Q if `of_mean`.
struct ValuesBackwardArgs {
  ValuesShape shape;
  std::int64_t rows = 0;
  Rows<const float> grad{};  // [N, K], or of_mean [N]
  bool of_mean = false;
  Rows<float> output_grad{};  // [shape.outputs()]
};

// All enqueue.
WD_DECLARE_KERNEL(dueling, DuelingArgs)
WD_DECLARE_KERNEL(quantile_mean, QuantileMeanArgs)
WD_DECLARE_KERNEL(values_backward, ValuesBackwardArgs)

}  // namespace wd
