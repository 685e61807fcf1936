// packing.h: how many replicas share a block of threads on a GPU, and whether their state fits into its
// shared memory.
#pragma once

#include <cstddef>

#include "wd/environment.h"

namespace wd::detail {

// Threads of a block that packs several replicas.
inline constexpr int kPackedThreads = 128;

// Threads that step one replica: 1, 8 or 32 neighbors in a warp, or 0: a whole block.
constexpr int tile_of(int num_agents) {
  if (num_agents > 32) return 0;
  if (num_agents > 8) return 32;
  return num_agents > 1 ? 8 : 1;
}

constexpr int replicas_per_block(int tile) { return tile == 0 ? 1 : kPackedThreads / tile; }

// Whether a block may keep `bytes` in shared memory if the GPU grants at most `limit` to a block. A kernel
// has static shared memory too, of less than 1 KiB.
constexpr bool fits_in_shared(std::size_t bytes, std::size_t limit) { return bytes + 1024 <= limit; }

// Whether the CUDA executor keeps blocks and scratch memory of replicas in shared memory. Otherwise the
// blocks stay where they are, and each replica needs scratch memory in StepView::scratch.
inline bool is_staged(const StateLayout& layout, std::size_t limit) {
  const auto packed = static_cast<std::size_t>(replicas_per_block(tile_of(layout.num_agents)));
  return fits_in_shared(packed * (layout.block_bytes + layout.scratch_bytes), limit);
}

}  // namespace wd::detail
