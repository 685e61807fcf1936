// work.h: how many bytes and floating-point operations an environment step takes, counted from shapes.
//
// Bytes are those of the trajectory's rows, counted once for every phase that writes or reads them; the state
// of replicas, parameters and activations are taken to stay in cache, and are not counted. Operations are
// those of the network's matrix products, a multiplication and an addition each; activations, softmaxes,
// losses and the environment's own are not counted.
#pragma once

#include <cstdint>
#include <vector>

#include "wd/config.h"
#include "wd/trajectory.h"

namespace wd::bench {

// Of one step of one replica, all its agents together.
struct Work {
  double bytes = 0.0, flop = 0.0;

  Work operator+(const Work& other) const { return {bytes + other.bytes, flop + other.flop}; }
};

// Rows written by the environment, and actions read by it.
Work environment_work(const Trajectory& trajectory);
// Actions written at random.
Work random_play_work(const Trajectory& trajectory);
// act() in each of T steps, and the value of the last row, a T-th of a step.
Work inference_work(const Trajectory& trajectory, const Config& config);
// Returns, and epochs over all rows, minibatches gathered where there are several. PPO may stop early at
// target_kl: not counted.
Work update_work(const Trajectory& trajectory, const Config& config);

}  // namespace wd::bench
