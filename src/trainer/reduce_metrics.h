// reduce_metrics.h: combines the metrics of all ranks into one row.
#pragma once

#include "wd/metrics.h"
#include "wd/process_group.h"

namespace wd {

// Reduces each metric as it declares: sum, maximum, minimum, or mean over the ranks that measured it. Ranks
// have the same names in the same order. Returns the same row on every rank. All ranks.
MetricsRow reduce(const MetricsRow& row, const ProcessGroup& group);

}  // namespace wd
