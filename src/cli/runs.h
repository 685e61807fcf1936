// runs.h: runs that arguments of commands name.
#pragma once

#include "src/cli/arguments.h"
#include "src/run_report/record.h"

namespace wd::cli {

// The run, or all runs below the folder. A folder that cannot be read gives a warning. Throws UsageError if
// there is no such folder or no run in it.
std::vector<std::filesystem::path> runs_below(const std::string& folder);

}  // namespace wd::cli
