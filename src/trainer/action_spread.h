// action_spread.h: how different the actions of a rollout are: a policy that has become deterministic shows
// here.
#pragma once

#include <array>

#include "wd/trajectory.h"

namespace wd {

// Standard deviation of each head's choices (each component's values), as WarpDrive logs it: along one axis,
// then the mean over the groups that have somebody in the game. Agents out of the game do not count.
// Synchronises on CUDA.
struct ActionSpread {
  static constexpr std::array kNames = {"action_std_over_time", "action_std_over_envs",
                                        "action_std_over_agents"};  // axes 0, 1, 2
  std::array<std::vector<double>, kNames.size()> by_axis;           // [axis][head]
};

ActionSpread action_spread(const PolicyBuffers& buffers);

}  // namespace wd
