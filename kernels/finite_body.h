// finite_body.h: tests one number, and records the result of a search, the same code on both devices.
#pragma once

#include "kernels/finite.h"
#include "wd/detail/bfloat16.h"

namespace wd {

// Whether all bits of the exponent are set, of a float32 and of a bfloat16.
WD_FN bool is_not_finite(std::uint32_t bits) { return (bits & 0x7f800000u) == 0x7f800000u; }
WD_FN bool is_not_finite(std::uint16_t bits) { return (bits & 0x7f80u) == 0x7f80u; }

WD_FN float number_at(const FloatArray& x, std::int64_t i) {
  return x.bfloat16 ? from_bfloat16(static_cast<const std::uint16_t*>(x.data)[i])
                    : static_cast<const float*>(x.data)[i];
}

WD_FN void begin_watch(const WatchArgs& args, std::int64_t k) { args.first[k] = args.array[k].n; }

WD_FN void end_watch(const WatchArgs& args, std::int64_t) {
  if (args.failure->iteration != 0) return;
  for (int k = 0; k < args.num_arrays; ++k) {
    const std::int64_t found = args.first[k];
    if (found == args.array[k].n) continue;
    const std::int64_t size = args.per_replica[k], index = args.first_index[k] + found,
                       replica = size == 0 ? -1 : index / size % args.replicas;
    *args.failure = {args.time->iteration + 1, k, index, replica, number_at(args.array[k], found)};
    return;
  }
}

}  // namespace wd
