// autoscale.h: from a report to what a training needs of it.
#pragma once

#include "src/autoscale/report.h"
#include "wd/autoscale.h"
#include "wd/config.h"

namespace wd::scaling {

// `report` has chosen.
Autoscaled autoscaled(const Report& report, const Config& config);

// The settings that a choice stands for: replicas, batch and, with autoscale.scale_lr, learning rates.
std::vector<Override> settings_of(const SearchResult& result, const Config& config);

}  // namespace wd::scaling
