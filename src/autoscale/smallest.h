// smallest.h: the smallest setting that is as fast as the fastest: replicas at fixed T, then T.
#pragma once

#include "src/autoscale/trials.h"

namespace wd::scaling {

// Begins the stage. At least one probe must fit. None where none does any more when measured again. What is
// found is no slower than `start`.
std::optional<Probe> smallest(Trials& trials, const Probe& start);

// A line t = a + b n fitted to the times of an iteration [s] with n replicas, or n steps, and from it the n
// at which speed reaches `part` of that at n = most. None where the measurements do not say.
struct IterationTime {
  double number, seconds;
};
std::optional<double> number_for(const std::vector<IterationTime>& measured, double most, double part);

}  // namespace wd::scaling
