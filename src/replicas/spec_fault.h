// spec_fault.h: finds contradictions in an environment's specification before anything runs on it.
#pragma once

#include <string>

#include "wd/environment.h"

namespace wd {

inline constexpr int kMaxTimeLimit = 1 << 24;  // steps of an episode are fewer

// Says what is wrong; empty if nothing is.
std::string spec_fault(const Spec& spec, const StateLayout& layout);

}  // namespace wd
