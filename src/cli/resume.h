// resume.h: resuming a run: the choice of the checkpoint, its configuration, and the allowed changes.
#pragma once

#include "src/cli/setup.h"
#include "wd/checkpoint.h"

namespace wd::cli {

// Returns the checkpoint that an argument means. The argument is a run's folder (its newest checkpoint that
// verifies), a checkpoint's folder, or "latest". "latest" means the newest checkpoint of `run_dir` if it is
// given, and otherwise that of the run under `base` that wrote a checkpoint last. Throws UsageError if there
// is none, or if it is not in its own run's folder (`allow_drift`: the run may now have another seed), and
// std::runtime_error if none can be read.
Checkpoint find_checkpoint(const std::string& argument, const std::string& run_dir,
                           const std::filesystem::path& base, bool allow_drift);

// Returns the folder of the checkpoint's run.
std::filesystem::path run_of(const Checkpoint& checkpoint);

// Returns the settings that differ from the checkpoint's and affect what is learned, one line each:
// "trainer.seed: 1 -> 2". Settings for the length of training, for the machine and for saving are ignored.
std::vector<std::string> drift(const Experiment& now, const Experiment& then);

// Loads only the weights into every policy, from a checkpoint or from a run's folder (its newest checkpoint).
// Throws UsageError naming the policy for which there are no weights.
void warm_start(const std::string& argument, std::vector<Policy>& policies);

}  // namespace wd::cli
