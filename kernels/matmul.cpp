// matmul.cpp: tiles of sums in registers, multiplied with panels of b that stay in the cache.
//
// The algorithm is that of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (2008),
// without packing of a, which is small here. Compared with a library it saves the overhead of the call: a
// layer of 64 takes less time than MKL's dispatch.
#include "kernels/matmul.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "wd/detail/profile.h"
#include "wd/detail/vectors.h"

namespace wd {
namespace {

constexpr std::int64_t kPanelRows = 256;
constexpr int kMaxPanelColumns = 64;
constexpr int kDirectTiles = 4;  // for fewer rows of tiles, packing b takes longer than it saves

#define WD_UNROLL _Pragma("GCC unroll 96")  // before a short loop over an array that must become registers

// A tile of kRows rows and kVectors vectors of kBytes bytes.
template <int kBytes, int kRowsOfTile, int kVectorsOfTile>
struct Tile {
  using Vector = detail::FloatVector<kBytes>;
  // In memory, where it may be any words at any address.
  typedef Vector Stored __attribute__((aligned(4), may_alias));  // NOLINT(modernize-use-using)
  static constexpr int kRows = kRowsOfTile, kVectors = kVectorsOfTile;
  static constexpr int kLanes = kBytes / 4, kColumns = kVectors * kLanes;
};

// A word of a or b is one number, in float32.
struct Singles {
  using Word = float;
  static constexpr std::int64_t kTerms = 1;

  template <typename Vector>
  [[gnu::always_inline]] static void add(Vector& sum, float left, const Vector& right) {
    sum += left * right;  // fused: see CMakeLists.txt
  }
};

// A word of a or b is two numbers in bfloat16. The processor adds the product of the upper halves to the sum
// and rounds, then that of the lower halves: so the first of two terms is in the upper half.
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, VDPBF16PS.
struct Pairs {
  using Word = std::int32_t;
  static constexpr std::int64_t kTerms = 2;

