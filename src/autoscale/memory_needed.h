// memory_needed.h: whether a training can fit into memory at all, asked before anything is allocated.
#pragma once

#include "wd/config.h"
#include "wd/device.h"
#include "wd/environment.h"

namespace wd::scaling {

// [bytes] of the trajectory's buffers and of the replicas, whose number may be a worker's share.
double rollout_bytes(const Config& config, const Environment& environment, double steps, double replicas);

// [bytes] of one worker, at the very least: what is known for certain, none of it guessed.
struct MemoryNeeded {
  double rollouts = 0.0;
  double networks = 0.0;  // weights, gradients and Adam's moments
};
MemoryNeeded memory_needed(const Config& config, const Environment& environment, int world_size);

// Throws UsageError, with the settings that decide and the limit that stands in the way, where
// `local_workers` workers of the configuration need more host memory than this machine, its control groups
// and resource limits leave them. Nothing is said of a GPU's.
void check_memory(const Config& config, const Environment& environment, Device device, int world_size,
                  int local_workers);

}  // namespace wd::scaling
