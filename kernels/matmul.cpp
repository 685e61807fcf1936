// matmul.cpp: tiles of six rows by sixteen columns in registers, multiplied with panels of b that stay in the
// L1 cache.
//
// The algorithm is that of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (2008),
// without packing of a, which is small here. Compared with a library it saves the overhead of the call: a
// layer of 64 takes less time than MKL's dispatch.
#include "kernels/matmul.h"

#include <algorithm>
#include <cstring>

#include "src/base/profile.h"

namespace wd {
namespace {

using Vector = float __attribute__((vector_size(32)));

constexpr int kLanes = 8;                       // floats per vector
constexpr int kTileRows = 6, kTileVectors = 2;  // twelve sums, of sixteen registers
constexpr int kPanelColumns = kTileVectors * kLanes;
constexpr std::int64_t kPanelRows = 256;  // 16 KiB

Vector load(const float* from) {
  Vector v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}
void store(float* to, Vector v) { std::memcpy(to, &v, sizeof(v)); }

// Packs [rows, columns] of b, from (first, column) on, into rows of `width` columns, with zeros where b has
// none.
void pack(const MatmulArgs& args, std::int64_t first, std::int64_t rows, std::int64_t column, int columns,
          int width, float* panel) {
  const ConstMatrix& b = args.b;
  const float* const from = b.data + first * b.row + column * b.column;
  if (columns < width) std::fill_n(panel, rows * width, 0.0f);
  if (b.column == 1) {
    for (std::int64_t p = 0; p < rows; ++p)
      for (int j = 0; j < columns; ++j) panel[p * width + j] = from[p * b.row + j];
  } else {
    for (int j = 0; j < columns; ++j)
      for (std::int64_t p = 0; p < rows; ++p) panel[p * width + j] = from[p * b.row + j * b.column];
  }
}

// c[0 : kRows, 0 : kVectors * kLanes] = start + a panel, where start is one row for all rows, or null to
// start from the contents of c.
template <int kRows, int kVectors>
void multiply(const ConstMatrix& a, const float* panel, std::int64_t k, const float* start, float* c,
              std::int64_t c_row) {
  Vector sum[kRows][kVectors];
  for (int i = 0; i < kRows; ++i)
    for (int v = 0; v < kVectors; ++v)
      sum[i][v] = load((start == nullptr ? c + i * c_row : start) + v * kLanes);
  const float* left = a.data;
  for (std::int64_t p = 0; p < k; ++p) {
    Vector b[kVectors];
    for (int v = 0; v < kVectors; ++v) b[v] = load(panel + v * kLanes);
    for (int i = 0; i < kRows; ++i) {
      const float value = left[i * a.row];
      for (int v = 0; v < kVectors; ++v) sum[i][v] += value * b[v];  // fused: see CMakeLists.txt
    }
    left += a.column;
    panel += kVectors * kLanes;
  }
  for (int i = 0; i < kRows; ++i)
    for (int v = 0; v < kVectors; ++v) store(c + i * c_row + v * kLanes, sum[i][v]);
}

using Multiply = void (*)(const ConstMatrix&, const float*, std::int64_t, const float*, float*, std::int64_t);

template <int kVectors>
Multiply multiply_of(std::int64_t rows) {
  static constexpr Multiply kAll[] = {multiply<1, kVectors>, multiply<2, kVectors>, multiply<3, kVectors>,
                                      multiply<4, kVectors>, multiply<5, kVectors>, multiply<6, kVectors>};
  return kAll[rows - 1];
}

// Multiplies all rows of c with one panel: columns [column, column + columns), terms [first, first + k).
template <int kVectors>
void multiply_panel(const MatmulArgs& args, const float* panel, std::int64_t first, std::int64_t k,
                    std::int64_t column, int columns) {
  constexpr int kWidth = kVectors * kLanes;
  float zero_or_bias[kWidth] = {};
  if (args.bias != nullptr) std::copy_n(args.bias + column, columns, zero_or_bias);
  const float* const start = first == 0 && !args.add ? zero_or_bias : nullptr;
  for (std::int64_t i = 0; i < args.m; i += kTileRows) {
    const std::int64_t rows = std::min<std::int64_t>(kTileRows, args.m - i);
    const ConstMatrix a{args.a.data + i * args.a.row + first * args.a.column, args.a.row, args.a.column};
    float* const c = args.c + i * args.c_row + column;
    if (columns == kWidth) {
      multiply_of<kVectors>(rows)(a, panel, k, start, c, args.c_row);
      continue;
    }
    // c is narrower than the tile: compute in a temporary tile.
    float tile[kTileRows * kWidth] = {};
    for (std::int64_t r = 0; start == nullptr && r < rows; ++r)
      std::copy_n(c + r * args.c_row, columns, tile + r * kWidth);
    multiply_of<kVectors>(rows)(a, panel, k, start, tile, kWidth);
    for (std::int64_t r = 0; r < rows; ++r) std::copy_n(tile + r * kWidth, columns, c + r * args.c_row);
  }
}

}  // namespace

void matmul(const MatmulArgs& args) {
  const profile::Scope scope("matrix product");
  alignas(64) float panel[kPanelRows * kPanelColumns];
  for (std::int64_t first = 0; first < std::max<std::int64_t>(args.k, 1); first += kPanelRows) {
    const std::int64_t k = std::min(kPanelRows, args.k - first);
    for (std::int64_t column = 0; column < args.n; column += kPanelColumns) {
      const int columns = static_cast<int>(std::min<std::int64_t>(kPanelColumns, args.n - column));
      if (columns <= kLanes) {
        pack(args, first, k, column, columns, kLanes, panel);
        multiply_panel<1>(args, panel, first, k, column, columns);
      } else {
        pack(args, first, k, column, columns, kPanelColumns, panel);
        multiply_panel<kTileVectors>(args, panel, first, k, column, columns);
      }
    }
  }
}

}  // namespace wd
