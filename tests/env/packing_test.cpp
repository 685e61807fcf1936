// packing_test.cpp: replicas per block of the CUDA executor, and what fits into shared memory.
#include "wd/detail/packing.h"

#include <gtest/gtest.h>

namespace wd::detail {
namespace {

constexpr std::size_t kTuring = 64 << 10, kHopper = 227 << 10;

StateLayout layout_of(int agents, std::uint32_t block, std::uint32_t scratch) {
  StateLayout layout;
  layout.num_agents = agents;
  layout.block_bytes = block;
  layout.scratch_bytes = scratch;
  return layout;
}

TEST(Packing, DependsOnTheNumberOfAgents) {
  struct Case {
    int agents, tile, replicas;
  };
  for (const auto& [agents, tile, replicas] :
       {Case{1, 1, 128}, Case{2, 8, 16}, Case{8, 8, 16}, Case{9, 32, 4}, Case{32, 32, 4}, Case{33, 0, 1}}) {
    EXPECT_EQ(tile_of(agents), tile) << agents;
    EXPECT_EQ(replicas_per_block(tile), replicas) << agents;
  }
}

TEST(Packing, StagesWhatFitsBesideTheKernelsOwnMemory) {
  EXPECT_TRUE(is_staged(layout_of(105, 40 << 10, 20 << 10), kTuring));
  EXPECT_TRUE(is_staged(layout_of(105, 43 << 10, 20 << 10), kTuring));
  EXPECT_FALSE(is_staged(layout_of(105, (43 << 10) + 16, 20 << 10), kTuring));
  EXPECT_TRUE(is_staged(layout_of(105, (43 << 10) + 16, 20 << 10), kHopper));
  EXPECT_FALSE(is_staged(layout_of(1, 256, 256), kTuring)) << "128 replicas share a block";
  EXPECT_TRUE(is_staged(layout_of(1, 256, 240), kTuring));
  EXPECT_TRUE(is_staged(layout_of(2, 2048, 1024), kTuring)) << "16 replicas share a block";
}

}  // namespace
}  // namespace wd::detail
