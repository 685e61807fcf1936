// devices.h: lists the GPUs of this machine without creating a CUDA context.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wd::launcher {

struct Gpus {
  std::vector<std::string> names;  // value of CUDA_VISIBLE_DEVICES for each GPU
  std::string why_none;            // reason if there are none
};

// Properties of a GPU that are known before anything runs on it.
struct GpuFacts {
  std::string uuid, product, driver;              // "GPU-...", "NVIDIA H200", "580.65.06"
  std::uint64_t total_bytes = 0, used_bytes = 0;  // used: by all processes that run on it now
};

// `name` must be one of find_gpus(). Throws std::runtime_error if the driver does not report the properties.
GpuFacts gpu_facts(const std::string& name);

// Throws UsageError if CUDA_VISIBLE_DEVICES names a device that does not exist.
Gpus find_gpus();

}  // namespace wd::launcher
