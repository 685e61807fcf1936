// smallest.h: finds the smallest setting that is as fast as the fastest: first replicas at fixed T, then T.
#pragma once

#include "src/autoscale/trials.h"

namespace wd::scaling {

// Begins the stage. At least one probe must fit. Returns none if no setting fits any more when measured
// again. The result is no slower than `start`.
std::optional<Probe> smallest(Trials& trials, const Probe& start);

// Fits a line t = a + b n to the times of an iteration [s] with n replicas (or n steps). Returns the n at
// which the speed reaches `part` of the speed at n = most, or none if the measurements do not determine it.
struct IterationTime {
  double number, seconds;
};
std::optional<double> number_for(const std::vector<IterationTime>& measured, double most, double part);

}  // namespace wd::scaling
