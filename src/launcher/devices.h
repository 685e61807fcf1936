// devices.h: the GPUs of this machine, without a CUDA context.
#pragma once

#include <string>
#include <vector>

namespace wd::launcher {

struct Gpus {
  std::vector<std::string> names;  // what CUDA_VISIBLE_DEVICES must say for each
  std::string why_none;            // where there are none
};

// Throws UsageError where CUDA_VISIBLE_DEVICES names a device that is not there.
Gpus find_gpus();

}  // namespace wd::launcher
