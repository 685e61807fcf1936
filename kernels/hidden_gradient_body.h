// hidden_gradient_body.h: which rows a part of the sums has, and one number of the gradient.
#pragma once

#include "kernels/chain.h"
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

// Whether packs of `each` numbers are aligned in all rows.
inline bool in_packs(const GradientMatrix& matrix, int each) {
  const std::uintptr_t bytes = (matrix.floats != nullptr ? 4 : 2) * static_cast<std::uintptr_t>(each);
  const auto address =
      reinterpret_cast<std::uintptr_t>(matrix.floats) + reinterpret_cast<std::uintptr_t>(matrix.halves);
  return !matrix || (address % bytes == 0 && matrix.stride % each == 0 && matrix.step % each == 0);
}

// How a GPU divides a product: a block computes one tile of rows after another, for some of the columns. A
// word is 32 bits: one float32 or two bfloat16.
struct ProductShape {
  static constexpr int kThreads = 128, kWarps = kThreads / 32;
  static constexpr int kSide = 32;  // rows and columns of a warp
  static constexpr int kEach = 8;   // neighboring columns of a lane
  static constexpr int kStep = 8;   // words that are multiplied at once
  static constexpr int kMaxPacks = 8;
  static constexpr int kMostSlots = 12;
  static constexpr std::size_t kMaxShared = 99 << 10;  // bytes that a block has on all GPUs since sm_80
  int words = 0;                                       // of the terms of a sum, padded
  int across = 0;                                      // warps side by side
  int groups = 0;                                      // blocks that share rows
  std::int64_t parts = 0, rows_per_part = 0;
  // Columns are summed over 16 rows at a time, and these sums in turn into so many slots.
  int slots = 0;

  WD_FN int slot_of(std::int64_t row_of_part) const { return static_cast<int>(row_of_part / 16 % slots); }
  WD_FN int tile() const { return kWarps / across * kSide; }  // rows
  WD_FN int columns() const { return across * kSide; }        // of a block
  // Packs of 16 bytes of a tile that a thread stages.
  WD_FN int packs() const { return (tile() * words / 4 + kThreads - 1) / kThreads; }
  // A row of a tile, in words: no more than two lanes of a half warp have the same bank.
  WD_FN int stride() const { return words % 16 == 0 ? words + 8 : words; }
  WD_FN int weight_words() const { return words * columns(); }
  WD_FN int stage_words() const { return tile() * stride(); }
  // Two stages; in the end the slots' sums of columns.
  std::size_t shared_bytes() const {
    const int sums = kMostSlots * columns();
    return 4 *
           static_cast<std::size_t>(weight_words() + (2 * stage_words() > sums ? 2 * stage_words() : sums));
  }

  // Depends on the shape only, and so does the order of sums.
  static ProductShape of(const HiddenGradientArgs& args) {
    constexpr std::int64_t kMultiprocessors = 132, kMaxBlocks = 8;
    constexpr std::size_t kSharedOfThem = 224 << 10;
    ProductShape shape;
    const int terms_per_word = args.grad.halves != nullptr ? 2 : 1;
    shape.words = (args.inner + terms_per_word * kStep - 1) / (terms_per_word * kStep) * kStep;
    if (shape.words < 2 * kStep) shape.words = 2 * kStep;
    for (shape.across = 1; shape.across < kWarps; shape.across *= 2)
      if (shape.columns() >= args.width && shape.packs() <= kMaxPacks) break;
    shape.groups = (args.width + shape.columns() - 1) / shape.columns();
    const auto fit = static_cast<std::int64_t>(kSharedOfThem / (shape.shared_bytes() + 1024));
    const std::int64_t blocks = kMultiprocessors * (fit < 1 ? 1 : fit < kMaxBlocks ? fit : kMaxBlocks);
    std::int64_t parts = args.rows <= 4 * shape.tile() ? 1 : (blocks + shape.groups - 1) / shape.groups;
    if (parts > HiddenGradientArgs::kMaxParts) parts = HiddenGradientArgs::kMaxParts;
    const std::int64_t rows = (args.rows + parts - 1) / parts;
    shape.rows_per_part = (rows + shape.tile() - 1) / shape.tile() * shape.tile();
    shape.slots = 8;
    if (args.as_chain) {
      shape.rows_per_part = ChainShape::rows_per_part(args.rows, args.width);
      shape.slots = ChainShape::warps(args.width);
    }
    shape.parts = (args.rows + shape.rows_per_part - 1) / shape.rows_per_part;
    return shape;
  }

  // Whether gradient_product() can compute this.
  static bool fits(const HiddenGradientArgs& args) {
    const bool halves = args.grad.halves != nullptr;
    const auto readable = [&](const GradientMatrix& matrix) {
      return matrix && (matrix.halves != nullptr) == halves && in_packs(matrix, halves ? 8 : 4);
    };
    if (args.width % kEach != 0 || args.inner < 1) return false;
    if (!readable(args.grad) || !readable(args.weight) || !readable(args.to)) return false;
    if (args.derivative != Derivative::kNone && !readable(args.activated)) return false;
    const ProductShape shape = of(args);
    return shape.packs() <= kMaxPacks && shape.shared_bytes() <= kMaxShared;
  }
};

// Incoming gradients and results are rounded as they are stored.
WD_FN float derive(Derivative derivative, float grad, float activated) {
  if (derivative == Derivative::kRelu) return activated <= 0.0f ? 0.0f : grad;
  return derivative == Derivative::kTanh ? grad * (1.0f - activated * activated) : grad;
}

}  // namespace wd
