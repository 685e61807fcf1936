// folder.h: creates the folder for a run's files, and proves that they can be written.
#pragma once

#include "src/run/run.h"

namespace wd::run {

// Creates options.run_dir, or BASE/ENV/DATE-TIME-SUFFIX if that is empty, and writes and removes a file in it
// to verify permission and room. Throws UsageError that says what is wrong and how to continue.
std::filesystem::path make_folder(const RunOptions& options);

// Returns true if a start left the folder that was killed before its first checkpoint: nothing was trained.
bool is_left_by_start(const std::filesystem::path& folder);

}  // namespace wd::run
