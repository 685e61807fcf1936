// staged_rows.cuh: rows of a network's output in shared memory, for kernels in which one thread goes through
// one row. A block moves its rows together, so that neighboring threads move neighboring words; in global
// memory each thread of a warp would touch another row with every instruction.
//
// Rows in shared memory are an odd number of words apart: the same column of 32 rows is in 32 banks.
#pragma once

#include "wd/detail/bfloat16.h"
#include "wd/detail/launch.cuh"
#include "wd/kernels/rows.h"

namespace wd::cuda {

// Shared memory that a block has without opting in.
inline constexpr int kStagedBytes = 48 << 10;
inline constexpr int kMostStagedThreads = 128;

__host__ __device__ inline int staged_stride(int columns) { return columns | 1; }

// Threads per block such that its rows fit, each of `bytes` bytes; 0: not even those of a warp.
inline unsigned staged_threads(int bytes) {
  for (int threads = kMostStagedThreads; threads >= 32; threads /= 2)
    if (threads * bytes <= kStagedBytes) return static_cast<unsigned>(threads);
  return 0;
}

// The columns of a row that are staged: with the one of `next`, if that is behind the others.
inline int staged_columns(Rows<const float> rows, int columns, Rows<const float> next) {
  return next.pointer == rows.pointer + columns && next.stride == rows.stride ? columns + 1 : columns;
}

// Copies the first `columns` entries of `rows` rows to shared rows. Reads up to the end of the last row's
// columns, and what lies between rows.
__device__ inline void stage_rows(Rows<const float> of, int columns, int rows, float* to) {
  const float* const from = of.pointer;
  const int width = staged_stride(columns), stride = static_cast<int>(of.stride);
  const int entries = (rows - 1) * stride + columns;
  const auto put = [&](int row, int column, float value) {
    if (column < columns) to[row * width + column] = value;
  };
  int begin = 0;
  if (reinterpret_cast<std::uintptr_t>(from) % 16 == 0) {
    const int packs = entries / 4;
    for (int i = static_cast<int>(threadIdx.x); i < packs; i += static_cast<int>(blockDim.x)) {
      const float4 pack = reinterpret_cast<const float4*>(from)[i];
      int row = 4 * i / stride, column = 4 * i - row * stride;
      const auto next = [&](float value) {
        put(row, column, value);
        if (++column == stride) column = 0, ++row;
      };
      next(pack.x);
      next(pack.y);
      next(pack.z);
      next(pack.w);
    }
    begin = 4 * packs;
  }
  for (int i = begin + static_cast<int>(threadIdx.x); i < entries; i += static_cast<int>(blockDim.x))
    put(i / stride, i % stride, from[i]);
}

// Copies shared rows back. Entries from `columns` on stay as they are.
template <typename Number>
__device__ void unstage_rows(const float* from, int columns, int rows, Rows<Number> of) {
  Number* const to = of.pointer;
  const int width = staged_stride(columns), stride = static_cast<int>(of.stride),
            threads = static_cast<int>(blockDim.x);
  const int step_rows = threads / stride, step_columns = threads - step_rows * stride;
  int row = static_cast<int>(threadIdx.x) / stride, column = static_cast<int>(threadIdx.x) - row * stride;
  for (int i = static_cast<int>(threadIdx.x); i < rows * stride; i += threads) {
    if (column < columns) store_number(to + i, from[row * width + column]);
    row += step_rows;
    column += step_columns;
    if (column >= stride) column -= stride, ++row;
  }
}

// Copies bytes, four at a time where both ends allow it.
__device__ inline void stage_bytes(const std::uint8_t* from, int bytes, std::uint8_t* to) {
  const int words = reinterpret_cast<std::uintptr_t>(from) % 4 == 0 ? bytes / 4 : 0;
  for (int i = static_cast<int>(threadIdx.x); i < words; i += static_cast<int>(blockDim.x))
    reinterpret_cast<unsigned*>(to)[i] = reinterpret_cast<const unsigned*>(from)[i];
  for (int i = 4 * words + static_cast<int>(threadIdx.x); i < bytes; i += static_cast<int>(blockDim.x))
    to[i] = from[i];
}

}  // namespace wd::cuda
