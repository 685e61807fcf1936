// search.h: finds the setting to train with, by means of short training runs that the caller executes.
#pragma once

#include "wd/autoscale.h"

namespace wd::scaling {

// Runs searches 1 and 2 and, for speed, the search for the smallest setting that is as fast
// (docs/autoscale.md). Calls `observe` with each trial as soon as its outcome is known. The chosen setting
// has never failed to fit, and has never been measured slower than the start if the start fits. Throws
// UsageError if the limits leave no setting at all, and whatever `measure` throws.
SearchResult search(const SearchOptions& options, const Measure& measure, const Observe& observe = {});

}  // namespace wd::scaling
