// evidence.h: keeps what one replica did in the rollout in which a number was not finite.
#pragma once

#include <cstddef>

#include "kernels/finite.h"
#include "wd/math.h"

namespace wd {

// An array with one row per step and replica.
struct EvidenceArray {
  const std::byte* from = nullptr;  // [steps, replicas, row_bytes]
  std::byte* to = nullptr;          // [steps, row_bytes]
  std::int64_t steps = 0, row_bytes = 0;
};

inline constexpr int kMaxEvidence = 40;

struct EvidenceArgs {
  const Failure* failure = nullptr;    // on the device, as watch() left it in this iteration
  const TrainingTime* time = nullptr;  // on the device
  std::int64_t replicas = 0;
  int num_arrays = 0;
  EvidenceArray array[kMaxEvidence];

  WD_FN std::int64_t rows() const {
    std::int64_t rows = 0;
    for (int k = 0; k < num_arrays; ++k) rows += array[k].steps;
    return rows;
  }
};

// If watch() has found a number of a replica in this iteration, copies the replica's rows of all arrays:
// to[t] = from[t][replica]. Enqueues.
WD_DECLARE_KERNEL(keep_evidence, EvidenceArgs)

}  // namespace wd
