// assign_minibatches_data.h: runs the distribution of units to minibatches, on either device.
#pragma once

#include <vector>

#include "kernels/assign_minibatches.h"

namespace wd {

// [M, ceil(S E / M)]; -1 where no unit was assigned.
template <typename Memory>
std::vector<std::int64_t> run_assign_minibatches(Memory memory, AssignMinibatchesArgs args) {
  const std::int64_t units = std::int64_t{units_per_replica(args)} * args.num_envs;
  args.capacity = (units + args.count - 1) / args.count;
  const auto n = static_cast<std::size_t>(args.count * args.capacity);
  args.order = memory.template make<std::int64_t>(n);
  assign_minibatches(memory.queue(), args);
  return memory.get(args.order, n);
}

}  // namespace wd
