// folder.h: where a run's files go, and the proof that they can.
#pragma once

#include "src/run/run.h"

namespace wd::run {

// Makes options.run_dir, or BASE/ENV/DATE-TIME-SEED where that is empty, and writes and removes a file in it
// to be sure of permission and room. Throws UsageError saying what is in the way and how to go on.
std::filesystem::path make_folder(const RunOptions& options);

}  // namespace wd::run
