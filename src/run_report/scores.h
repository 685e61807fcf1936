// scores.h: how good the runs of each group are at the end, with intervals over runs.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "src/run_report/curves.h"

namespace wd::report {

// [{"metric", "group", "runs", "iqm", "low", "high", "median", "min", "max", "difference"}] for the
// last POLICY/recent_return and the last eval/ROLE/return. "difference": {"iqm", "low", "high"} of the group
// minus the first group of the same environment; null for that group itself.
nlohmann::ordered_json scores_json(const std::vector<RunRecord>& records,
                                   const std::vector<RunCurves>& curves, const std::vector<RunGroup>& groups);

}  // namespace wd::report
