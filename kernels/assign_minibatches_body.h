// assign_minibatches_body.h: shuffles the steps of one replica and assigns them to minibatches, the same
// code on both devices.
#pragma once

#include "kernels/assign_minibatches.h"

namespace wd {

// Fisher-Yates shuffle, inside-out variant, at the final positions of the units. A position takes its unit
// from one before it or its own, so those after the first S need no memory.
WD_FN void assign_replica(const AssignMinibatchesArgs& args, std::int64_t e) {
  const std::int64_t T = args.steps, M = args.count, E = args.num_envs, S = units_per_replica(args),
                     first = first_minibatch(args);
  const auto place = [&](std::int64_t p) {
    const std::int64_t unit = e * S + p;  // counted on this rank
    return (first + unit) % M * args.capacity + unit / M;
  };
  const std::uint64_t iteration =
      args.iteration + (args.time == nullptr ? 0 : static_cast<std::uint64_t>(args.time->iteration));
  Philox bits{};
  for (std::int64_t p = 0; p < T; ++p) {
    if (p % 4 == 0) {
      bits = philox({{static_cast<std::uint32_t>(args.first_replica + e), static_cast<std::uint32_t>(p / 4),
                      static_cast<std::uint32_t>(iteration),
                      static_cast<std::uint32_t>(iteration >> 32) << 16 | args.epoch}},
                    args.key.key0, args.key.key1);
    }
    const auto q =
        static_cast<std::int64_t>((std::uint64_t{bits.word[0]} * static_cast<std::uint64_t>(p + 1)) >> 32);
    bits = {{bits.word[1], bits.word[2], bits.word[3], 0}};  // indexed by p, they would be in local memory
    if (p < S) args.order[place(p)] = args.order[place(q)];
    if (q < S) args.order[place(q)] = p * E + e;
  }
}

}  // namespace wd
