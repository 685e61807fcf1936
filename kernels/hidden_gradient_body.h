// hidden_gradient_body.h: which rows a part of the sums has, and one number of the gradient.
#pragma once

#include "kernels/hidden_gradient.h"
#include "wd/detail/bfloat16.h"
#include "wd/math.h"

namespace wd {

// How a GPU divides rows and columns.
struct GradientShape {
  static constexpr int kThreads = 256;
  int each = 0;    // neighboring columns of a thread
  int lanes = 0;   // rows of a block at a time
  int groups = 0;  // blocks that share a row
  std::int64_t parts = 0, rows_per_part = 0;

  // each: 8, 4, or 1
  WD_FN static GradientShape of(std::int64_t rows, int width, int each) {
    constexpr std::int64_t kTurns = 8;  // of a part, at least
    GradientShape shape;
    shape.each = each;
    const int threads_per_row = (width + each - 1) / each;
    shape.groups = (threads_per_row + kThreads - 1) / kThreads;
    shape.lanes = shape.groups > 1 ? 1 : kThreads / threads_per_row;
    // A second launch that adds two parts takes longer than twice the turns.
    const std::int64_t least = shape.lanes * kTurns,
                       wanted = rows <= 2 * least ? 1 : (rows + least - 1) / least;
    const std::int64_t parts =
        wanted < HiddenGradientArgs::kMaxParts ? wanted : HiddenGradientArgs::kMaxParts;
    shape.rows_per_part = (rows + parts - 1) / parts;
    shape.parts = (rows + shape.rows_per_part - 1) / shape.rows_per_part;
    return shape;
  }
};

// Incoming gradients and results are rounded as they are stored.
WD_FN float derive(Derivative derivative, float grad, float activated) {
  if (derivative == Derivative::kRelu) return activated <= 0.0f ? 0.0f : grad;
  return derivative == Derivative::kTanh ? grad * (1.0f - activated * activated) : grad;
}

}  // namespace wd
