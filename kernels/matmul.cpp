// matmul.cpp: tiles of sums in registers, multiplied with panels of b that stay in the cache.
//
// The algorithm is that of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (2008),
// without packing of a, which is small here. Compared with a library it saves the overhead of the call: a
// layer of 64 takes less time than MKL's dispatch.
#include "kernels/matmul.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "src/base/profile.h"
#include "wd/detail/vectors.h"

#define WD_INLINED __attribute__((always_inline))  // a lambda

namespace wd {
namespace {

constexpr std::int64_t kPanelRows = 256;
constexpr int kMaxPanelColumns = 64;
constexpr int kDirectTiles = 4;  // for fewer rows of tiles, packing b takes longer than it saves

// A tile of kRows rows and kVectors vectors of kBytes bytes.
template <int kBytes, int kRowsOfTile, int kVectorsOfTile>
struct Tile {
  using Vector = detail::FloatVector<kBytes>;
  static constexpr int kRows = kRowsOfTile, kVectors = kVectorsOfTile;
  static constexpr int kLanes = kBytes / 4, kColumns = kVectors * kLanes;
};

// Terms of a product, and floats from one row or column to the next.
struct Product {
  std::int64_t k, a_row, a_column, b_row, c_row;
};

// Calls f(0) .. f(kTimes - 1) with constant expressions, so that arrays indexed by them become registers.
template <int kTimes, typename F>
[[gnu::always_inline]] inline void repeat(const F& f) {
  [&]<int... k>(std::integer_sequence<int, k...>)
      WD_INLINED { (f(std::integral_constant<int, k>()), ...); }(std::make_integer_sequence<int, kTimes>());
}

// c[kRows, T::kColumns] = start + a b, where start is one row for all rows, or null to start from c.
template <typename T, int kRows>
[[gnu::always_inline]] inline void multiply(const Product& product, const float* a, const float* b,
                                            const float* start, float* c) {
  using Vector = typename T::Vector;
  const std::int64_t row = product.a_row, column = product.a_column, b_row = product.b_row;
  const std::int64_t c_row = product.c_row, start_row = start == nullptr ? c_row : 0;
  if (start == nullptr) start = c;
  Vector sum[kRows][T::kVectors];
  const auto each = [&](const auto& f) WD_INLINED {
    repeat<kRows>([&](auto i) WD_INLINED { repeat<T::kVectors>([&](auto v) WD_INLINED { f(i, v); }); });
  };
  each([&](auto i, auto v)
           WD_INLINED { std::memcpy(&sum[i][v], start + i * start_row + v * T::kLanes, sizeof(Vector)); });
  for (std::int64_t p = product.k; p > 0; --p) {
    Vector right[T::kVectors];
    repeat<T::kVectors>([&](auto v)
                            WD_INLINED { std::memcpy(&right[v], b + v * T::kLanes, sizeof(Vector)); });
    each([&](auto i, auto v) WD_INLINED {
      sum[i][v] += a[i * row] * right[v];  // fused: see CMakeLists.txt
    });
    a += column;
    b += b_row;
  }
  each([&](auto i, auto v)
           WD_INLINED { std::memcpy(c + i * c_row + v * T::kLanes, &sum[i][v], sizeof(Vector)); });
}

// Each in a function of its own, for which the compiler allocates registers better.
template <typename T, int kRows>
[[gnu::noinline]] void multiply_narrow(const Product& product, const float* a, const float* b,
                                       const float* start, float* c) {
  multiply<T, kRows>(product, a, b, start, c);
}
template <typename T, int kRows>
WD_WIDE [[gnu::noinline]] void multiply_wide(const Product& product, const float* a, const float* b,
                                             const float* start, float* c) {
  multiply<T, kRows>(product, a, b, start, c);
}

using Multiply = void (*)(const Product&, const float* a, const float* b, const float* start, float* c);

// The function for `rows` rows of a tile.
template <int kBytes, typename T>
Multiply multiply_of(std::int64_t rows) {
  static constexpr auto kAll = []<int... kBefore>(std::integer_sequence<int, kBefore...>) {
    if constexpr (kBytes == kWideVectors) {
      return std::array<Multiply, T::kRows>{multiply_wide<T, kBefore + 1>...};
    } else {
      return std::array<Multiply, T::kRows>{multiply_narrow<T, kBefore + 1>...};
    }
  }(std::make_integer_sequence<int, T::kRows>());
  return kAll[static_cast<std::size_t>(rows - 1)];
}

// Rows of a panel of b, `row` floats apart.
struct Panel {
  const float* data;
  std::int64_t row;
};

// Returns [rows, columns] of b, from (first, column) on: in place, or packed into rows of T::kColumns columns,
// with zeros where b has none.
template <typename T>
Panel panel_of(const MatmulArgs& args, std::int64_t first, std::int64_t rows, std::int64_t column,
               int columns, float* memory) {
  constexpr int kWidth = T::kColumns;
  const ConstMatrix& b = args.b;
  const float* const from = b.data + first * b.row + column * b.column;
  if (columns == kWidth && b.column == 1 && args.m <= kDirectTiles * T::kRows) return {from, b.row};
  if (columns < kWidth) std::fill_n(memory, rows * kWidth, 0.0f);
  if (b.column == 1) {
    for (std::int64_t p = 0; p < rows; ++p)
      for (int j = 0; j < columns; ++j) memory[p * kWidth + j] = from[p * b.row + j];
  } else {
    for (int j = 0; j < columns; ++j)
      for (std::int64_t p = 0; p < rows; ++p) memory[p * kWidth + j] = from[p * b.row + j * b.column];
  }
  return {memory, kWidth};
}

// Multiplies all rows of c with one panel: at most T::kColumns columns from `column` on, terms
// [first, first + k). Returns the next column.
template <int kBytes, typename T>
std::int64_t multiply_panel(const MatmulArgs& args, std::int64_t first, std::int64_t k, std::int64_t column,
                            float* memory) {
  constexpr int kWidth = T::kColumns;
  const int columns = static_cast<int>(std::min<std::int64_t>(kWidth, args.n - column));
  const Panel panel = panel_of<T>(args, first, k, column, columns, memory);
  float zero_or_bias[kWidth] = {};
  if (args.bias != nullptr) std::copy_n(args.bias + column, columns, zero_or_bias);
  const float* const start = first == 0 && !args.add ? zero_or_bias : nullptr;
  const Product product{k, args.a.row, args.a.column, panel.row, args.c_row};
  const Product narrower{k, args.a.row, args.a.column, panel.row, kWidth};
  for (std::int64_t i = 0; i < args.m; i += T::kRows) {
    const std::int64_t rows = std::min<std::int64_t>(T::kRows, args.m - i);
    const Multiply multiply = multiply_of<kBytes, T>(rows);
    const float* const a = args.a.data + i * args.a.row + first * args.a.column;
    float* const c = args.c + i * args.c_row + column;
    if (columns == kWidth) {
      multiply(product, a, panel.data, start, c);
      continue;
    }
    // c is narrower than the tile: compute in a temporary tile.
    float tile[T::kRows * kWidth] = {};
    for (std::int64_t r = 0; start == nullptr && r < rows; ++r)
      std::copy_n(c + r * args.c_row, columns, tile + r * kWidth);
    multiply(narrower, a, panel.data, start, tile);
    for (std::int64_t r = 0; r < rows; ++r) std::copy_n(tile + r * kWidth, columns, c + r * args.c_row);
  }
  return column + columns;
}

}  // namespace

void matmul(const MatmulArgs& args) {
  const profile::Scope scope("matrix product");
  with_vectors([&](auto bytes) {
    alignas(64) float memory[kPanelRows * kMaxPanelColumns];
    for (std::int64_t first = 0; first < std::max<std::int64_t>(args.k, 1); first += kPanelRows) {
      const std::int64_t k = std::min(kPanelRows, args.k - first);
      for (std::int64_t column = 0; column < args.n;) {
        const auto next = [&](auto tile) {
          column = multiply_panel<bytes, decltype(tile)>(args, first, k, column, memory);
        };
        const std::int64_t columns = args.n - column;
        // 24 sums of 32 registers, or 12 of 16.
        if constexpr (bytes == kWideVectors) {
          if (columns > 48) {
            next(Tile<64, 6, 4>());
          } else if (columns > 24) {
            next(Tile<64, 12, 2>());
          } else if (columns > 8) {
            next(Tile<64, 12, 1>());
          } else {
            next(Tile<32, 12, 1>());
          }
        } else if (columns > 8) {
          next(Tile<32, 6, 2>());
        } else {
          next(Tile<32, 12, 1>());
        }
      }
    }
  });
}

}  // namespace wd
