// role_names.h: the roles of an environment, and a policy for each of them: what a Trajectory is made with where nobody learns.
#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "wd/spec.h"

namespace wd {

inline std::vector<std::string> role_names(const Spec& spec) {
  std::vector<std::string> names;
  for (const Role& role : spec.roles) names.push_back(role.name);
  return names;
}

// The policy of each role if each has its own, in their order.
inline std::vector<int> one_policy_per_role(const Spec& spec) {
  std::vector<int> policies(spec.roles.size());
  std::iota(policies.begin(), policies.end(), 0);
  return policies;
}

}  // namespace wd
