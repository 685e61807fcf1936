// perceptron.h: the whole backward pass of a perceptron with two hidden layers of 64 units, in bfloat16 with
// ReLU, as one kernel on tensor cores: gradients of rows are never in memory.
#pragma once

#include "kernels/hidden_gradient.h"
#include "wd/kernels/rows.h"

namespace wd {

struct PerceptronShape {
  static constexpr int kWidth = 64, kMostInputs = 64, kMostOutputs = 64;
  static constexpr int kTile = 64;  // rows of a block at a time
  static constexpr std::int64_t kMaxParts = 264;
  // Bytes: two weights, and six matrices of a tile.
  static constexpr std::size_t kSharedBytes = (2 + 6) * kWidth * kWidth * 2;

  int inputs = 0, outputs = 0;
  std::int64_t most_parts = kMaxParts;

  bool fits() const { return inputs <= kMostInputs && outputs <= kMostOutputs; }
  WD_FN static constexpr int padded(int n) { return (n + 7) / 8 * 8; }
  // Where a flat gradient has the weight of layer l = 0, 1, 2; its bias is behind it. 3: the size. Rows and
  // biases are padded, as MlpShape::bind() pads them.
  WD_FN int begin(int l) const {
    const int sizes[] = {kWidth * padded(inputs) + kWidth, kWidth * kWidth + kWidth,
                         outputs * kWidth + padded(outputs)};
    int sum = 0;
    for (int k = 0; k < l; ++k) sum += sizes[k];
    return sum;
  }
  // Tile i belongs to part i % parts. Depends on the shape only.
  std::int64_t parts(std::int64_t rows) const {
    const std::int64_t tiles = (rows + kTile - 1) / kTile;
    return tiles < most_parts ? tiles : most_parts;
  }
};

struct PerceptronBackwardArgs {
  PerceptronShape shape;
  std::int64_t rows = 0;
  Rows<const std::uint16_t> x{};  // [inputs]; packs of 16 bytes, whose other numbers count as 0
  // [rows, 64]: activations of both hidden layers; the derivative is 0 where a number is <= 0
  const std::uint16_t *first = nullptr, *second = nullptr;
  Rows<const float> grad{};  // [outputs]: of the outputs, in packs of 16 bytes
  // [64, 64] and [outputs, 64]: of the second hidden layer and the output layer
  const std::uint16_t *weight = nullptr, *output_weight = nullptr;
  float* gradient = nullptr;  // of all weights and biases; rows' gradients are rounded to bfloat16
  bool add = true;            // or overwrite
  float* parts = nullptr;     // [kMaxParts, shape.begin(3)]: working memory
};

// Sums have an order that depends on the shape only. Throws unless shape.fits(). Enqueues on CUDA.
WD_CUDA_KERNEL(perceptron_backward, const PerceptronBackwardArgs& args)

}  // namespace wd