  static Word of(float first, float second) {
    const auto upper = __builtin_bit_cast(std::uint32_t, first);
    const auto lower = __builtin_bit_cast(std::uint32_t, second);
    return static_cast<Word>((upper & 0xffff0000u) | lower >> 16);
  }
  template <typename Vector>
  [[gnu::always_inline]] static void add(Vector& sum, Word left, const Vector& right) {
#ifdef __x86_64__
    const auto lefts = left - typename detail::Vectors<sizeof(Vector)>::Words{};
    // An intrinsic function would need this function to be compiled for such processors.
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(lefts), "v"(right));
#endif
  }
};

// Words of each sum, and words from one row or column to the next.
struct Strides {
  std::int64_t k, a_row, a_column, b_row, c_row;
};

// c[kRows, T::kColumns] = start + a b, where start is one row for all rows, or null to start from c.
template <typename Kind, typename T, int kRows>
[[gnu::always_inline]] inline void multiply(const Strides& strides, const typename Kind::Word* a,
                                            const typename Kind::Word* b, const float* start, float* c) {
  using Vector = typename T::Vector;
  using Stored = typename T::Stored;
  constexpr int kVectors = T::kVectors;
  const std::int64_t a_row = strides.a_row, a_column = strides.a_column, b_row = strides.b_row;
  const std::int64_t c_row = strides.c_row, start_row = start == nullptr ? c_row : 0;
  if (start == nullptr) start = c;
  Vector sum[kRows * kVectors];
  WD_UNROLL
  for (int i = 0; i < kRows; ++i) {
    WD_UNROLL
    for (int v = 0; v < kVectors; ++v)
      sum[i * kVectors + v] = reinterpret_cast<const Stored*>(start + i * start_row)[v];
  }
  for (std::int64_t p = strides.k; p > 0; --p) {
    Vector right[kVectors];
    WD_UNROLL
    for (int v = 0; v < kVectors; ++v) right[v] = reinterpret_cast<const Stored*>(b)[v];
    WD_UNROLL
    for (int i = 0; i < kRows; ++i) {
      WD_UNROLL
      for (int v = 0; v < kVectors; ++v) Kind::add(sum[i * kVectors + v], a[i * a_row], right[v]);
    }
    a += a_column;
    b += b_row;
  }
  WD_UNROLL
  for (int i = 0; i < kRows; ++i) {
    WD_UNROLL
    for (int v = 0; v < kVectors; ++v) reinterpret_cast<Stored*>(c + i * c_row)[v] = sum[i * kVectors + v];
  }
}

// Each tile is a function of its own, for which the compiler allocates registers better.
template <typename Kind>
using Multiply = void (*)(const Strides& strides, const typename Kind::Word* a, const typename Kind::Word* b,
                          const float* start, float* c);
template <typename Kind, typename T, int kRows>
[[gnu::noinline]] void multiply_narrow(const Strides& strides, const typename Kind::Word* a,
                                       const typename Kind::Word* b, const float* start, float* c) {
  multiply<Kind, T, kRows>(strides, a, b, start, c);
}
template <typename Kind, typename T, int kRows>
WD_WIDE [[gnu::noinline]] void multiply_wide(const Strides& strides, const typename Kind::Word* a,
                                             const typename Kind::Word* b, const float* start, float* c) {
  multiply<Kind, T, kRows>(strides, a, b, start, c);
}

// The function for `rows` rows of a tile, in a program with vectors of kBytes bytes.
template <int kBytes, typename Kind, typename T>
Multiply<Kind> multiply_of(std::int64_t rows) {
  static constexpr auto kAll = []<int... kBefore>(std::integer_sequence<int, kBefore...>) {
    if constexpr (kBytes == kWideVectors) {
      return std::array<Multiply<Kind>, T::kRows>{multiply_wide<Kind, T, kBefore + 1>...};
    } else {
      return std::array<Multiply<Kind>, T::kRows>{multiply_narrow<Kind, T, kBefore + 1>...};
    }
  }(std::make_integer_sequence<int, T::kRows>());
  return kAll[static_cast<std::size_t>(rows - 1)];
}

// Words of a or b, from one row or column to the next.
template <typename Word>
struct Words {
  const Word* data;
  std::int64_t row, column;
};

// Eight neighboring words.
using Eight = detail::Vectors<kNarrowVectors>::Words;

Eight load(const void* from) {
  Eight words;
  __builtin_memcpy(&words, from, sizeof(words));
  return words;
}

[[gnu::always_inline]] inline void transpose(Eight (&v)[8]) {
  Eight two[8], four[8];
  WD_UNROLL
  for (int k = 0; k < 8; k += 2) {
    two[k] = __builtin_shufflevector(v[k], v[k + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    two[k + 1] = __builtin_shufflevector(v[k], v[k + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  WD_UNROLL
  for (int k = 0; k < 8; k += 4) {
    four[k] = __builtin_shufflevector(two[k], two[k + 2], 0, 1, 8, 9, 4, 5, 12, 13);
    four[k + 1] = __builtin_shufflevector(two[k], two[k + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    four[k + 2] = __builtin_shufflevector(two[k + 1], two[k + 3], 0, 1, 8, 9, 4, 5, 12, 13);
    four[k + 3] = __builtin_shufflevector(two[k + 1], two[k + 3], 2, 3, 10, 11, 6, 7, 14, 15);
  }
  WD_UNROLL
  for (int k = 0; k < 4; ++k) {
    v[k] = __builtin_shufflevector(four[k], four[k + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    v[k + 4] = __builtin_shufflevector(four[k], four[k + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

// to[rows, width] = the words of a matrix with adjacent rows: eight(p, j) has those of rows p .. p + 7 and
// column j, word(p, j) has one.
template <typename Word, typename GetEight, typename GetWord>
void pack_columns(std::int64_t rows, int columns, int width, Word* to, GetEight eight, GetWord word) {
  for (std::int64_t p = 0; p < rows; p += 8) {
    int j = 0;
    for (; p + 8 <= rows && j + 8 <= columns; j += 8) {
      Eight block[8];
      for (int k = 0; k < 8; ++k) block[k] = eight(p, j + k);
      transpose(block);
      for (int k = 0; k < 8; ++k) __builtin_memcpy(to + (p + k) * width + j, &block[k], sizeof(Eight));
    }
    for (; j < columns; ++j)
      for (std::int64_t q = p; q < std::min(p + 8, rows); ++q) to[q * width + j] = word(q, j);
  }
}

// to[rows, width] = columns of b, and zeros beyond them.
void pack(const ConstMatrix& b, std::int64_t rows, int columns, int width, float* to) {
  if (columns < width) std::fill_n(to, rows * width, 0.0f);
  const auto number = [&](std::int64_t p, std::int64_t j) { return b.data[p * b.row + j * b.column]; };
  if (b.row == 1) {
    const auto eight = [&](std::int64_t p, std::int64_t j) { return load(b.data + p + j * b.column); };
    pack_columns(rows, columns, width, to, eight, number);
  } else if (b.column == 1) {
    for (std::int64_t p = 0; p < rows; ++p) {
      const float* const from = b.data + p * b.row;
      for (int j = 0; j < columns; ++j) to[p * width + j] = from[j];
    }
  } else {
    for (std::int64_t p = 0; p < rows; ++p)
      for (int j = 0; j < columns; ++j) to[p * width + j] = number(p, j);
  }
}
// The same for pairs of rows. The last row may lack its second: it counts as `missing`.
void pack(const ConstMatrix& b, std::int64_t terms, int columns, int width, float missing, Pairs::Word* to) {
  const std::int64_t whole = terms / 2;
  if (columns < width) std::fill_n(to, (terms + 1) / 2 * width, 0);
  const auto pair = [&](std::int64_t p, std::int64_t j) {
    const float* const first = b.data + 2 * p * b.row + j * b.column;
    return Pairs::of(first[0], first[b.row]);
  };
  if (b.row == 1) {
    const auto eight = [&](std::int64_t p, std::int64_t j) {
      const float* const from = b.data + 2 * p + j * b.column;
      const Eight low = load(from), high = load(from + 8);
      const Eight firsts = __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14);
      const Eight seconds = __builtin_shufflevector(low, high, 1, 3, 5, 7, 9, 11, 13, 15);
      return (firsts & ~0xffff) | (seconds >> 16 & 0xffff);
    };
    pack_columns(whole, columns, width, to, eight, pair);
  } else if (b.column == 1) {
    for (std::int64_t p = 0; p < whole; ++p) {
      const float* const first = b.data + 2 * p * b.row;
      for (int j = 0; j < columns; ++j) to[p * width + j] = Pairs::of(first[j], first[b.row + j]);
    }
  } else {
    for (std::int64_t p = 0; p < whole; ++p)
      for (int j = 0; j < columns; ++j) to[p * width + j] = pair(p, j);
  }
  if (terms % 2 == 0) return;
  for (int j = 0; j < columns; ++j)
    to[whole * width + j] = Pairs::of(b.data[2 * whole * b.row + j * b.column], missing);
}

// Returns `rows` rows of words of b from `first` on, and its columns from `column` on: in place, or packed in
// memory, T::kColumns words apart.
template <typename T>
Words<float> panel_of(const MatmulArgs& args, Singles, std::int64_t first, std::int64_t rows,
                      std::int64_t column, int columns, float* memory) {
  const ConstMatrix b{args.b.data + first * args.b.row + column * args.b.column, args.b.row, args.b.column};
  if (columns == T::kColumns && b.column == 1 && args.m <= kDirectTiles * T::kRows) return {b.data, b.row, 1};
  pack(b, rows, columns, T::kColumns, memory);
  return {memory, T::kColumns, 1};
}
// A missing number of b is -0. That of a is +0, and the sum of anything and their product, -0, is itself.
template <typename T>
Words<Pairs::Word> panel_of(const MatmulArgs& args, Pairs, std::int64_t first, std::int64_t rows,
                            std::int64_t column, int columns, Pairs::Word* memory) {
  const ConstMatrix b{args.b.data + 2 * first * args.b.row + column * args.b.column, args.b.row,
                      args.b.column};
  pack(b, std::min(2 * rows, args.k - 2 * first), columns, T::kColumns, -0.0f, memory);
  return {memory, T::kColumns, 1};
}

// Multiplies all rows of c with one panel: at most T::kColumns columns from `column` on, words
// [first, first + k). Returns the next column.
template <int kBytes, typename T, typename Kind>
std::int64_t multiply_panel(const MatmulArgs& args, Kind kind, const Words<typename Kind::Word>& all_a,
                            std::int64_t first, std::int64_t k, std::int64_t column,
                            typename Kind::Word* memory) {
  constexpr int kWidth = T::kColumns;
  const int columns = static_cast<int>(std::min<std::int64_t>(kWidth, args.n - column));
  const auto panel = panel_of<T>(args, kind, first, k, column, columns, memory);
  float zero_or_bias[kWidth] = {};
  if (args.bias != nullptr) std::copy_n(args.bias + column, columns, zero_or_bias);
  const float* const start = first == 0 && !args.add ? zero_or_bias : nullptr;
  const Strides strides{k, all_a.row, all_a.column, panel.row, args.c_row};
  const Strides of_tile{k, all_a.row, all_a.column, panel.row, kWidth};
  for (std::int64_t i = 0; i < args.m; i += T::kRows) {
    const std::int64_t rows = std::min<std::int64_t>(T::kRows, args.m - i);
    const Multiply<Kind> multiply = multiply_of<kBytes, Kind, T>(rows);
    const auto* const a = all_a.data + i * all_a.row + first * all_a.column;
    float* const c = args.c + i * args.c_row + column;
    if (columns == kWidth) {
      multiply(strides, a, panel.data, start, c);
      continue;
    }
    // c is narrower than the tile: compute in a temporary tile.
    float tile[T::kRows * kWidth] = {};
    for (std::int64_t r = 0; start == nullptr && r < rows; ++r)
      std::copy_n(c + r * args.c_row, columns, tile + r * kWidth);
    multiply(of_tile, a, panel.data, start, tile);
    for (std::int64_t r = 0; r < rows; ++r) std::copy_n(tile + r * kWidth, columns, c + r * args.c_row);
  }
  return column + columns;
}

// `words` are those of each row of a. Tiles have 24 sums where there are 32 registers, else 12.
template <int kBytes, typename Kind>
void multiply_all(const MatmulArgs& args, Kind kind, const Words<typename Kind::Word>& a,
                  std::int64_t words) {
  alignas(kWideVectors) typename Kind::Word memory[kPanelRows * kMaxPanelColumns];
  for (std::int64_t first = 0; first < std::max<std::int64_t>(words, 1); first += kPanelRows) {
    const std::int64_t k = std::min(kPanelRows, words - first);
    for (std::int64_t column = 0; column < args.n;) {
      const auto next = [&](auto tile) {
        column = multiply_panel<kBytes, decltype(tile)>(args, kind, a, first, k, column, memory);
      };
      const std::int64_t columns = args.n - column;
      if constexpr (kBytes == kWideVectors) {
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
}

// Packs a into pairs of terms: its rows are those of the result, or its columns if they are adjacent.
Words<Pairs::Word> pairs_of(const MatmulArgs& args, std::vector<Pairs::Word>& memory) {
  const std::int64_t words = (args.k + 1) / 2;
  memory.resize(static_cast<std::size_t>(args.m * words));
  Pairs::Word* const to = memory.data();
  const int m = static_cast<int>(args.m);
  if (args.a.column != 1) {
    pack(args.a.transposed(), args.k, m, m, 0.0f, to);
    return {to, 1, args.m};
  }
  for (std::int64_t i = 0; i < args.m; ++i) {
    const float* const from = args.a.data + i * args.a.row;
    for (std::int64_t p = 0; p < args.k / 2; ++p) to[i * words + p] = Pairs::of(from[2 * p], from[2 * p + 1]);
    if (args.k % 2 != 0) to[i * words + words - 1] = Pairs::of(from[args.k - 1], 0.0f);
  }
  return {to, words, 1};
}

// More sums than a processor has multiplications under way.
template <int kBytes>
[[gnu::always_inline]] inline double multiply_registers(std::int64_t rounds) {
  constexpr int kSums = 12, kTimes = 8, kFloats = kBytes / sizeof(float);
  using Vector = detail::FloatVector<kBytes>;
  Vector sum[kSums] = {}, factor = Vector{} + 0.5f;
  // The compiler may neither merge equal sums, nor leave rounds out.
  for (Vector& one : sum) asm volatile("" : "+x"(one));
  for (std::int64_t round = 0; round < rounds; ++round) {
    WD_UNROLL
    for (int k = 0; k < kSums * kTimes; ++k) sum[k % kSums] = sum[k % kSums] * factor + factor;
    asm volatile("" : "+x"(factor));
  }
  Vector all{};
  for (const Vector& one : sum) all += one;
  volatile float used = all[0];
  static_cast<void>(used);
  return 2.0 * kSums * kTimes * kFloats * static_cast<double>(rounds);
}

}  // namespace

void matmul(const MatmulArgs& args) {
  const profile::Scope scope("matrix product");
  with_vectors([&](auto bytes) {
    if constexpr (bytes == kWideVectors) {
      if (args.bfloat16 && has_bf16_products()) {
        thread_local std::vector<Pairs::Word> memory;
        return multiply_all<kWideVectors>(args, Pairs(), pairs_of(args, memory), (args.k + 1) / 2);
      }
    }
    const Words<float> a{args.a.data, args.a.row, args.a.column};
    multiply_all<bytes>(args, Singles(), a, args.k);
  });
}

double multiply_in_registers(std::int64_t rounds) {
  double flop = 0.0;
  with_vectors([&](auto bytes) { flop = multiply_registers<bytes>(rounds); });
  return flop;
}

}  // namespace wd
