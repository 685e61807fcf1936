// step_record.h: what the optimizer steps of an update record, in device memory.
#pragma once

#include <cstdint>

namespace wd {

// An algorithm sums at most this many numbers over the rows of a minibatch. The first is the count of rows.
inline constexpr int kMaxSums = 128;

// What the steps of an update read and write, in device memory, where a captured graph finds it:
// [kStepNumbers] float64.
struct StepRecord {
  // Set before the update.
  double lr;
  double max_grad_norm;  // infinity: no limit
  // Sums over the update; 0 before it.
  double norm_sum;  // norms of the mean gradients, before clipping
  double steps;     // steps made or refused
  double refused;   // steps refused because losses or norm were not finite
  double empty;     // minibatches in which no row counts, which make no step
  double stopped;   // 1: ended by the algorithm or by a refusal; further steps do nothing
  // The last step.
  double norm;
  double made;  // 1: it changed the parameters
  double scale, step_size, inverse_root;
  std::uint64_t arrived;  // number of blocks whose partial sum is written; 0 between steps
};
inline constexpr std::int64_t kStepNumbers = sizeof(StepRecord) / sizeof(double);

}  // namespace wd
