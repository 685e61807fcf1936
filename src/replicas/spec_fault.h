// spec_fault.h: finds contradictions in an environment's specification before anything runs on it.
#pragma once

#include <string>

#include "wd/device.h"
#include "wd/environment.h"

namespace wd {

inline constexpr int kMaxTimeLimit = 1 << 24;  // steps of an episode are fewer

// Says what is wrong; empty if nothing is.
std::string spec_fault(const Spec& spec, const StateLayout& layout);

// Why no replicas of the environment can be on the device; empty if they can.
std::string device_fault(const Environment& environment, Device device);

}  // namespace wd
