// search.h: finds the setting to train with, by short trainings that the caller runs.
#pragma once

#include "wd/autoscale.h"

namespace wd::scaling {

// Gains below this do not count, here and there: what a doubling must bring, how close a bisection comes, how
// much slower than the fastest the smallest may be.
inline constexpr double kLeastGain = 0.02;

// Probes that a stage may make where the numbers it looks at differ by a factor of at most `range`: 2
// log2(range) + 4.
int most_probes(double range);

// Searches 1 and 2 and, for speed, the smallest setting that is as fast (docs/autoscale.md). Each try is told
// to `observe` as soon as it is known. The setting chosen has never failed to fit, and never measured slower
// than the start where that fits. Throws UsageError where the limits leave no setting at all, and whatever
// `measure` throws.
SearchResult search(const SearchOptions& options, const Measure& measure, const Observe& observe = {});

}  // namespace wd::scaling
