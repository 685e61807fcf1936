// action_spread.h: how much the actions of a rollout vary, which shows whether a policy has become
// deterministic.
#pragma once

#include <array>

#include "wd/trajectory.h"

namespace wd {

// Standard deviation of each head's choices (each component's values), as WarpDrive logs it: along one axis,
// then the mean over the groups that have an agent in the game. Agents out of the game do not count.
// Synchronizes on CUDA.
struct ActionSpread {
  static constexpr std::array kNames = {"action_std_over_time", "action_std_over_envs",
                                        "action_std_over_agents"};  // axes 0, 1, 2
  std::array<std::vector<double>, kNames.size()> by_axis;           // [axis][head]
};

ActionSpread action_spread(const PolicyBuffers& buffers);

}  // namespace wd
