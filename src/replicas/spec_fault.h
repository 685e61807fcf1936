// spec_fault.h: finds what contradicts itself in an environment's specification before anything runs on it.
#pragma once

#include <string>

#include "wd/environment.h"

namespace wd {

// What is wrong, in words; empty where all is well.
std::string spec_fault(const Spec& spec, const StateLayout& layout);

}  // namespace wd
