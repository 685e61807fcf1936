// train_arguments.h: the options of `wdtrain`, `wdtrain --resume` and `wdtrain --auto_scale`.
#pragma once

#include <string>
#include <vector>

#include "src/cli/arguments.h"
#include "src/cli/autoscale.h"
#include "src/cli/launch.h"
#include "src/cli/setup.h"

namespace wd::cli {

inline constexpr Range kProfiledIterations = {1, 1e6};

struct TrainArguments {
  ConfigOptions config;
  LaunchArguments launch;
  AutoscaleArguments autoscale;
  bool quiet = false, print_only = false, resume = false, allow_drift = false, strict_device = false;
  std::string resume_from, fault, profile = "10";
  std::vector<std::string> warm_start;
  bool profiles = false;
  std::vector<std::int64_t> seeds;  // of --seeds; empty: one training
  std::size_t jobs = 0;             // 0: as many as this machine has places for

  // --resume auto: the run of --run_dir goes on, or begins if there is none.
  bool resumes_or_begins() const { return resume && resume_from == "auto"; }

  // Returns false if the help text was asked for. Throws UsageError.
  bool parse(const CommandLine& line);
};

}  // namespace wd::cli
