// role_names.h: names of roles and policies, sizes of states.
#pragma once

#include <string>
#include <vector>

#include "wd/config.h"
#include "wd/spec.h"

namespace wd {

inline std::vector<std::string> role_names(const Spec& spec) {
  std::vector<std::string> names;
  for (const Role& role : spec.roles) names.push_back(role.name);
  return names;
}

inline std::vector<std::string> policy_names(const Config& config) {
  std::vector<std::string> names;
  for (const PolicySettings& policy : config.policies) names.push_back(policy.name);
  return names;
}

// Returns, per policy, how many numbers an agent's network carries from step to step.
inline std::vector<int> state_sizes(const Config& config) {
  std::vector<int> sizes;
  for (const PolicySettings& policy : config.policies) sizes.push_back(policy.model.state_size());
  return sizes;
}

// Returns, per policy, whether the trajectory carries the noise of its actions.
inline std::vector<bool> carries_noise(const Config& config) {
  std::vector<bool> carries;
  for (const PolicySettings& policy : config.policies)
    carries.push_back(policy.algorithm->traits().carries_noise);
  return carries;
}

// Returns, per policy, what its networks read, some of it perhaps twice.
inline std::vector<std::vector<std::string>> reads(const Config& config) {
  std::vector<std::vector<std::string>> all;
  for (const PolicySettings& policy : config.policies) all.push_back(policy.model.all_reads());
  return all;
}

}  // namespace wd
