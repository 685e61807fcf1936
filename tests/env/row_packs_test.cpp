// row_packs_test.cpp: the threads of a block, run one after the other, together write the same rows as a
// single thread.
#include "wd/detail/row_packs.h"

#include <gtest/gtest.h>

#include <vector>

#include "wd/detail/team.h"

namespace wd {
namespace {

constexpr float kUntouched = -7.0f;

// Rows of `stride` entries; the first row is aligned to 16 bytes.
struct Rows {
  int stride;
  std::vector<detail::Pack<4>> memory;

  Rows(int n, int width) : stride(width), memory(static_cast<std::size_t>(n * width / 4 + 1)) {
    for (auto& pack : memory) pack = {kUntouched, kUntouched, kUntouched, kUntouched};
  }
  float* row(int i) const { return const_cast<float*>(memory[0].entry) + i * stride; }
  std::vector<float> entries(int n) const { return {row(0), row(n)}; }
};

// The same in bfloat16.
struct HalfRows {
  int stride;
  std::vector<detail::Pack<4>> memory;

  HalfRows(int n, int width)
      : stride((width + 7) / 8 * 8), memory(static_cast<std::size_t>(n * stride / 8 + 1)) {}
  std::uint16_t* bits(int i) const {
    return const_cast<std::uint16_t*>(reinterpret_cast<const std::uint16_t*>(memory.data())) + i * stride;
  }
  ObservationRow row(int i) const { return {bits(i), ObservationType::kBfloat16}; }
  std::vector<std::uint16_t> entries(int n) const { return {bits(0), bits(n)}; }
};

struct Shape {
  int n, m, size;
};

constexpr Shape kShapes[] = {{1, 1, 1}, {1, 3, 0},   {3, 2, 2},   {2, 7, 3},     {4, 7, 4},    {5, 1, 16},
                             {9, 5, 5}, {11, 4, 11}, {33, 7, 10}, {105, 7, 104}, {110, 7, 10}, {40, 2, 300}};

TEST(RowPacks, ThreadsWriteWhatOneWrites) {
  for (const auto& [n, m, size] : kShapes) {
    // One entry follows the parts, like the time in observations.
    const int width = (m * size + 1 + 3) / 4 * 4;
    const auto value = [](int i, int c) {
      return [=](int k) { return static_cast<float>(1 + i * 10000 + c * 500 + k); };
    };
    Rows alone(n, width);
    SerialTeam(0).write_parts(alone, n, m, size, value);
    for (int i = 0; i < n; ++i) {
      for (int c = 0; c < m; ++c)
        for (int k = 0; k < size; ++k) ASSERT_EQ(alone.row(i)[c * size + k], value(i, c)(k));
      for (int rest = m * size; rest < width; ++rest) ASSERT_EQ(alone.row(i)[rest], kUntouched);
    }
    for (const int threads : {1, 8, 32, 256, 1024}) {
      Rows together(n, width);
      for (int rank = 0; rank < threads; ++rank)
        detail::write_packs<4>(rank, threads, together, n, m, size, value);
      ASSERT_EQ(together.entries(n), alone.entries(n))
          << threads << " threads: " << n << ", " << m << ", " << size;
    }
  }
}

TEST(RowPacks, EightBfloat16AThread) {
  for (const auto& [n, m, size] : kShapes) {
    const auto value = [](int i, int c) {
      return [=](int k) { return 1.001f + static_cast<float>(i * 10000 + c * 500 + k); };
    };
    HalfRows alone(n, m * size + 1), together(n, m * size + 1);
    SerialTeam(0).write_parts(alone, n, m, size, value);
    for (int i = 0; i < n; ++i) {
      for (int k = 0; k < m * size; ++k)
        ASSERT_EQ(alone.bits(i)[k], to_bfloat16(value(i, k / size)(k % size)));
      ASSERT_EQ(alone.bits(i)[m * size], 0);
    }
    for (const int threads : {1, 8, 32, 256, 1024}) {
      for (int rank = 0; rank < threads; ++rank)
        detail::write_packs<8>(rank, threads, together, n, m, size, value);
      ASSERT_EQ(together.entries(n), alone.entries(n))
          << threads << " threads: " << n << ", " << m << ", " << size;
    }
  }
}

TEST(RowPacks, TheOthersOfEachAgent) {
  for (const int n : {1, 2, 5, 6, 33, 105}) {
    const int m = 3, width = (m * (n - 1) + 3) / 4 * 4;
    const auto value = [](int i, int c) {
      return [=](int j) { return static_cast<float>(1 + i * 10000 + c * 500 + j); };
    };
    Rows alone(n, width), together(n, width);
    SerialTeam(0).write_others(alone, n, m, value);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        if (j == i) continue;
        ASSERT_EQ(alone.row(i)[n - 1 + (j < i ? j : j - 1)], value(i, 1)(j));
      }
    }
    for (int rank = 0; rank < 256; ++rank)
      detail::write_packs<4>(rank, 256, together, n, m, n - 1, others_of(value));
    ASSERT_EQ(together.entries(n), alone.entries(n)) << n;
  }
}

}  // namespace
}  // namespace wd
