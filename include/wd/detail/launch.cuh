// launch.cuh: launches and shared memory: the parts of CUDA that are not C++; device sources use only these.
//
// The emulated GPU (include/wd/emulator) has a header of the same name, which its compiler finds first.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
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

// Adds the product of a [16, 8 words] and b [8 words, 8] to sum [16, 8]. All lanes of the warp take part.
// With g = lane / 4 and t = lane % 4, a lane has
// - of a the words (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4);
// - of b the words (t, g), (t + 4, g);
// - of the sums (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
// A word of bfloat16 has two neighboring terms of the sums, the first one in the lower half. A word of
// float32 has one, rounded to tf32. The device chooses the order in which terms are added. (PTX:
// mma.m16n8k16 and mma.m16n8k8.)
template <typename Number>
__device__ void multiply_add(float (&sum)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                             Place) {
  if constexpr (sizeof(Number) == 2) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
}

// Tells the emulated GPU that the thread begins f(item), or f(item, other), of a phase. Does nothing on CUDA.
__device__ inline void at_item(int /*item*/, int /*other*/, Place) {}

// Shared memory of the block, as much as the launch requested, aligned to 16 bytes.
__device__ inline std::byte* dynamic_shared() {
  extern __shared__ uint4 shared_memory[];
  return reinterpret_cast<std::byte*>(shared_memory);
}

}  // namespace wd::cuda
