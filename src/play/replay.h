// replay.h: plays recorded actions again, on the CPU.
#pragma once

#include "src/play/rollout.h"
#include "src/trainer/evidence.h"

namespace wd {

// The last episode of the evidence, or its part within the rollout, whose last step returned the number.
Rollout replay(const Config& config, const Environment& environment, const Evidence& evidence);

}  // namespace wd
