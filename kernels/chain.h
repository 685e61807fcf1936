// chain.h: the last hidden layer of a perceptron and its output layer as one kernel each way, on tensor
// cores, in bfloat16 with ReLU. A warp takes rows through both products: what the first one writes stays in
// registers as a factor of the second one. All weights are in shared memory.
#pragma once

#include "kernels/hidden_gradient.h"
#include "wd/kernels/rows.h"

namespace wd {

// How a GPU divides rows. gradient_product() of the same layers divides them alike (HiddenGradientArgs), so
// that the gradients' bits do not depend on whether a device has the shared memory for a chain.
struct ChainShape {
  static constexpr int kMostOutputs = 48, kTile = 16;  // kTile: rows of a warp at a time

  static bool has(int width, int outputs) {
    return (width == 64 || width == 128 || width == 256) && outputs <= kMostOutputs;
  }
  WD_FN static constexpr int warps(int width) { return width == 256 ? 12 : 8; }
  // Of a block that has a multiprocessor for itself, or two of which share one.
  WD_FN static constexpr int blocks_together(int width) { return width == 256 ? 1 : 2; }
  // Bytes: both weights as bfloat16, and biases.
  WD_FN static constexpr std::size_t shared_bytes(int width) {
    return static_cast<std::size_t>((width + kMostOutputs) * width * 2 + (width + kMostOutputs) * 4);
  }
  static std::int64_t rows_per_part(std::int64_t rows, int width) {
    constexpr std::int64_t kMultiprocessors = 132;
    const std::int64_t most = kMultiprocessors * blocks_together(width), sweep = kTile * warps(width);
    return ((rows + most - 1) / most + sweep - 1) / sweep * sweep;
  }
};

// Signs of a hidden layer's activations for the gradient of ReLU: a bit is 0 where a number is <= 0. [rows,
// width / 8] bytes; which bit is whose only these kernels know.
struct ChainForwardArgs {
  std::int64_t rows = 0;
  int width = 0, outputs = 0;
  const std::uint16_t* below = nullptr;  // [rows, width]: the activations of the layer below
  const std::uint16_t *weight = nullptr, *bias = nullptr;  // [width, width], [width]
  const std::uint16_t* output_weight = nullptr;            // [outputs, width]
  const float* output_bias = nullptr;                      // [outputs]
  std::uint16_t* hidden = nullptr;                         // [rows, width]
  Rows<float> output{};                                   // [outputs]; 4 numbers from each 4th on are aligned
  std::uint8_t *below_signs = nullptr, *signs = nullptr;  // or null
};

// hidden = max(below weight^T + bias, 0), output = hidden output_weight^T + output_bias. Throws unless
// ChainShape::has() the layers. Enqueues on CUDA.
WD_CUDA_KERNEL(chain_forward, const ChainForwardArgs& args)

// What gradient_product() does for `output` and then for `hidden`, whose `grad` is `output.to`, with the same
// bits. Their `activated` are not read, but the signs that chain_forward() wrote. One matrix of each.
struct ChainBackwardArgs {
  HiddenGradientArgs output, hidden;
  const std::uint8_t *signs = nullptr, *below_signs = nullptr;
};

// Enqueues on CUDA.
WD_CUDA_KERNEL(chain_backward, const ChainBackwardArgs& args)

}  // namespace wd
