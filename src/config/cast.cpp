// cast.cpp: seats of whole roles, and the sides of a game.
#include "wd/cast.h"

#include <algorithm>

namespace wd {

std::vector<Seat> seats_of_roles(const Spec& spec, const std::vector<int>& policy_of_role) {
  std::vector<Seat> seats;
  int agent = 0;
  for (std::size_t r = 0; r < spec.roles.size(); ++r) {
    seats.push_back({static_cast<int>(r), agent, spec.roles[r].count, policy_of_role.at(r)});
    agent += spec.roles[r].count;
  }
  return seats;
}

std::vector<GameSide> sides_of(const Spec& spec, const std::vector<Seat>& seats,
                               const std::vector<std::string>& policies) {
  std::vector<GameSide> sides;
  for (const Seat& seat : seats) {
    const auto same = [&](const GameSide& side) {
      return side.role == seat.role && side.policy == seat.policy;
    };
    auto side = std::ranges::find_if(sides, same);
    if (side == sides.end()) side = sides.insert(sides.end(), {seat.role, seat.policy, "", 0});
    side->num_agents += seat.count;
  }
  for (GameSide& side : sides) {
    const std::string& role = spec.roles.at(static_cast<std::size_t>(side.role)).name;
    const std::string& policy = policies.at(static_cast<std::size_t>(side.policy));
    if (std::ranges::count(sides, side.role, &GameSide::role) == 1) {
      side.name = role;
    } else {
      side.name =
          std::ranges::count(sides, side.policy, &GameSide::policy) == 1 ? policy : policy + "." + role;
    }
  }
  return sides;
}

}  // namespace wd
