// spec_fault.h: finds contradictions in an environment's specification before anything runs on it.
#pragma once

#include <string>

#include "wd/environment.h"

namespace wd {

// Says what is wrong; empty if nothing is.
std::string spec_fault(const Spec& spec, const StateLayout& layout);

}  // namespace wd
