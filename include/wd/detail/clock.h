// clock.h: the training clock: iterations and environment steps so far, stored where the kernels that read
// them run.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "wd/device.h"

namespace wd {

struct TrainingTime;

class TrainingClock {
 public:
  explicit TrainingClock(Device device);

  // Sets the number of complete iterations, and of environment steps of the whole job. Copies to the device.
  void set(std::int64_t iteration, std::int64_t env_steps);
  // Counts a finished iteration of `env_steps` environment steps. Enqueues.
  void advance(std::int64_t env_steps);
  // The number of complete iterations. Synchronizes on CUDA.
  std::int64_t iteration() const;
  // The time that kernels read, on the device; the pointer stays valid and constant.
  const TrainingTime* time() const;

 private:
  Device device_;
  at::Tensor time_;  // [2] int64
};

}  // namespace wd
