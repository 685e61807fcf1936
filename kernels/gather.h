// gather.h: rows of several arrays by one list of indices, in one kernel.
#pragma once

#include <cstddef>

#include "kernels/queue.h"
#include "wd/random.h"

namespace wd {

inline constexpr int kMaxGathered = 10;

// Rows of one array; both ends begin at a multiple of word_bytes.
struct GatheredArray {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::int64_t row_bytes = 0;
  int word_bytes = 0;  // 16, 4 or 1: what a thread of a GPU copies
};

struct GatherArgs {
  const std::int64_t* index = nullptr;  // [rows]
  std::int64_t rows = 0;
  int num_arrays = 0;
  GatheredArray arrays[kMaxGathered];

  // Throws where there are too many.
  void add(const void* from, void* to, std::int64_t row_bytes);
};

// to[i] = from[index[i]] of every array. Enqueues.
void gather(Queue queue, const GatherArgs& args);

WD_CUDA_KERNEL(gather, const GatherArgs& args)

}  // namespace wd
