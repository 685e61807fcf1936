// clock.h: the training clock: iterations and environment steps so far, kept where the kernels that need them
// run.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "wd/device.h"

namespace wd {

struct TrainingTime;

class TrainingClock {
 public:
  explicit TrainingClock(Device device);

  // Complete iterations, and environment steps of the whole job. Copies to the device.
  void set(std::int64_t iteration, std::int64_t env_steps);
  // An iteration of so many environment steps is over. Enqueues.
  void advance(std::int64_t env_steps);
  // What kernels read, on the device; it stays where it is.
  const TrainingTime* time() const;

 private:
  Device device_;
  at::Tensor time_;  // [2] int64
};

}  // namespace wd
