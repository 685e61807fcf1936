// cuda_runtime.h: the parts of CUDA that device sources use, for a C++ compiler; they run on the emulated GPU
// (wd/emulator/emulation.h).
#pragma once

#include <math.h>

#include <cstddef>

#include "wd/emulator/emulation.h"

#define __host__
#define __device__
#define __global__
#define __grid_constant__
#define __forceinline__ inline
#define __launch_bounds__(...)

// Bytes may be copied as words of any of these types.
struct [[gnu::may_alias]] alignas(16) float4 {
  float x, y, z, w;
};
struct [[gnu::may_alias]] alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct [[gnu::may_alias]] alignas(8) ushort4 {
  unsigned short x, y, z, w;
};
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline ushort4 make_ushort4(unsigned short x, unsigned short y, unsigned short z, unsigned short w) {
  return {x, y, z, w};
}

struct dim3 {
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  unsigned x, y, z;
};

inline const wd::emulation::Index& threadIdx = wd::emulation::here.thread;
inline const wd::emulation::Index& blockIdx = wd::emulation::here.block;
inline const wd::emulation::Index& blockDim = wd::emulation::here.block_dim;
inline const wd::emulation::Index& gridDim = wd::emulation::here.grid_dim;

inline void __syncthreads(wd::emulation::Place place = wd::emulation::Place::current()) {
  wd::emulation::meet_block(place);
}
inline void __syncwarp(unsigned mask = ~0u, wd::emulation::Place place = wd::emulation::Place::current()) {
  wd::emulation::meet_lanes(mask, place);
}
inline float __shfl_xor_sync(unsigned mask, float value, int lanes,
                             wd::emulation::Place place = wd::emulation::Place::current()) {
  const unsigned from = wd::emulation::here.thread.x % 32 ^ static_cast<unsigned>(lanes);
  return static_cast<float>(wd::emulation::exchange(mask, value, from, place));
}

// Threads switch only where they meet, so these operations are atomic.
#define WD_EMULATED_ATOMIC(name, T, changed)                                        \
  [[gnu::no_sanitize("thread"), gnu::noinline]] inline T name(T* target, T value) { \
    wd::emulation::at_atomic(target, sizeof(T), __builtin_return_address(0));       \
    const T before = *target;                                                       \
    *target = changed;                                                              \
    return before;                                                                  \
  }
WD_EMULATED_ATOMIC(atomicAdd, int, before + value)
WD_EMULATED_ATOMIC(atomicAdd, unsigned long long, before + value)
WD_EMULATED_ATOMIC(atomicMin, long long, value < before ? value : before)
#undef WD_EMULATED_ATOMIC
inline void __threadfence() { wd::emulation::fence(); }
template <typename T>
[[gnu::no_sanitize("thread"), gnu::noinline]] T __ldcg(const T* from) {
  wd::emulation::at_read_of_l2(from, sizeof *from, __builtin_return_address(0));
  return *from;
}

using cudaStream_t = struct CUstream_st*;  // a dummy: launches return when they are finished

enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorInvalidConfiguration = 9 };
inline cudaError_t cudaGetLastError() { return static_cast<cudaError_t>(wd::emulation::take_error()); }
inline const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaSuccess             ? "cudaSuccess"
         : error == cudaErrorInvalidValue ? "cudaErrorInvalidValue"
                                          : "cudaErrorInvalidConfiguration";
}
inline const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess             ? "no error"
         : error == cudaErrorInvalidValue ? "invalid argument"
                                          : "invalid configuration argument";
}

inline cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
enum cudaDeviceAttr { cudaDevAttrMaxSharedMemoryPerBlockOptin };
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = static_cast<int>(wd::emulation::opt_in_shared());
  return cudaSuccess;
}
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
template <typename... Parameters>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute, int bytes) {
  return static_cast<cudaError_t>(
      wd::emulation::allow_shared(reinterpret_cast<const void*>(kernel), static_cast<std::size_t>(bytes)));
}
