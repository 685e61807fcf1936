// ceilings.h: what the machine can do at most, measured by simple work that does nothing else.
#pragma once

#include <optional>

#include "wd/device.h"

namespace wd::bench {

struct Ceilings {
  double copy_bytes_per_s = 0.0;  // read and written bytes of a copy far larger than the caches
  double fp32_flop_per_s = 0.0;   // of the fastest square matrix product, on the CPU torch's or ours
  std::optional<double> tf32_flop_per_s = {}, bf16_flop_per_s = {};  // CUDA
};

// Takes about a second, and memory that it gives back. On the CPU all threads copy and multiply side by side.
Ceilings measure_ceilings(Device device);

}  // namespace wd::bench
