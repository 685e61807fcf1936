// out_of_memory.h: recognizes errors whose cause is that memory has run out, on the host or on a GPU.
#pragma once

#include <exception>

#include "src/device/device.h"

namespace wd {

// Whether so little is free that a library, which allocates workspaces and loads its kernels when they are
// first used, can no longer do so: less than 1 GiB or 2 % of the GPU.
bool is_full(const GpuMemory& memory);

// Returns whether the error says that memory has run out (base/host_memory.h), or occurred while the GPU that
// this process uses is full: cuBLAS, NCCL and the loader of kernels then report almost any error. An error of
// the user is none of these.
bool ran_out_of_memory(const std::exception& error);

}  // namespace wd
