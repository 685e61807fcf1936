// races_test.cpp: accesses that no barrier orders are found, whatever order the threads run in, and the
// others are not.
#include "src/emulator/races.h"

#include <gmock/gmock.h>

#include <bit>

#include "tests/emulation/orders.h"
#include "wd/detail/cuda_executor.cuh"

namespace wd::emulation {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using wd::cuda::launch;
using wd::cuda::LaunchShape;

class RacesTest : public testing::TestWithParam<NamedOrder> {
 protected:
  RacesTest() {
    set_order(GetParam());
    Races::instance().enable(true);
  }
  ~RacesTest() override { Races::instance().enable(false); }

  // What a launch complains about; empty if there is nothing.
  template <typename... P>
  static std::string complaint(void (*kernel)(P...), const LaunchShape& shape,
                               const std::type_identity_t<P>&... args) {
    try {
      launch(kernel, shape, args...);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return cudaGetLastError() == cudaSuccess ? "" : "an error of CUDA";
  }

  std::vector<int> out_ = std::vector<int>(4096);
  unsigned long long counter_ = 0;
};

// --- One block ---

template <bool kBarrier>
__global__ void rotate(int* out) {
  WD_SHARED(int[64], mine);
  mine[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (kBarrier) __syncthreads();
  out[blockIdx.x * 64 + threadIdx.x] = mine[(threadIdx.x + 1) % 64];
}

TEST_P(RacesTest, ABarrierOrdersSharedMemory) {
  EXPECT_EQ(complaint(rotate<true>, {3, 64, nullptr}, out_.data()), "");
  EXPECT_THAT(complaint(rotate<false>, {1, 64, nullptr}, out_.data()),
              AllOf(HasSubstr("writes it"), HasSubstr("reads it"), HasSubstr("races_test.cpp:")));
}

template <bool kBarrier>
__global__ void reuse(int* out) {
  WD_SHARED(int, word);
  for (int k = 0; k < 2; ++k) {
    if (threadIdx.x == 0) word = k;
    __syncthreads();
    out[threadIdx.x] = word;
    if (kBarrier) __syncthreads();
  }
}

TEST_P(RacesTest, AWriteAfterOthersReadNeedsABarrierToo) {
  EXPECT_EQ(complaint(reuse<true>, {1, 64, nullptr}, out_.data()), "");
  EXPECT_THAT(complaint(reuse<false>, {1, 64, nullptr}, out_.data()), HasSubstr("a race"));
}

__global__ void all_write_one_value(int* out) { *out = 7; }

TEST_P(RacesTest, AnEqualValueIsARaceToo) {
  EXPECT_THAT(complaint(all_write_one_value, {1, 2, nullptr}, out_.data()), HasSubstr("a race"));
}

__global__ void bytes(char* out) { out[threadIdx.x] = 1; }

TEST_P(RacesTest, NeighboringBytesDoNotRace) {
  EXPECT_EQ(complaint(bytes, {1, 64, nullptr}, reinterpret_cast<char*>(out_.data())), "");
}

template <unsigned kMask>
__global__ void within_a_warp(int* out) {
  WD_SHARED(int[32], mine);
  mine[threadIdx.x] = 1;
  if ((kMask >> threadIdx.x & 1) != 0) __syncwarp(kMask);
  out[threadIdx.x] = mine[threadIdx.x ^ 1];
}

TEST_P(RacesTest, AWarpBarrierOrdersTheLanesOfItsMask) {
  EXPECT_EQ(complaint(within_a_warp<~0u>, {1, 32, nullptr}, out_.data()), "");
  EXPECT_THAT(complaint(within_a_warp<0x0000ffff>, {1, 32, nullptr}, out_.data()), HasSubstr("a race"));
}

__global__ void between_warps(int* out) {
  WD_SHARED(int[64], mine);
  mine[threadIdx.x] = 1;
  __syncwarp();
  out[threadIdx.x] = mine[(threadIdx.x + 32) % 64];
}

TEST_P(RacesTest, AWarpBarrierDoesNotOrderOtherWarps) {
  EXPECT_THAT(complaint(between_warps, {1, 64, nullptr}, out_.data()), HasSubstr("a race"));
}

__global__ void shuffle(int* out) {
  WD_SHARED(int[32], mine);
  mine[threadIdx.x] = 1;
  __shfl_xor_sync(~0u, 1.0f, 1);
  out[threadIdx.x] = mine[threadIdx.x ^ 1];
}

TEST_P(RacesTest, AShuffleOrdersItsLanes) {
  EXPECT_EQ(complaint(shuffle, {1, 32, nullptr}, out_.data()), "");
}

// --- Several blocks ---

__global__ void same_word_in_each_block(int* out) {
  if (threadIdx.x == 0) ++*out;
}

TEST_P(RacesTest, NothingOrdersBlocks) {
  EXPECT_EQ(complaint(same_word_in_each_block, {1, 32, nullptr}, out_.data()), "");
  EXPECT_THAT(complaint(same_word_in_each_block, {2, 32, nullptr}, out_.data()),
              AllOf(HasSubstr("of block 0"), HasSubstr("of block 1")));
}

TEST_P(RacesTest, ALaunchComesAfterTheOneBefore) {
  for (int k = 0; k < 3; ++k)
    EXPECT_EQ(complaint(same_word_in_each_block, {1, 32, nullptr}, out_.data()), "");
}

__global__ void count(int* out) { atomicAdd(out, 1); }
__global__ void count_or_write(int* out) {
  if (threadIdx.x == 0)
    *out = 1;
  else
    atomicAdd(out, 1);
}

TEST_P(RacesTest, AtomicsRaceWithOtherAccessesOnly) {
  EXPECT_EQ(complaint(count, {4, 64, nullptr}, out_.data()), "");
  EXPECT_EQ(out_[0], 256);
  EXPECT_THAT(complaint(count_or_write, {1, 64, nullptr}, out_.data()), HasSubstr("atomically"));
}

// The last block that arrives reads what all have written.
template <bool kBarrier, bool kFence, bool kPastL1 = true>
__global__ void last_block(int* out, unsigned long long* arrived) {
  WD_SHARED(bool, last);
  out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
  if (kBarrier) __syncthreads();
  if (threadIdx.x == 0) {
    if (kFence) __threadfence();
    last = atomicAdd(arrived, 1ull) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0)
    for (unsigned k = 0; k < gridDim.x * blockDim.x; ++k) out[2048] += kPastL1 ? __ldcg(out + k) : out[k];
}

TEST_P(RacesTest, AFenceAndAnAtomicOrderBlocks) {
  EXPECT_EQ(complaint(last_block<true, true>, {4, 64, nullptr}, out_.data(), &counter_), "");
  EXPECT_EQ(out_[2048], 256);
  counter_ = 0;
  EXPECT_THAT(complaint(last_block<false, true>, {4, 64, nullptr}, out_.data(), &counter_),
              HasSubstr("a race"));
  counter_ = 0;
  EXPECT_THAT(complaint(last_block<true, false>, {4, 64, nullptr}, out_.data(), &counter_),
              HasSubstr("a race"));
}

TEST_P(RacesTest, WhatAnotherBlockHasWrittenIsNotReadThroughTheCache) {
  EXPECT_THAT(complaint(last_block<true, true, false>, {4, 64, nullptr}, out_.data(), &counter_),
              AllOf(HasSubstr("through the L1 cache"), HasSubstr("use __ldcg()")));
  counter_ = 0;
  EXPECT_EQ(complaint(last_block<true, true, false>, {1, 64, nullptr}, out_.data(), &counter_), "");
}

// --- Phases ---

__global__ void items_of_one_thread(int* out) {
  WD_SHARED(float[32], partial);
  wd::detail::CudaTeam<0> team(0, partial);
  team.each(64, [&](int i) { out[i / 2] = i; });
}

TEST_P(RacesTest, ItemsRaceThoughOneThreadRunsThem) {
  const int line = __LINE__ - 4;
  EXPECT_THAT(complaint(items_of_one_thread, {1, 32, nullptr}, out_.data()),
              AllOf(HasSubstr("which runs f("), HasSubstr("races_test.cpp:" + std::to_string(line))));
}

struct PlainRows {
  float* memory;
  int stride;
  __device__ ObservationRow row(int i) const {
    return ObservationRow(memory, ObservationType::kFloat32) + i * stride;
  }
  __device__ ObservationType type() const { return ObservationType::kFloat32; }
};

// Rows of 3 parts of 5 entries, of which each agent then reads its neighbor's. `beyond` counts parts that are
// not there.
template <int kTile>
__global__ void rows_and_a_phase(float* rows, int* out, int* beyond) {
  constexpr int kAgents = 64, kParts = 3, kSize = 5;
  WD_SHARED(float[32], partial);
  wd::detail::CudaTeam<kTile> team(0, partial);
  const PlainRows to{rows, 16};
  team.write_parts(to, kAgents, kParts, kSize, [=](int i, int c) {
    if (c >= kParts) atomicAdd(beyond, 1);
    return [=](int k) { return static_cast<float>(100 * i + 10 * c + k); };
  });
  team.each(kAgents, [=](int i) { out[i] = static_cast<int>(rows[(i + 1) % kAgents * 16 + 14]); });
}

TEST_P(RacesTest, APhaseAfterRowsReadsThem) {
  alignas(16) float rows[64 * 16];
  for (const bool tile : {false, true}) {
    int beyond = 0;
    EXPECT_EQ(complaint(tile ? rows_and_a_phase<8> : rows_and_a_phase<0>, {1, tile ? 8u : 64u, nullptr}, rows,
                        out_.data(), &beyond),
              "");
    for (int i = 0; i < 64; ++i) EXPECT_EQ(out_[static_cast<std::size_t>(i)], (i + 1) % 64 * 100 + 24);
    EXPECT_EQ(beyond, 0);
  }
}

// --- Bad accesses ---

__global__ void beyond_shared(int at) { reinterpret_cast<volatile int*>(wd::cuda::dynamic_shared())[at] = 0; }

TEST_P(RacesTest, SharedMemoryEnds) {
  EXPECT_EQ(complaint(beyond_shared, {1, 1, nullptr, 1024}, 255), "");
  EXPECT_THAT(complaint(beyond_shared, {1, 1, nullptr, 1024}, 256),
              HasSubstr("accesses 4 bytes at 1024 of its shared memory, of which the launch asked for 1024"));
}

__global__ void copy_16(uint4* to, const uint4* from) { *to = *from; }

TEST_P(RacesTest, AccessesAreAligned) {
  auto* const words = reinterpret_cast<std::byte*>(out_.data());
  const auto aligned = words + (16 - std::bit_cast<std::uintptr_t>(words) % 16) % 16;
  const auto at = [&](int offset) { return reinterpret_cast<uint4*>(aligned + offset); };
  EXPECT_EQ(complaint(copy_16, {1, 1, nullptr}, at(0), at(32)), "");
  EXPECT_THAT(complaint(copy_16, {1, 1, nullptr}, at(0), at(40)), HasSubstr("not a multiple of 16"));
  EXPECT_THAT(complaint(copy_16, {1, 1, nullptr}, at(8), at(32)), HasSubstr("not a multiple of 16"));
}

INSTANTIATE_TEST_SUITE_P(Orders, RacesTest, testing::ValuesIn(kOrders),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace wd::emulation
