// support.h: environments and configurations for tests.
#pragma once

#include <string>
#include <vector>

#include "wd/error.h"
#include "wd/experiment.h"

namespace wd {

// Creates an environment with its defaults, changed by settings such as "trainer.num_envs=4".
inline Experiment make_setup(const std::string& env, const std::vector<std::string>& settings) {
  ConfigSources sources;
  sources.env = env;
  sources.shipped = false;
  for (const std::string& setting : settings) sources.overrides.push_back(parse_override(setting));
  return load_environment(sources);
}

// The message of the UsageError that f throws; empty if it throws none.
template <typename F>
std::string usage_error_of(const F& f) {
  try {
    f();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace wd
