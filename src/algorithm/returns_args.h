// returns_args.h: the arguments of the kernels of returns.
#pragma once

#include "kernels/returns.h"
#include "wd/trajectory.h"

namespace wd {

// The arguments for the current rollout of a policy, by index, without method and coefficients.
ReturnsArgs returns_args(const Trajectory& trajectory, int policy);

}  // namespace wd
