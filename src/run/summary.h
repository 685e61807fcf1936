// summary.h: summary.json: the settings and results of a run, for users and scripts.
#pragma once

#include "src/run/run.h"

namespace wd::run {

// Rates are over the whole training; a mean return that is not finite is null.
std::string summary_json(const RunOptions& options, RunStatus status, std::string_view stop_reason,
                         const Progress& progress);

}  // namespace wd::run
