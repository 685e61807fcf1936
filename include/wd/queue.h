// queue.h: where a kernel runs: immediately on the CPU, or on a CUDA stream.
#pragma once

#include <cstdint>

namespace wd {

struct Queue {
  bool cuda = false;
  void* stream = nullptr;  // cudaStream_t; null on the CPU
};

}  // namespace wd

// Declares wd::cuda::NAME, the CUDA side of a kernel; use it within namespace wd. In a build without CUDA,
// kernels/no_cuda.cpp turns these declarations into definitions, and WD_KERNEL defines its own.
#ifndef WD_CUDA_KERNEL
#define WD_CUDA_KERNEL(name, ...)       \
  namespace cuda {                      \
  void name(void* stream, __VA_ARGS__); \
  }
#endif

// Declares wd::NAME and its CUDA side; use it within namespace wd.
#define WD_DECLARE_KERNEL(name, Args)       \
  void name(Queue queue, const Args& args); \
  WD_CUDA_KERNEL(name, const Args& args)
