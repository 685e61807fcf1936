// reduce.cuh: a sum over a block in an order that depends only on the range.
#pragma once

#include "wd/detail/for_each.cuh"

namespace wd::cuda {

// Sum of f(begin) .. f(end - 1) over the kThreads threads of the block, returned in thread 0: every thread
// sums its stride, then a fixed tree combines the threads. The order never depends on the number of blocks or
// on which of them runs first. All threads must call it.
template <typename F>
__device__ double block_sum(std::int64_t begin, std::int64_t end, F f) {
  WD_SHARED(double[kThreads], subtotal);
  double sum = 0.0;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += kThreads) sum += f(i);
  subtotal[threadIdx.x] = sum;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) subtotal[threadIdx.x] += subtotal[threadIdx.x + half];
  }
  return threadIdx.x == 0 ? subtotal[0] : 0.0;  // thread 0 may still be adding to subtotal[0]
}

}  // namespace wd::cuda
