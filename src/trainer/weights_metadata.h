// weights_metadata.h: the metadata of a weights file: what a reader needs to use it outside of this program.
#pragma once

#include "wd/config.h"
#include "wd/metrics.h"
#include "wd/safetensors.h"
#include "wd/spec.h"

namespace wd {

// Sizes, distribution and network of one policy, and the counts of training so far. Values are text; lists
// are separated by commas, and "entities" is JSON.
TensorMetadata weights_metadata(const Config& config, const Spec& spec, const PolicySettings& policy,
                                const StepCounts& counts);

}  // namespace wd
