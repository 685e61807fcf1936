// ceilings.h: upper bounds of the machine's speed, measured with simple work.
#pragma once

#include <optional>

#include "wd/device.h"

namespace wd::bench {

struct Ceilings {
  double copy_bytes_per_s = 0.0;  // bytes read and written per second by a copy far larger than the caches
  double fp32_flop_per_s = 0.0;   // fastest square matrix product; on the CPU by torch or by our own code
  std::optional<double> tf32_flop_per_s = {}, bf16_flop_per_s = {};  // CUDA only
};

// Takes about a second. Frees the memory that it uses. On the CPU, all threads copy and multiply in parallel.
Ceilings measure_ceilings(Device device);

}  // namespace wd::bench
