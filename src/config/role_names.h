// role_names.h: names of roles and policies.
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

}  // namespace wd
