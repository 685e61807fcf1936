// runs.h: runs that arguments of commands name.
#pragma once

#include "src/cli/arguments.h"
#include "src/run_report/record.h"

namespace wd::cli {

// The run, or all runs below the folder. A folder that cannot be read gives a warning. Throws UsageError if
// there is no such folder or no run in it.
// "latest" is newest_run().
std::vector<std::filesystem::path> runs_below(const std::string& folder);

// The run under `base` that wrote a checkpoint last; empty if there is none.
std::filesystem::path newest_run(const std::filesystem::path& base);

// The folder of the run, or of the checkpoint, that a command plays or goes on with: "latest" is
// newest_run(), and a folder that is none but holds one run is that run. Throws UsageError if it holds
// several. Other words are returned as they are.
std::string one_run(const std::string& word);

// Whether the folder is that of a population, whose members have their runs in it.
bool is_population(const std::filesystem::path& folder);

// Throws UsageError about a folder that holds several runs where one is needed.
[[noreturn]] void refuse_several(const std::string& folder, const std::string& count);

}  // namespace wd::cli
