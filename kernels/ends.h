// ends.h: what the end of a step means for the return of an agent: the one rule for all that learns.
#pragma once

#include "wd/math.h"

namespace wd {

struct StepEnd {
  bool over;   // nothing follows: the agent or the episode terminated, and the value behind the step is 0
  bool ended;  // later steps do not contribute: over, or truncated, where the value of what follows counts
};

// The flags of a step are not 0 if they are set (docs/architecture.md).
WD_FN StepEnd end_of_step(std::uint8_t terminated, std::uint8_t truncated, std::uint8_t agent_terminated) {
  const bool over = terminated != 0 || agent_terminated != 0;
  return {over, over || truncated != 0};
}

}  // namespace wd
