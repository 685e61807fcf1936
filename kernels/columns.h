// columns.h: moments of the columns of a matrix, and numbers in units of them.
#pragma once

#include <cstdint>

#include "wd/kernels/rows.h"
#include "wd/queue.h"

namespace wd {

// A matrix in float32 or bfloat16, with rows `stride` apart.
struct ColumnsView {
  const float* floats = nullptr;
  const std::uint16_t* halves = nullptr;
  std::int64_t stride = 0;
};

// Adds {count, sum, sum of squares} of every column over rows whose mask is not 0.
struct ColumnMomentsArgs {
  ColumnsView x;  // [rows, columns]
  std::int64_t rows = 0;
  int columns = 0;
  const std::uint8_t* mask = nullptr;  // [rows]
  double* partial = nullptr;           // [kColumnParts, columns, 3]: working memory
  double* moments = nullptr;           // [columns, 3]
};
// Parts of the rows whose sums are added in order.
inline constexpr int kColumnParts = 64;

// y = (x - mean) / deviation, at most kMostDeviations from 0. Columns from num_scaled on are copied.
struct StandardizeArgs {
  ColumnsView x;  // [rows, columns]
  std::int64_t rows = 0;
  int columns = 0, num_scaled = 0;
  const float* norm = nullptr;  // [num_scaled, 2]: {mean, deviation}
  Rows<float> y;                // [rows, columns]
};
inline constexpr float kMostDeviations = 10.0f;

// The gradient of y becomes that of x, in place.
struct StandardizeBackwardArgs {
  std::int64_t rows = 0;
  int num_scaled = 0;
  const float* norm = nullptr;
  Rows<const float> y;
  Rows<float> grad;
};

// All enqueue. The moments of parts of the rows come first; the second function adds them.
WD_DECLARE_KERNEL(column_moments, ColumnMomentsArgs)
WD_DECLARE_KERNEL(add_column_moments, ColumnMomentsArgs)
WD_DECLARE_KERNEL(standardize, StandardizeArgs)
WD_DECLARE_KERNEL(standardize_backward, StandardizeBackwardArgs)

}  // namespace wd
