// resume.h: resuming a run: the choice of the checkpoint, its configuration, and the allowed changes.
#pragma once

#include "src/cli/setup.h"
#include "wd/checkpoint.h"
#include "wd/policy.h"

namespace wd::cli {

// Returns the folder of the run that an argument of --resume means. The argument is a run's folder, a
// checkpoint's folder, or "latest". "latest" means `run_dir` if it is given, and otherwise the run under
// `base` that wrote a checkpoint last. Throws UsageError if there is none, or if the folder is not a run's.
std::filesystem::path find_run(const std::string& argument, const std::string& run_dir,
                               const std::filesystem::path& base);

// Returns the checkpoint in the run that the argument means: the one that it names, or the newest that
// verifies. It is this one as long as the caller holds the run's lock. Throws UsageError if it is not of this
// run (`allow_drift`: the run may now have another seed), and std::runtime_error if none can be read.
Checkpoint find_checkpoint(const std::string& argument, const std::filesystem::path& run, bool allow_drift);

// Returns the settings that differ from the checkpoint's and affect what is learned, one line each:
// "trainer.seed: 1 -> 2". Settings for the length of training, for the machine and for saving are ignored.
std::vector<std::string> drift(const Experiment& now, const Experiment& then);

// Whose weights a policy begins with: "POLICY=RUN:NAME", or "RUN" of all policies.
struct WarmStart {
  std::string policy = {};  // here; empty: each policy
  std::string run = {};     // the folder of a run or a checkpoint, or "latest"
  std::string name = {};    // of the policy there; empty: the one that is called as the policy here

  std::string text() const;
};
using WarmStarts = std::vector<WarmStart>;

// Reads what --warm_start was given, each time. Relative paths begin in `base`. An existing folder is RUN,
// whatever characters its path has. Throws UsageError.
WarmStarts parse_warm_starts(const std::vector<std::string>& arguments, const std::filesystem::path& base);

// Loads only the weights into the policies, from checkpoints or from the newest ones of runs. A policy whose
// model.model_ckpt_filepath names a file keeps those weights, and one that is not named keeps its first
// weights, which the log says. Throws UsageError naming the policy for which there are no weights, or if no
// policy takes any.
void warm_start(const WarmStarts& starts, const Config& config, std::vector<Policy>& policies);

}  // namespace wd::cli
