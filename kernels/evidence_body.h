// evidence_body.h: copies one row, the same code on both devices. Nearly always there is nothing to copy.
#pragma once

#include "kernels/evidence.h"

namespace wd {

// Row i: first come the steps of the first array, then those of the second.
WD_FN void keep_row(const EvidenceArgs& args, std::int64_t i) {
  const Failure& failure = *args.failure;
  if (failure.iteration != args.time->iteration + 1 || failure.replica < 0) return;
  for (int k = 0; k < args.num_arrays; ++k) {
    const EvidenceArray& array = args.array[k];
    if (i >= array.steps) {
      i -= array.steps;
      continue;
    }
    const std::byte* const from = array.from + (i * args.replicas + failure.replica) * array.row_bytes;
    for (std::int64_t b = 0; b < array.row_bytes; ++b) array.to[i * array.row_bytes + b] = from[b];
    return;
  }
}

}  // namespace wd
