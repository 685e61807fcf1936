// gpu_cuda.h: the parts of the GPU that have files of their own.
#pragma once

#include "src/device/gpu.h"

namespace wd {

std::unique_ptr<Captured> capture_cuda_graph(const c10::Stream& stream, const std::function<void()>& enqueue,
                                             const Captured* earlier);
std::unique_ptr<CallWatch> watch_cuda_calls();

// Versions, and what the driver says of each GPU.
GpuFacts cuda_facts();

}  // namespace wd
