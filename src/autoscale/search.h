// search.h: finds the setting to train with, by short trainings that the caller runs.
#pragma once

#include "wd/autoscale.h"

namespace wd::scaling {

// Searches 1 and 2 and, for speed, the smallest setting that is as fast (docs/autoscale.md). Each try is told
// to `observe` as soon as it is known. The setting chosen has never failed to fit, and never measured slower
// than the start where that fits. Throws UsageError where the limits leave no setting at all, and whatever
// `measure` throws.
SearchResult search(const SearchOptions& options, const Measure& measure, const Observe& observe = {});

}  // namespace wd::scaling
