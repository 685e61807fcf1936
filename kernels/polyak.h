// polyak.h: a target network follows the network that learns.
#pragma once

#include <cstdint>

#include "wd/queue.h"

namespace wd {

// to = (1 - tau) to + tau from: Polyak averaging (Lillicrap et al. 2016, arXiv 1509.02971); tau = 1: a copy.
struct PolyakArgs {
  std::int64_t n = 0;
  const float* from = nullptr;  // [n]
  float* to = nullptr;          // [n]
  float tau = 1.0f;
};

// Enqueues.
WD_DECLARE_KERNEL(polyak, PolyakArgs)

}  // namespace wd
