// action_spread.h: how much the actions of a rollout vary, which shows whether a policy has become
// deterministic, and how many are at their bounds.
#pragma once

#include <array>

#include "wd/process_group.h"
#include "wd/trajectory.h"

namespace wd {

// Standard deviation of each head's choices (each component's values), as WarpDrive logs it: along one axis,
// then the mean over the groups with at least two agents in the game, of all ranks; NaN if there is none, as
// over the steps of a rollout of one step. Agents out of the game do not count. Synchronizes on CUDA. All
// ranks.
struct ActionSpread {
  static constexpr std::array kNames = {"action_std_over_time", "action_std_over_envs",
                                        "action_std_over_agents"};  // axes 0, 1, 2
  std::array<std::vector<double>, kNames.size()> by_axis;           // [axis][head]
};

ActionSpread action_spread(const PolicyBuffers& buffers, const ProcessGroup& group);

// The share of a rollout's actions that are more than 99 % of half the width from the middle of their bounds,
// by component; NaN of a component without bounds, or if nobody acted. Empty for choices. Synchronizes on
// CUDA. All ranks.
std::vector<double> saturated_share(const PolicyBuffers& buffers, const ProcessGroup& group);

}  // namespace wd
