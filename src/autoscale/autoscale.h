// autoscale.h: from a report to what a training needs of it.
#pragma once

#include "src/autoscale/report.h"
#include "wd/autoscale.h"
#include "wd/config.h"
#include "wd/environment.h"

namespace wd::scaling {

// What is searched: limits of the configuration, of learning (src/autoscale/learning.h) and of memory, a
// worker's.
SearchOptions search_options(const Config& config, const Environment& environment, int num_workers,
                             std::uint64_t memory);

// `report` has chosen.
Autoscaled autoscaled(Report report, const Config& config, const Spec& spec);

}  // namespace wd::scaling
