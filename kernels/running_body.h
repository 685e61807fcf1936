// running_body.h: merges moments, and changes the units of one weight, the same code on both devices.
#pragma once

#include "kernels/normalize_body.h"
#include "kernels/running.h"

namespace wd {

WD_FN void merge_running(const MergeMomentsArgs& args, std::int64_t column) {
  float* const norm = args.norm + 2 * column;
  for (int k = 0; k < 2 && args.before != nullptr; ++k)
    args.before[2 * column + k] = args.unit[2 * column + k] = norm[k];
  const double* const moments = args.moments + kNumMoments * column;
  const double count = moments[kMomentCount], mean = mean_of(moments);
  const double variance = variance_of(moments);
  if (!(count > 0.0) || !(variance - variance == 0.0)) return;  // none, NaN or infinite
  double* const running = args.running + kNumRunning * column;
  const double added = args.rate > 0.0 ? args.rate * (1.0 - running[kRunningWeight]) : count;
  const bool first = running[kRunningWeight] == 0.0;
  running[kRunningWeight] += added;
  // With a rate, the weight of earlier numbers has become (1 - rate) weight, and the sum of all is this.
  const double share = (args.rate > 0.0 ? args.rate : count) / running[kRunningWeight];
  const double distance = mean - running[kRunningMean];
  running[kRunningMean] += share * distance;
  running[kRunningVariance] =
      (1.0 - share) * (running[kRunningVariance] + share * distance * distance) + share * variance;
  norm[0] = static_cast<float>(running[kRunningMean]);
  norm[1] = static_cast<float>(sqrt(running[kRunningVariance] + 1e-8));
  for (int k = 0; k < 2 && args.before != nullptr; ++k)
    (first || !args.rescales ? args.before : args.unit)[2 * column + k] = norm[k];
}

// Item `width` is the bias.
WD_FN void rescale_number(const RescaleOutputArgs& args, std::int64_t i) {
  const double old_mean = args.before[0], old_deviation = args.before[1];
  const double mean = args.norm[0], deviation = args.norm[1];
  if (i < args.width)
    args.weight[i] = static_cast<float>(args.weight[i] * (old_deviation / deviation));
  else
    *args.bias = static_cast<float>((*args.bias * old_deviation + old_mean - mean) / deviation);
}

}  // namespace wd
