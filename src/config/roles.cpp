// roles.cpp: assigns exactly one policy to every role.
#include <algorithm>

#include "src/base/join.h"
#include "src/base/suggest.h"
#include "src/config/layers.h"
#include "src/config/role_names.h"

namespace wd::config {
namespace {

constexpr char kShared[] = "shared";

// Derives the roles from the policy's name if it lists none.
void name_roles(PolicySettings& policy, const Spec& spec, Problems& problems, const Places& places) {
  policy.roles = roles_of(policy, spec);
  if (!policy.roles.empty()) return;
  report(problems, places, "policy." + policy.name, "",
         "no role of that name; name it " + join(role_names(spec)) + " or " + kShared +
             ", or give it roles: [...]");
}

std::string action_text(const ActionSpace& action) {
  if (action.is_continuous()) return std::to_string(action.components()) + " continuous";
  std::string text;
  for (const int choices : action.heads) text += (text.empty() ? "" : " x ") + std::to_string(choices);
  return text + " choices";
}

std::string spaces_text(const Role& role) {
  return role.name + " observes " + std::to_string(role.observation_size()) + " numbers and acts by " +
         action_text(role.action);
}

bool same_spaces(const Role& a, const Role& b) {
  return a.observation_size() == b.observation_size() && a.action.heads == b.action.heads &&
         a.action.bounds == b.action.bounds && a.action_mask == b.action_mask;
}

// Assigns the roles of one policy to it.
void claim(const Spec& spec, Config& config, std::size_t index, Problems& problems, const Places& places) {
  const PolicySettings& policy = config.policies[index];
  const std::vector<std::string> names = role_names(spec);
  const std::string path = "policy." + policy.name + ".roles";
  const Role* first = nullptr;
  for (const std::string& wanted : policy.roles) {
    const auto found = std::find(names.begin(), names.end(), wanted);
    if (found == names.end()) {
      report(problems, places, path, printable(wanted), "no such role" + suggestion(wanted, names));
      continue;
    }
    const std::size_t role = static_cast<std::size_t>(found - names.begin());
    int& owner = config.policy_of_role[role];
    if (owner >= 0) {
      const std::string& other = config.policies[static_cast<std::size_t>(owner)].name;
      report(problems, places, path, wanted, "policy \"" + other + "\" has this role already");
      continue;
    }
    owner = static_cast<int>(index);
    if (first == nullptr) first = &spec.roles[role];
    if (same_spaces(*first, spec.roles[role])) continue;
    report(
        problems, places, path, join(policy.roles),
        "one policy needs equal spaces, but " + spaces_text(*first) + ", " + spaces_text(spec.roles[role]));
  }
}

}  // namespace

std::vector<std::string> roles_of(const PolicySettings& policy, const Spec& spec) {
  if (!policy.roles.empty()) return policy.roles;
  const std::vector<std::string> roles = role_names(spec);
  if (contains(roles, policy.name)) return {policy.name};
  return policy.name == kShared ? roles : std::vector<std::string>{};
}

void assign_roles(const Spec& spec, Config& config, Problems& problems, const Places& places) {
  const std::vector<std::string> names = role_names(spec);
  config.policy_of_role.assign(names.size(), -1);
  for (std::size_t i = 0; i < config.policies.size(); ++i) {
    name_roles(config.policies[i], spec, problems, places);
    claim(spec, config, i, problems, places);
  }
  for (std::size_t role = 0; role < names.size(); ++role) {
    if (config.policy_of_role[role] >= 0) continue;
    report(problems, places, "policy", "", "role \"" + names[role] + "\" has no policy");
  }
}

}  // namespace wd::config
