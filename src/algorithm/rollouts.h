// rollouts.h: what the algorithms that learn from one rollout at a time share.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/returns.h"
#include "wd/algorithms.h"
#include "wd/trajectory.h"

namespace wd {

// The arguments of the return kernels for the rollout in these buffers, without method and coefficients.
ReturnsArgs returns_of(const Trajectory& trajectory, const PolicyBuffers& buffers);

// Steps per rollout within which most of the weight of returns with this horizon [steps] lies; at most
// time_limit.
std::int64_t horizons(double horizon, std::int64_t time_limit);

// Reports num_minibatches if a rollout of this shape cannot be divided into so many minibatches.
void check_minibatches(int num_minibatches, const TrainingShape& shape,
                       const AlgorithmSettings::Problem& problem);
// The same for an algorithm that is made without a configuration: throws UsageError.
void require_minibatches(int num_minibatches, const AlgorithmContext& context, const char* algorithm);

}  // namespace wd
