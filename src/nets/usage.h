// usage.h: what the networks of a policy use, for src/config/compatible.h.
#pragma once

#include "src/config/compatible.h"
#include "wd/trajectory.h"

namespace wd {

Usage usage_of(const PolicyLayout& layout, const ModelSettings& model, PolicyOutput output);

}  // namespace wd
