// cast.cpp: names of players, seats of whole roles, and the sides of a game.
#include "wd/cast.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "src/base/join.h"
#include "src/config/numbers.h"
#include "src/config/role_names.h"
#include "wd/error.h"
#include "wd/players.h"

namespace wd {

PlayerSpec PlayerSpec::of(const std::string& text) {
  const auto word = std::ranges::find(kWords, text);
  if (text == "trained") return {};
  return word == std::end(kWords) ? PlayerSpec{kRun, text} : PlayerSpec{Kind(word - std::begin(kWords))};
}

std::string ListedPlayer::text() const {
  if (player.kind == PlayerSpec::kPool) {
    std::vector<std::string> fields;
    PoolSettings settings = pool;
    for (const FieldInfo& field : list_fields([&](Fields& fields) { settings.describe(fields); }))
      fields.push_back(concat(field.name, ": ", field.value));
    const std::string shared = share > 0.0 ? concat(", share: ", config::format(share)) : "";
    return concat("{pool: {", join(fields), '}', shared, '}');
  }
  const std::string name = player.text();
  return share > 0.0 ? concat("{player: ", name, ", share: ", config::format(share), '}') : name;
}

std::string shown(const std::vector<ListedPlayer>& players) {
  std::vector<std::string> texts;
  for (const ListedPlayer& player : players) texts.push_back(player.text());
  return concat('[', join(texts), ']');
}

Cast Cast::of_roles(const Spec& spec, const std::vector<std::string>& policies,
                    const std::vector<int>& policy_of_role) {
  Cast cast;
  for (const std::string& name : policies) cast.policies.push_back({.name = name});
  int agent = 0;
  for (std::size_t r = 0; r < spec.roles.size(); ++r) {
    cast.seats.push_back({static_cast<int>(r), agent, spec.roles[r].count, policy_of_role.at(r)});
    agent += spec.roles[r].count;
  }
  return cast;
}

Cast Cast::of_roles(const Spec& spec) {
  std::vector<int> own(spec.roles.size());
  std::iota(own.begin(), own.end(), 0);
  return of_roles(spec, role_names(spec), own);
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
    const bool only_one = std::ranges::count(sides, side.role, &GameSide::role) == 1;
    const bool one_role = std::ranges::count(sides, side.policy, &GameSide::policy) == 1;
    side.name = only_one ? role : one_role ? policy : policy + "." + role;
  }
  return sides;
}

}  // namespace wd
