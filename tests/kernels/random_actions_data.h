// random_actions_data.h: draws random actions on either device.
#pragma once

#include "kernels/random_actions.h"
#include "tests/kernels/random_data.h"

namespace wd {

// [rows, width]; continuous actions are bits of floats. `legal`: [rows, choices], or empty.
template <typename Memory>
std::vector<std::int32_t> run_random_actions(Memory memory, const ActionSpace& space, std::int64_t rows,
                                             std::uint64_t step,
                                             const std::vector<std::uint8_t>& legal = {}) {
  RandomActionsArgs args = random_actions_of(space, 5, 1, step);
  args.rows = rows;
  args.bounds = memory.put(space.bounds);
  args.action_mask = memory.put(legal);
  const auto n = static_cast<std::size_t>(rows) * static_cast<std::size_t>(space.width());
  args.action = memory.template make<std::int32_t>(n);
  random_actions(memory.queue(), args);
  return memory.get(args.action, n);
}

}  // namespace wd
