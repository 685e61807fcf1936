// seeds.h: `wdtrain train --seeds`: one training for each seed, in a process of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wd/experiment.h"

namespace wd::cli {

struct TrainArguments;

// "1..10", "1,3,7..9". Throws UsageError.
std::vector<std::int64_t> parse_seeds(const std::string& text);

// Trains until all seeds have ended, and returns the exit code. `first`: the training of the first seed.
int train_seeds(const TrainArguments& arguments, const Experiment& first);

}  // namespace wd::cli
