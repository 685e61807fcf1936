// gather.h: gathers rows of several arrays by one list of indices, in one kernel.
#pragma once

#include <cstddef>

#include "wd/queue.h"
#include "wd/random.h"

namespace wd {

// The number of fields of a batch: src/rollout/trajectory.cpp compares it with the table of fields when it is
// compiled. Kernel arguments have a fixed size.
inline constexpr int kMaxGathered = 15;

// Rows of one array. `from` and `to` are aligned to word_bytes, of which row_bytes is a multiple.
struct GatheredArray {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::int64_t row_bytes = 0;
  int word_bytes = 0;  // 16, 4 or 1: size of the words that GPU threads copy

  // Rows as wide as row_bytes, in both arrays.
  static GatheredArray of(const void* from, void* to, std::int64_t row_bytes);
};

struct GatherArgs {
  const std::int64_t* index = nullptr;  // [rows]
  std::int64_t rows = 0;
  int num_arrays = 0;
  GatheredArray arrays[kMaxGathered];

  // Throws std::runtime_error if there are too many.
  void add(const void* from, void* to, std::int64_t row_bytes);
};

// Sets to[i] = from[index[i]] for every array. Enqueues.
WD_DECLARE_KERNEL(gather, GatherArgs)
// Both, in one launch. Enqueues.
void gather(Queue queue, const GatherArgs& first, const GatherArgs& second);
WD_CUDA_KERNEL(gather_both, const GatherArgs& first, const GatherArgs& second)

}  // namespace wd
