// trajectory_bytes.h: what a Trajectory would allocate.
#pragma once

#include <vector>

#include "wd/spec.h"

namespace wd {

// Bytes of all buffers of a Trajectory of these roles, policies, steps and replicas. A double: nobody has to be able to allocate it.
double trajectory_bytes(const Spec& spec, const std::vector<int>& policy_of_role, double steps,
                        double num_envs, ObservationStorage storage);

}  // namespace wd
