// resume.h: going on with a run: which checkpoint, which configuration, and what may have changed since.
#pragma once

#include "src/cli/setup.h"
#include "wd/checkpoint.h"

namespace wd::cli {

// The checkpoint that an argument means: a run's folder (its newest that verifies), a checkpoint's folder, or
// "latest": that of `run_dir` where it is given, else of the run under `base` that wrote one last. Throws
// UsageError where there is none, or where it does not lie in its own run's folder (`allow_drift`: the run
// may have another seed by now), std::runtime_error where none can be read.
Checkpoint find_checkpoint(const std::string& argument, const std::string& run_dir,
                           const std::filesystem::path& base, bool allow_drift);

// The run's folder of a checkpoint.
std::filesystem::path run_of(const Checkpoint& checkpoint);

// What is set otherwise than in the checkpoint and changes what is learned: "trainer.seed: 1 -> 2", one line
// each. How long training goes on, where it runs and what it saves is no drift.
std::vector<std::string> drift(const Experiment& now, const Experiment& then);

// Loads weights, and nothing else, into every policy: from a checkpoint, or from a run's folder (its newest
// checkpoint). Throws UsageError naming the policy that it has no weights for.
void warm_start(const std::string& argument, std::vector<Policy>& policies);

}  // namespace wd::cli
