// finite_body.h: the test of one number, and what is made of a search, the same code on both devices.
#pragma once

#include "kernels/finite.h"
#include "wd/math.h"

namespace wd {

// All bits of the exponent are set.
WD_FN bool is_not_finite(std::uint32_t bits) { return (bits & 0x7f800000u) == 0x7f800000u; }

WD_FN void begin_watch(const WatchArgs& args, std::int64_t k) { args.first[k] = args.n[k]; }

WD_FN void end_watch(const WatchArgs& args, std::int64_t) {
  if (args.failure->iteration != 0) return;
  for (int k = 0; k < args.num_arrays; ++k) {
    if (args.first[k] == args.n[k]) continue;
    *args.failure = {args.time->iteration + 1, k, args.first[k], args.array[k][args.first[k]]};
    return;
  }
}

}  // namespace wd
