// options.h: the two halves of wd::check(): what options say by themselves, and what of it this machine has.
#pragma once

#include <string>
#include <vector>

#include "wd/supervise.h"

namespace wd::launcher {

// All but the GPUs. Throws UsageError.
void check_settings(const LaunchOptions& options);

// One GPU a worker, by its name for CUDA_VISIBLE_DEVICES; none where options want none. Throws UsageError
// where there are too few.
std::vector<std::string> choose_gpus(const LaunchOptions& options);

}  // namespace wd::launcher
