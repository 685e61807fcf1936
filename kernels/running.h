// running.h: means and variances that follow the numbers of training, in device memory.
#pragma once

#include "kernels/normalize.h"
#include "wd/queue.h"

namespace wd {

enum Running { kRunningWeight, kRunningMean, kRunningVariance, kNumRunning };

// Merges the moments of new numbers into running ones: exactly, by the formula of Chan et al. (1979). Changes
// nothing if there are no new numbers, or if their moments are not finite.
struct MergeMomentsArgs {
  std::int64_t columns = 1;         // how many kinds of numbers there are, each with arrays of its own
  const double* moments = nullptr;  // [columns, kNumMoments], of the new numbers
  // The weight of the new numbers: every merge multiplies those of earlier numbers by 1 - rate, and means are
  // divided by the sum of all weights, so the first merge counts fully (as in Adam). 0: all numbers count
  // equally.
  double rate = 0.0;
  double* running = nullptr;  // [columns, kNumRunning]; 0 before the first merge
  float* norm = nullptr;      // [columns, 2]: {mean, sqrt(variance + 1e-8)}
  // [columns, 2]: norm as it was before, or as it is now if these are the first numbers; or null.
  float* before = nullptr;
  // [columns, 2], with `before`: the units that the outputs of before the merge had, in terms of those of
  // now: norm, if rescale_output() follows (`rescales`), or what it was, also before the first numbers.
  float* unit = nullptr;
  bool rescales = true;
};

// Changes the units of one output of a linear layer: output * deviation + mean stays the same (van Hasselt et
// al. 2016, eq. 9).
struct RescaleOutputArgs {
  std::int64_t width = 0;         // inputs of the layer
  const float* before = nullptr;  // [2] {mean, deviation}
  const float* norm = nullptr;    // [2]
  float* weight = nullptr;        // [width]: the row of the output
  float* bias = nullptr;          // [1]
};

// Both enqueue.
WD_DECLARE_KERNEL(merge_moments, MergeMomentsArgs)
WD_DECLARE_KERNEL(rescale_output, RescaleOutputArgs)

}  // namespace wd
