// ceilings.h: upper bounds of the machine's speed, measured with simple work.
#pragma once

#include <optional>

#include "wd/device.h"

namespace wd::bench {

struct Ceilings {
  double copy_bytes_per_s = 0.0;  // bytes read and written per second by a copy far larger than the caches
  double fp32_flop_per_s = 0.0;   // fastest square matrix product; on the CPU: multiply-adds in registers
  std::optional<double> tf32_flop_per_s = {}, bf16_flop_per_s = {};  // CUDA only
  std::optional<double> store_bytes_per_s = {};  // CPU only: writing to memory far larger than the caches
};

// Takes about a second. Frees the memory that it uses. On the CPU, all threads copy, write and multiply in
// parallel.
Ceilings measure_ceilings(Device device);

}  // namespace wd::bench
