// for_each.cuh: runs a body for each of n items, one thread per item.
#pragma once

#include <cstdint>

#include "wd/detail/kernel_launch.cuh"
#include "wd/error.h"

namespace wd::cuda {

// Threads per block. Together with the number of blocks that must fit on a multiprocessor this leaves 64
// registers per thread: without it, ptxas limits the loss to 40 and spills.
inline constexpr int kThreads = 128;
inline constexpr int kBlocksPerMultiprocessor = 8;

// Throws std::runtime_error naming the kernel if its launch was refused. Errors while it runs appear at the
// next synchronization with the stream.
inline void check_launch(const char* kernel) {
  const cudaError_t error = cudaGetLastError();
  WD_CHECK(error == cudaSuccess, "CUDA kernel ", kernel, ": ", cudaGetErrorName(error), ": ",
           cudaGetErrorString(error));
}

template <auto kBody, typename Args>
__device__ __forceinline__ void run_item(const Args& args, std::int64_t n) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n) kBody(args, i);
}

// Runs kBody(args, 0) .. kBody(args, n - 1), in any order. Enqueues.
template <auto kBody, typename Args>
void for_each(void* stream, const char* name, std::int64_t n, const Args& args) {
  if (n == 0) return;
  const std::int64_t blocks = (n + kThreads - 1) / kThreads;
  WD_CHECK(n > 0 && blocks <= 0x7fffffff, "CUDA kernel ", name, ": ", n, " items");
  launch(kernel_of<run_item<kBody, Args>, kThreads, kBlocksPerMultiprocessor>(),
         {static_cast<unsigned>(blocks), kThreads, stream}, args, n);
  check_launch(name);
}

}  // namespace wd::cuda
