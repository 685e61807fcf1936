// memory_needed.h: checks whether training can fit into memory at all, before anything is allocated.
#pragma once

#include "wd/config.h"
#include "wd/device.h"
#include "wd/environment.h"

namespace wd::scaling {

// [bytes] of the trajectory's buffers and of the replicas. `replicas` may be one worker's share.
double rollout_bytes(const Config& config, const Environment& environment, double steps, double replicas);

// [bytes] that one worker needs at least. Contains only amounts that are known exactly, no estimates.
struct MemoryNeeded {
  double rollouts = 0.0;
  double networks = 0.0;  // weights, gradients and Adam moments
};
MemoryNeeded memory_needed(const Config& config, const Environment& environment, int world_size);

// Throws UsageError if `local_workers` workers of the configuration need more host memory than this machine,
// its control groups and its resource limits allow. The message names the relevant settings and the limit.
// GPU memory is not checked.
void check_memory(const Config& config, const Environment& environment, Device device, int world_size,
                  int local_workers);

}  // namespace wd::scaling
