// dropped.cpp: puts a dropped reward into words.
#include "src/replicas/dropped.h"

#include <algorithm>

#include "wd/error.h"

namespace wd {
namespace {

// For example "player 1": agents are numbered within their role, as everywhere in `check`.
std::string name_of(const Spec& spec, int agent) {
  for (const Role& role : spec.roles) {
    if (agent < role.count) return concat(role.name, ' ', agent);
    agent -= role.count;
  }
  return concat("agent ", agent);
}

}  // namespace

std::string dropped_text(std::span<const DroppedReward> dropped, const Spec& spec) {
  const auto found =
      std::ranges::find_if(dropped, [](const DroppedReward& one) { return one.amount != 0.0f; });
  if (found == dropped.end()) return {};
  const auto agent = static_cast<int>((found - dropped.begin()) % spec.num_agents());
  const std::string when = found->left > 0 ? concat("left in step ", found->left, " of an episode")
                                           : std::string("was not in the game yet in an episode");
  return concat(
      name_of(spec, agent), ' ', when, " and was paid ", found->amount, " in step ", found->step,
      ": nothing learns from it, and no return has it. Pay agents while they are in the game, at the "
      "latest in the step in which they leave, or set Role::paid_after_leaving");
}

}  // namespace wd
