// devices.h: the GPUs of this machine, without a CUDA context.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wd::launcher {

struct Gpus {
  std::vector<std::string> names;  // what CUDA_VISIBLE_DEVICES must say for each
  std::string why_none;            // where there are none
};

// What is known of a GPU before anything runs on it.
struct GpuFacts {
  std::string uuid, product, driver;              // "GPU-...", "NVIDIA H200", "580.65.06"
  std::uint64_t total_bytes = 0, used_bytes = 0;  // by all that run on it now
};

// `name`: one of find_gpus(). Throws std::runtime_error where the driver does not tell.
GpuFacts gpu_facts(const std::string& name);

// Throws UsageError where CUDA_VISIBLE_DEVICES names a device that is not there.
Gpus find_gpus();

}  // namespace wd::launcher
