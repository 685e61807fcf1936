// normalize.h: normalization by the moments of a rollout, in device memory.
#pragma once

#include "wd/kernels/action_layout.h"
#include "wd/queue.h"

namespace wd {

// The output of masked_moments() (reduce.h): {count, sum, sum of squares}.
enum Moment { kMomentCount, kMomentSum, kMomentSquares, kNumMoments };

// norm = {mean, 1 / (standard deviation + 1e-8)}; with a deviation from elsewhere, {0, 1 / deviation}. Then
// the number of all rows for each that `moments` contain, or 0 if they contain none: the factor with which a
// mean over all rows becomes that over these.
struct NormalizationArgs {
  const double* moments = nullptr;   // [kNumMoments]
  const double* all = nullptr;       // [kNumMoments]: of all rows
  float* norm = nullptr;             // [3]
  const float* deviation = nullptr;  // [1], or null
};

// Normalizes the targets of every step to mean 0 and standard deviation 1 (with n - 1 degrees of freedom,
// plus 1e-10). The advantage is the target minus the value, or the target if there is no value. Both are 0 if
// the mask is 0.
struct NormalizeTargetsArgs {
  std::int64_t n = 0;
  std::int64_t per_step = 1;           // elements per step
  const double* moments = nullptr;     // [n / per_step, kNumMoments]: moments of each step's targets
  const std::uint8_t* mask = nullptr;  // [n]
  const float* value = nullptr;        // [n], or null
  float* target = nullptr;             // [n]
  float* advantage = nullptr;          // [n]
};

// with_choice = mask, and 0 where each head has one legal choice.
struct WithChoiceArgs {
  std::int64_t rows = 0;
  ActionLayout layout{};
  const std::uint8_t* action_mask = nullptr;  // [rows, columns]
  const std::uint8_t* mask = nullptr;         // [rows]
  std::uint8_t* with_choice = nullptr;        // [rows]
};

// All enqueue.
WD_DECLARE_KERNEL(normalization, NormalizationArgs)
WD_DECLARE_KERNEL(normalize_targets, NormalizeTargetsArgs)
WD_DECLARE_KERNEL(find_choice, WithChoiceArgs)

}  // namespace wd
