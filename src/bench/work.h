// work.h: bytes and floating-point operations per environment step, computed from shapes.
//
// Bytes are those of the trajectory's rows, counted once for every phase that writes or reads them. The state
// of replicas, parameters and activations are assumed to stay in cache and are not counted. Operations are
// the multiplications and additions of the networks' matrix products. Activation functions, softmaxes, losses
// and the environment's own operations are not counted.
#pragma once

#include <cstdint>
#include <vector>

#include "wd/config.h"
#include "wd/trajectory.h"

namespace wd::bench {

// Work per step of one replica, for all its agents together.
struct Work {
  double bytes = 0.0, flop = 0.0;

  Work operator+(const Work& other) const { return {bytes + other.bytes, flop + other.flop}; }
};

// Rows written by the environment and actions read by it.
Work environment_work(const Trajectory& trajectory);
// Randomly chosen actions that are written.
Work random_play_work(const Trajectory& trajectory);
// act() in each of T steps, and the value of the last row, which is a T-th per step.
Work inference_work(const Trajectory& trajectory, const Config& config);
// Computation of returns, and epochs over all rows; if there are several minibatches, they are gathered. An
// early stop of PPO at target_kl is not considered.
Work update_work(const Trajectory& trajectory, const Config& config);

}  // namespace wd::bench
