// check_algorithm.h: the checks of `wdtrain check --algorithm NAME`: what a training by it must keep.
#pragma once

#include "src/cli/setup.h"

namespace wd::cli {

// Trains briefly on the CPU, in processes of their own: it learns, a resumed run has the bits of an
// uninterrupted one, and two workers learn what one does. Prints a line for each; returns false if one
// failed. Without an environment, takes the first of a few small ones that the algorithm learns in. Throws
// UsageError.
bool check_algorithm(ConfigSources sources);

}  // namespace wd::cli
