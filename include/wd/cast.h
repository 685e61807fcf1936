// cast.h: which policy acts for which agents.
#pragma once

#include <vector>

#include "wd/spec.h"

namespace wd {

// A run of agents of one role, for which one policy acts. A cast has at most kMaxSeats of them.
struct Seat {
  int role = 0;         // index into Spec::roles
  int first_agent = 0;  // id among the agents of all roles
  int count = 0;
  int policy = 0;  // index

  bool operator==(const Seat&) const = default;
};

// One seat for each role, in which policy_of_role[r] acts for role r.
std::vector<Seat> seats_of_roles(const Spec& spec, const std::vector<int>& policy_of_role);

// The agents of one role for which one policy acts: what matches give a player, and results are about.
struct GameSide {
  int role = 0;    // index into Spec::roles
  int policy = 0;  // index
  // The role's name. If several policies act for the role: the policy's name, or "POLICY.ROLE" if that policy
  // acts for several roles.
  std::string name;
  int num_agents = 0;
};

// By role, then by policy in the order of their first agents.
std::vector<GameSide> sides_of(const Spec& spec, const std::vector<Seat>& seats,
                               const std::vector<std::string>& policies);

}  // namespace wd
