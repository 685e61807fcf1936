// options.h: the two parts of wd::check(): the options themselves, and the GPUs that they require.
#pragma once

#include <string>
#include <vector>

#include "wd/detail/supervise.h"

namespace wd::launcher {

// Checks everything except the GPUs. Throws UsageError.
void check_settings(const LaunchOptions& options);

// Returns one GPU per worker by its name for CUDA_VISIBLE_DEVICES, or none if the options do not request
// GPUs. Throws UsageError if there are too few.
std::vector<std::string> choose_gpus(const LaunchOptions& options);

}  // namespace wd::launcher
