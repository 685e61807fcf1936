// queue.h: where a kernel runs: on the CPU at once, or on a CUDA stream.
#pragma once

#include <cstdint>

namespace wd {

struct Queue {
  bool cuda = false;
  void* stream = nullptr;  // cudaStream_t; null on the CPU
};

}  // namespace wd
