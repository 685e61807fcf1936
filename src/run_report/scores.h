// scores.h: how good the runs of each group are at the end, with intervals over runs.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "src/run_report/curves.h"

namespace wd::run_report {

// With fewer runs, no value is trimmed, so that the IQM is the mean, and resampling says no more than the
// least and the greatest value.
inline constexpr std::size_t kMinRunsForIqm = 4;

// [{"metric", "group", "runs", "iqm", "low", "high", "median", "min", "max", "difference"}] for the last
// POLICY/recent_return and the last eval/ROLE/return. "low" and "high" are null below kMinRunsForIqm runs.
// "difference": {"iqm", "low", "high"} of the group minus the first group of the same environment, without an
// interval if one of them has too few runs; null for that first group itself.
nlohmann::ordered_json scores_json(const std::vector<RunRecord>& records,
                                   const std::vector<RunCurves>& curves, const std::vector<RunGroup>& groups);

// [{"group", "return", "runs", "reached", "steps", "seconds"}] for groups with trainer.stop_return: how many
// of the runs have reached it, and {"median", "min", "max"} of the steps and the time that these took.
nlohmann::ordered_json reached_json(const std::vector<RunRecord>& records,
                                    const std::vector<RunGroup>& groups);

}  // namespace wd::run_report
