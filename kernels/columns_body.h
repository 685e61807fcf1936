// columns_body.h: pieces of columns, the same code on both devices.
#pragma once

#include "kernels/columns.h"
#include "wd/detail/bfloat16.h"
#include "wd/math.h"

namespace wd {

// Neighboring columns that one thread sums.
inline constexpr int kColumnsEach = 8;

WD_FN int column_pieces(int columns) { return (columns + kColumnsEach - 1) / kColumnsEach; }

WD_FN float column_number(const ColumnsView& x, std::int64_t row, int column) {
  const std::int64_t at = row * x.stride + column;
  return x.floats != nullptr ? load_number(x.floats + at) : load_number(x.halves + at);
}

// Item: a part of the rows, and a piece of the columns.
WD_FN void column_moments_of(const ColumnMomentsArgs& args, std::int64_t item) {
  const int pieces = column_pieces(args.columns);
  const std::int64_t part = item / pieces, each = (args.rows + kColumnParts - 1) / kColumnParts;
  const int first = static_cast<int>(item % pieces) * kColumnsEach;
  const int n = min(kColumnsEach, args.columns - first);
  const std::int64_t begin = part * each, end = begin + each < args.rows ? begin + each : args.rows;
  double count = 0.0, sum[kColumnsEach] = {}, squares[kColumnsEach] = {};
  for (std::int64_t row = begin; row < end; ++row) {
    if (args.mask[row] == 0) continue;
    count += 1.0;
    for (int c = 0; c < n; ++c) {
      const double value = column_number(args.x, row, first + c);
      sum[c] += value;
      squares[c] += value * value;
    }
  }
  double* const out = args.partial + (part * args.columns + first) * 3;
  for (int c = 0; c < n; ++c) {
    out[3 * c] = count;
    out[3 * c + 1] = sum[c];
    out[3 * c + 2] = squares[c];
  }
}

// Item: one of the three moments of a column.
WD_FN void add_column_parts(const ColumnMomentsArgs& args, std::int64_t item) {
  double sum = args.moments[item];
  for (int part = 0; part < kColumnParts; ++part)
    sum += args.partial[static_cast<std::int64_t>(part) * 3 * args.columns + item];
  args.moments[item] = sum;
}

// Item: a number.
WD_FN void standardize_number(const StandardizeArgs& args, std::int64_t item) {
  const std::int64_t row = item / args.columns;
  const int column = static_cast<int>(item % args.columns);
  float value = column_number(args.x, row, column);
  if (column < args.num_scaled)
    value =
        clamp((value - args.norm[2 * column]) / args.norm[2 * column + 1], -kMostDeviations, kMostDeviations);
  args.y[row][column] = value;
}

WD_FN void standardize_gradient(const StandardizeBackwardArgs& args, std::int64_t item) {
  const std::int64_t row = item / args.num_scaled;
  const int column = static_cast<int>(item % args.num_scaled);
  const bool inside = abs(args.y[row][column]) < kMostDeviations;
  float& grad = args.grad[row][column];
  grad = inside ? grad / args.norm[2 * column + 1] : 0.0f;
}

}  // namespace wd
