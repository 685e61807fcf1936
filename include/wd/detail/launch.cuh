// launch.cuh: launches and shared memory: the parts of CUDA that are not C++; device sources use only these.
//
// The emulated GPU (include/wd/emulator) has a header of the same name, which its compiler finds first.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <type_traits>

// Defines a variable in the shared memory of the block: WD_SHARED(float[32], partial).
#define WD_SHARED(Type, name) __shared__ std::type_identity_t<Type> name

namespace wd::cuda {

struct LaunchShape {
  dim3 grid;
  unsigned threads;        // per block
  void* stream;            // cudaStream_t
  std::size_t shared = 0;  // bytes that dynamic_shared() points to
};

// Enqueues kernel(args...). cudaGetLastError() tells whether the launch was refused.
template <typename... Parameters>
void launch(void (*kernel)(Parameters...), const LaunchShape& shape,
            const std::type_identity_t<Parameters>&... args) {
  kernel<<<shape.grid, shape.threads, shape.shared, static_cast<cudaStream_t>(shape.stream)>>>(args...);
}

// The place in the source of a barrier, by which the emulated GPU detects threads that do not reach the same
// barrier.
struct Place {
  __device__ static constexpr Place current() { return {}; }
};

// Barriers of all threads of the block, or of all lanes of the mask.
__device__ inline void meet(Place) { __syncthreads(); }
__device__ inline void meet(unsigned mask, Place) { __syncwarp(mask); }
__device__ inline float exchange_xor(unsigned mask, float value, int lanes, Place) {
  return __shfl_xor_sync(mask, value, lanes);
}

// Tells the emulated GPU that the thread begins f(item), or f(item, other), of a phase. Does nothing on CUDA.
__device__ inline void at_item(int /*item*/, int /*other*/, Place) {}

// Shared memory of the block, as much as the launch requested, aligned to 16 bytes.
__device__ inline std::byte* dynamic_shared() {
  extern __shared__ uint4 shared_memory[];
  return reinterpret_cast<std::byte*>(shared_memory);
}

}  // namespace wd::cuda
