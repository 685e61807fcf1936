// hidden_gradient.h: what a GPU does with the gradient of a layer's outputs between two matrix products, in
// one pass: the derivative of the activation, rounding, and the gradient of the bias.
#pragma once

#include <cstdint>

#include "wd/math.h"
#include "wd/queue.h"

namespace wd {

// A matrix of float32 or bfloat16, rows `stride` apart, or several matrices `step` apart; neither: there is
// none.
struct GradientMatrix {
  float* floats = nullptr;
  std::uint16_t* halves = nullptr;
  std::int64_t stride = 0, step = 0;

  WD_FN explicit operator bool() const { return floats != nullptr || halves != nullptr; }
};

// Derivatives are computed from the activated values.
enum class Derivative : int { kNone, kRelu, kTanh };

struct HiddenGradientArgs {
  // Rows are summed in at most this many parts.
  static constexpr std::int64_t kMaxParts = 528;

  std::int64_t rows = 0;
  int width = 0;     // columns that are read and written
  int matrices = 1;  // of each kind
  Derivative derivative = Derivative::kNone;
  GradientMatrix grad;       // [rows, width]: of the outputs
  GradientMatrix activated;  // [rows, width]: the outputs; kNone: not read
  GradientMatrix to;         // [rows, width]: of the sums before the activation, may be `grad`; or none
  // [biases]: the sums of columns, as they are stored in `to`, or what they are added to; or null. Its order
  // of additions depends on rows and width only.
  float* bias_grad = nullptr;
  bool add = true;
  int biases = 0;
  std::int64_t bias_step = 0;  // between those of two matrices
  float* parts = nullptr;      // [matrices, kMaxParts, width]: working memory
  // gradient_product() only: the gradient of the outputs is grad [rows, inner] weight [inner, width].
  GradientMatrix weight;
  int inner = 0;
  // Rows are divided as a chain of these layers divides them (kernels/chain.h).
  bool as_chain = false;
};

// Enqueues on CUDA. `grad` and `activated`, where it is read, have the same type.
WD_CUDA_KERNEL(hidden_gradient, const HiddenGradientArgs& args)
// The same of a product, on tensor cores: float32 factors are rounded to tf32; sums are float32, and are
// rounded to the type of the factors before the derivative. Throws unless ProductShape::fits(args).
// Enqueues on CUDA.
WD_CUDA_KERNEL(gradient_product, const HiddenGradientArgs& args)

}  // namespace wd
