// out_of_memory_test.cpp: the faces of an error whose cause is that memory has run out.
#include "src/device/out_of_memory.h"

#include <gtest/gtest.h>

#include <new>

#include "src/base/host_memory.h"
#include "wd/error.h"

namespace wd {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

TEST(OutOfMemory, IsRecognizedByItsText) {
  for (const char* text :
       {"CUDA out of memory. Tried to allocate 2.00 GiB", "CUDA error: out of memory",
        "cublasLtCreate: CUBLAS_STATUS_ALLOC_FAILED: resource allocation failed",
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate 160160000000 bytes.",
        "mmap: Cannot allocate memory", "cudaMalloc: cudaErrorMemoryAllocation",
        "NCCL error: unhandled cuda error\nLast error:\nCuda failure 2 'out of memory'"})
    EXPECT_TRUE(ran_out_of_memory(std::runtime_error(text))) << text;
  EXPECT_TRUE(ran_out_of_memory(std::bad_alloc()));
}

// There is no GPU here, or no context on it, and so none that is full.
TEST(OutOfMemory, IsNotEveryError) {
  for (const char* text : {"CUBLAS_STATUS_NOT_INITIALIZED", "an illegal memory access was encountered",
                           "the tagger's reward is nan"})
    EXPECT_FALSE(ran_out_of_memory(std::runtime_error(text))) << text;
}

TEST(OutOfMemory, IsLikelyOnAGpuWithLessThanOneGibibyteOrTwoPercent) {
  EXPECT_TRUE(is_full({.free = kGiB - 1, .total = 16 * kGiB}));
  EXPECT_FALSE(is_full({.free = kGiB, .total = 16 * kGiB}));
  EXPECT_TRUE(is_full({.free = 2 * kGiB, .total = 140 * kGiB}));
  EXPECT_FALSE(is_full({.free = 3 * kGiB, .total = 140 * kGiB}));
}

}  // namespace
}  // namespace wd
