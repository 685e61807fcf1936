// trainable.h: finds before training begins what its parts would refuse.
#pragma once

#include <string>

#include "wd/config.h"
#include "wd/environment.h"

namespace wd {

// Makes small ones of the parts of a training, and opens the files that it reads: a specification, networks
// or files that these refuse are refused here, with the place of the setting. Contents of recordings, memory,
// devices and the run's folder are checked when training begins. Throws UsageError.
void require_trainable(const Config& config, const Environment& environment, bool gpu, int world_size);

// What of it takes no threads, which a process that forks workers must not have: settings that exclude each
// other, and shares of workers. `gpu`: whether they may use GPUs.
void require_shares(const Config& config, const Environment& environment, bool gpu, int world_size);

// The content of env.starts. Throws UsageError if it cannot be read.
std::string read_starts(const Config& config);

}  // namespace wd
