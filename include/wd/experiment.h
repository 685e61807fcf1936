// experiment.h: from an environment's name and settings to all that a training is made of.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "wd/config.h"
#include "wd/device.h"
#include "wd/environment.h"

namespace wd {

// An environment with its parameters set, and everything that was configured.
struct Experiment {
  std::unique_ptr<Environment> environment;
  Config config;
  Device device;

  // The environment's parameters, for print_config().
  Describe describe() const;
  // The name of each policy, in the order of config.policies.
  std::vector<std::string> policy_names() const;
};

// Loads the configuration of an environment and selects the device that it asks for. `settings` are as for
// --set: load_experiment("cartpole", {"trainer.num_envs=64", "policy.shared.lr=1e-3"}). They lie over
// configs/NAME.yaml, if there is one. Throws UsageError, ConfigError with all problems at once.
Experiment load_experiment(const std::string& env, const std::vector<std::string>& settings = {});

// The same from other sources, without selecting a device. Folders to search for NAME.yaml are taken from the
// sources alone.
Experiment load_environment(const ConfigSources& sources);

// Folders that may hold NAME.yaml: ./configs, then those of the build and of the installation.
std::vector<std::filesystem::path> config_folders();

}  // namespace wd
