// reduce_metrics.h: the metrics of all ranks as one row.
#pragma once

#include "wd/metrics.h"
#include "wd/process_group.h"

namespace wd {

// Each metric reduced as it declares: sum, maximum, minimum, or mean over the ranks that measured it. Ranks
// have the same names in the same order. All ranks; the same row on each.
MetricsRow reduce(const MetricsRow& row, const ProcessGroup& group);

}  // namespace wd
