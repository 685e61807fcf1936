// autoscale.h: --auto_scale on the command line: a search before training, whose result is passed to the
// workers.
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
  // Throws UsageError if its value is invalid.
  void read() const;
  bool asked() const { return asked_; }

  // Searches, prints its progress unless quiet, and appends the chosen settings to the overrides. In a worker
  // whose launcher has searched, reads that result instead. In the process of a probe, does not return.
  // Throws UsageError in a worker that another launcher has started.
  void choose(LaunchArguments& launch, ConfigSources& sources, bool quiet);
  // For a run that goes on: takes what an earlier search chose for it, if there was one.
  void repeat(const std::filesystem::path& run_folder, LaunchArguments& launch, ConfigSources& sources);
  // Writes autoscale.json to the run's folder.
  void write_file(const std::filesystem::path& run_folder) const;

 private:
  bool asked_ = false;
  std::string how_;
  std::string json_;
};

}  // namespace wd::cli
