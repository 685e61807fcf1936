// experiment.h: from the name of an environment and settings to everything that a training run consists of.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "wd/config.h"
#include "wd/device.h"
#include "wd/environment.h"

namespace wd {

// An environment with its parameters set, and the complete configuration.
struct Experiment {
  std::unique_ptr<Environment> environment;
  Config config;
  Device device;

  // The environment's parameters, for print_config().
  Describe describe() const;
  // The name of each policy, in the order of config.policies.
  std::vector<std::string> policy_names() const;
};

// Loads the configuration of an environment and selects the device that it asks for. `settings` have the form
// of --set: load_experiment("cartpole", {"trainer.num_envs=64", "policy.shared.lr=1e-3"}). They override
// configs/NAME.yaml, if there is one. Throws UsageError, or ConfigError with all problems at once.
Experiment load_experiment(const std::string& env, const std::vector<std::string>& settings = {});

// The same for an environment of your own, which no name finds.
Experiment load_experiment(std::unique_ptr<Environment> environment,
                           const std::vector<std::string>& settings = {});

// The same from other sources, without selecting a device. Searches for NAME.yaml only in the folders that
// the sources list. An environment in Python is asked for its specification by `spec_of`, if there is one.
Experiment load_environment(const ConfigSources& sources,
                            const std::function<Spec(Environment&)>& spec_of = {});

// Folders that may hold NAME.yaml: ./configs, then those of the build and of the installation.
std::vector<std::filesystem::path> config_folders();

}  // namespace wd
