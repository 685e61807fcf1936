// autoscale.h: builds the search options, and turns a report into the settings for training.
#pragma once

#include "src/autoscale/report.h"
#include "wd/autoscale.h"
#include "wd/config.h"
#include "wd/device.h"
#include "wd/environment.h"

namespace wd::scaling {

// Returns the options of the search. The limits come from the configuration, from learning
// (src/autoscale/learning.h) and from `memory`, the bytes per worker.
SearchOptions search_options(const Config& config, const Environment& environment, int num_workers,
                             std::uint64_t memory, Device device = {});

// Requires a `report` whose status is kChosen.
Autoscaled autoscaled(Report report, const Config& config, const Spec& spec);

}  // namespace wd::scaling
