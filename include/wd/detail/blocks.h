// blocks.h: divides N rows into blocks that lanes work through. Neither the number of lanes nor their order
// depends on threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "wd/detail/parallel.h"

namespace wd {

inline constexpr std::int64_t kMaxLanes = 16;   // at most this many threads share a gradient
inline constexpr std::int64_t kMinBlock = 32;   // rows, CPU: fewer are not worth waking a thread
inline constexpr std::int64_t kMaxBlock = 512;  // rows, CPU: activations of 256 floats fit in a core's cache
inline constexpr std::int64_t kTileRows = 12;   // two tiles of kernels/matmul.cpp

// Rows, GPU: inference multiplies at most this many at once. cuBLASLt's products are proven up to here, and
// the memory of activations stays bounded, however many replicas there are.
inline constexpr std::int64_t kMaxInferenceRows = std::int64_t{1} << 20;

inline std::int64_t round_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

// N rows in blocks; lane l works through its blocks in order.
struct Blocks {
  std::int64_t rows, block, count, lanes;
  std::int64_t max_rows;  // max rows per block, whatever `rows` is

  // Groups of `unit` rows stay together.
  static Blocks of(std::int64_t rows, bool cuda, std::int64_t chunk_rows, std::int64_t unit) {
    const auto whole_units = [&](std::int64_t n) { return std::max(n / unit, std::int64_t{1}) * unit; };
    if (cuda) {
      const std::int64_t chunk = whole_units(chunk_rows);
      return {rows, chunk, round_up(rows, chunk) / chunk, 1, chunk};
    }
    // Equal blocks, with equal numbers of them for each lane and for each of 2 or 4 threads, so that no
    // thread waits for another's remainder.
    const std::int64_t max_rows = whole_units(std::min(kMaxBlock, chunk_rows)),
                       tile = unit > 1 ? unit : kTileRows;
    const std::int64_t min_count = round_up(rows, max_rows) / max_rows;
    const std::int64_t even_count = min_count > kMaxLanes   ? round_up(min_count, kMaxLanes)
                                    : min_count > 2         ? round_up(min_count, 4)
                                    : rows >= 2 * kMinBlock ? 2
                                                            : 1;
    const std::int64_t block =
        std::clamp(round_up((rows + even_count - 1) / even_count, tile), tile, max_rows);
    const std::int64_t count = round_up(rows, block) / block;
    return {rows, block, count, std::min(count, kMaxLanes), max_rows};
  }
  // The blocks of inference, which on a GPU are as large as possible.
  static Blocks of_inference(std::int64_t rows, bool cuda, std::int64_t unit) {
    return of(rows, cuda, cuda ? std::min(rows, kMaxInferenceRows) : kMaxBlock, unit);
  }
  // Blocks of `block` rows; the last one has the rows that are left.
  static Blocks of_size(std::int64_t rows, std::int64_t block, bool cuda) {
    const std::int64_t count = round_up(rows, block) / block;
    return {rows, block, count, cuda ? 1 : std::min(count, kMaxLanes), block};
  }
  // Calls f(lane, begin, end) for every block.
  template <typename F>
  void each(F f) const {
    const auto run = [&](std::int64_t lane) {
      for (std::int64_t b = lane * count / lanes; b < (lane + 1) * count / lanes; ++b) {
        f(lane, b * block, std::min(rows, (b + 1) * block));
      }
    };
    if (lanes == 1) return run(0);
    parallel_for(lanes, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t lane = first; lane < last; ++lane) run(lane);
    });
  }
};

}  // namespace wd
