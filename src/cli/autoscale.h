// autoscale.h: --auto_scale on the command line: a search before training, and its way to the workers.
#pragma once

#include <filesystem>
#include <string>

#include "src/cli/arguments.h"
#include "src/cli/launch.h"
#include "src/cli/setup.h"
#include "wd/autoscale.h"

namespace wd::cli {

class AutoscaleArguments {
 public:
  // Adds --auto_scale.
  void add_to(Arguments& arguments);
  // Throws UsageError where its value is none.
  void read() const;
  bool asked() const { return asked_; }

  // Searches, shows what it does unless quiet, and appends what it chose to the overrides. In a worker of
  // ours that its launcher has searched for: reads what came of it. In the process of a probe it does not
  // return. Throws UsageError among workers that others have started.
  void choose(LaunchArguments& launch, ConfigSources& sources, bool quiet);
  // autoscale.json and autoscale.svg, once there is a folder for them.
  void write_files(const std::filesystem::path& run_folder) const;

 private:
  bool asked_ = false;
  std::string how_;
  std::string json_, svg_;
};

}  // namespace wd::cli
