// launch.cuh: launches and shared memory: what of CUDA is no C++, so that device sources have nothing of
// it but this.
//
// The emulated GPU (tests/emulation) has a header of the same name, which its compiler finds before this one.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <type_traits>

// Defines a variable in the shared memory of the block: WD_SHARED(float[32], partial).
#define WD_SHARED(Type, name) __shared__ std::type_identity_t<Type> name

namespace wd::cuda {

struct LaunchShape {
  dim3 grid;
  unsigned threads;        // of a block
  void* stream;            // cudaStream_t
  std::size_t shared = 0;  // bytes that dynamic_shared() points to
};

// Enqueues kernel(args...). Whether it was refused, cudaGetLastError() tells.
template <typename... Parameters>
void launch(void (*kernel)(Parameters...), const LaunchShape& shape,
            const std::type_identity_t<Parameters>&... args) {
  kernel<<<shape.grid, shape.threads, shape.shared, static_cast<cudaStream_t>(shape.stream)>>>(args...);
}

// Where in a source threads meet, for the emulated GPU, which tells it where they do not.
struct Place {
  __device__ static constexpr Place current() { return {}; }
};

// All threads of the block, or all lanes of the mask, meet here.
__device__ inline void meet(Place) { __syncthreads(); }
__device__ inline void meet(unsigned mask, Place) { __syncwarp(mask); }
__device__ inline float exchange_xor(unsigned mask, float value, int lanes, Place) {
  return __shfl_xor_sync(mask, value, lanes);
}

// Tells the emulated GPU that the thread begins f(item), or f(item, other), of a phase. Nothing on CUDA.
__device__ inline void at_item(int /*item*/, int /*other*/, Place) {}

// Shared memory of the block, as much as the launch asked for; aligned to 16 bytes.
__device__ inline std::byte* dynamic_shared() {
  extern __shared__ uint4 shared_memory[];
  return reinterpret_cast<std::byte*>(shared_memory);
}

}  // namespace wd::cuda
