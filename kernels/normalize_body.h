// normalize_body.h: means and standard deviations from moments, and the normalization of one row, the same
// code on both devices.
#pragma once

#include "kernels/normalize.h"
#include "wd/math.h"

namespace wd {

WD_FN double mean_of(const double* moments) { return moments[kMomentSum] / max(moments[kMomentCount], 1.0); }

WD_FN double variance_of(const double* moments) {
  const double mean = mean_of(moments);
  const double variance = moments[kMomentSquares] / max(moments[kMomentCount], 1.0) - mean * mean;
  return variance < 0.0 ? 0.0 : variance;  // NaN stays NaN
}

WD_FN void write_normalization(const NormalizationArgs& args, std::int64_t) {
  const bool given = args.deviation != nullptr;
  args.norm[0] = given ? 0.0f : static_cast<float>(mean_of(args.moments));
  args.norm[1] =
      given ? 1.0f / *args.deviation : static_cast<float>(1.0 / (sqrt(variance_of(args.moments)) + 1e-8));
  const double count = args.moments[kMomentCount];
  args.norm[2] = count > 0.0 ? static_cast<float>(args.all[kMomentCount] / count) : 0.0f;
}

WD_FN void find_choice_of_row(const WithChoiceArgs& args, std::int64_t row) {
  const bool chooses = args.layout.leaves_choice(args.action_mask + row * args.layout.columns());
  args.with_choice[row] = chooses ? args.mask[row] : 0;
}

WD_FN void normalize_target(const NormalizeTargetsArgs& args, std::int64_t i) {
  const double* const moments = args.moments + i / args.per_step * kNumMoments;
  const double count = moments[kMomentCount], unbiased = count / max(count - 1.0, 1.0);
  const float mean = static_cast<float>(mean_of(moments));
  const float deviation = static_cast<float>(sqrt(variance_of(moments) * unbiased)) + 1e-10f;
  const float mask = args.mask[i];
  const float target = (args.target[i] - mean) / deviation * mask;
  args.target[i] = target;
  args.advantage[i] = args.value == nullptr ? target : (target - args.value[i]) * mask;
}

}  // namespace wd
