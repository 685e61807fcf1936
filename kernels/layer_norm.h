// layer_norm.h: layer normalization (Ba et al. 2016, arXiv 1607.06450) of the sums of a layer, row by row:
//  y = normalized scale + shift, normalized = (x - mean(x)) / sqrt(variance(x) + 1e-5)
// with the mean and the variance (divided by their number) of a row's sums. The gradient of a row's sums is
//  (g - mean(g) - normalized mean(g normalized)) / sqrt(variance(x) + 1e-5), g = scale times that of y
#pragma once

#include <cstdint>

#include "wd/queue.h"

namespace wd {

// A matrix of float32 or of bfloat16 numbers; the other pointer is null.
struct NormMatrix {
  float* floats = nullptr;
  std::uint16_t* halves = nullptr;
};

// In all matrices, rows have `width` numbers and begin `stride` numbers apart.
struct LayerNormArgs {
  std::int64_t rows = 0, stride = 0;
  int width = 0;
  const float *scale = nullptr, *shift = nullptr;  // [width]
  float* normalized = nullptr;                     // [rows, stride]: the sums, which are overwritten
  float* inverse_std = nullptr;                    // [rows], written: 1 / sqrt(variance + 1e-5)
  NormMatrix y;                                    // [rows, stride], written
};

struct LayerNormBackwardArgs {
  std::int64_t rows = 0, stride = 0;
  int width = 0;
  const float* scale = nullptr;                        // [width]
  const float* normalized = nullptr;                   // [rows, stride], from the forward pass
  const float* inverse_std = nullptr;                  // [rows], from the forward pass
  NormMatrix grad;                                     // [rows, stride]: that of y, then that of the sums
  float *scale_grad = nullptr, *shift_grad = nullptr;  // [width], accumulated; or null
  float* parts = nullptr;                              // GPU: [kNormParts, 2, width], working memory
};

// A GPU sums the gradients of scale and shift in this many parts of rows at a time.
inline constexpr int kNormParts = 128;

// Sums are float32, over 32 interleaved numbers and then a tree: rows have the same bits on the CPU, on a
// GPU and with any vectors. The gradients of scale and shift are sums in the order of rows, on a GPU first of
// each part. On the CPU both run on the calling thread. They enqueue on CUDA.
WD_DECLARE_KERNEL(layer_norm, LayerNormArgs)
WD_DECLARE_KERNEL(layer_norm_backward, LayerNormBackwardArgs)

}  // namespace wd
