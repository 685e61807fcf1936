// transitions_body.h: the mask of all agents in one step of one replica, the same code on both devices.
#pragma once

#include "kernels/transitions.h"
#include "wd/math.h"

namespace wd {

WD_FN void transitions_of_row(const TransitionsArgs& args, std::int64_t row) {
  const bool counts = row < args.played && args.reset_step[row] == 0;
  for (int a = 0; a < args.num_agents; ++a) {
    const std::int64_t at = row * args.num_agents + a;
    args.mask[at] = counts && args.active[at] != 0 && args.who.is_own(row, a) ? 1 : 0;
  }
}

}  // namespace wd
