// cast.h: who plays: the policies of a game, and which of them acts for which agents.
#pragma once

#include <string>
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

// Which of its policy's agents each slot is of, 0 to count - 1: the slot itself (count 0), unless a match
// gives a policy only some of the agents that it was trained with.
struct AgentIds {
  std::vector<int> of_slot;
  int count = 0;
};

// One policy of a cast, and what the buffers of a rollout hold for it.
struct CastPolicy {
  std::string name;
  int state_size = 0;          // size of the state that an agent's network carries from step to step
  bool carries_noise = false;  // AlgorithmSettings::carries_noise()
  // What its networks read (ModelSettings::reads and critic_reads): names of streams, among others.
  std::vector<std::string> reads = {};
  int opponents = 0;  // other players that act in its place in some replicas
  AgentIds ids = {};  // what networks read as agent_id
};

struct Cast {
  std::vector<CastPolicy> policies;
  std::vector<Seat> seats;  // of all agents, in their order

  // policies[policy_of_role[r]] acts for role r.
  static Cast of_roles(const Spec& spec, const std::vector<std::string>& policies,
                       const std::vector<int>& policy_of_role);
  // Each role has its own policy with its name.
  static Cast of_roles(const Spec& spec);
};

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
