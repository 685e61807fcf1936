// clock.cpp: the iteration and the number of environment steps, in device memory.
#include "wd/detail/clock.h"

#include <ATen/ATen.h>

#include "src/device/device.h"
#include "src/device/tensor_device.h"
#include "wd/kernels/clock.h"

namespace wd {

namespace {

TrainingTime* time_in(const at::Tensor& tensor) {
  static_assert(sizeof(TrainingTime) == 2 * sizeof(std::int64_t));
  return reinterpret_cast<TrainingTime*>(tensor.data_ptr<std::int64_t>());
}

}  // namespace

TrainingClock::TrainingClock(Device device) : device_(device) {
  time_ = at::zeros({2}, at::TensorOptions().dtype(at::kLong).device(torch_device(device)));
}

void TrainingClock::set(std::int64_t iteration, std::int64_t env_steps) {
  time_.copy_(at::tensor({iteration, env_steps}, at::kLong));
}

void TrainingClock::advance(std::int64_t env_steps) {
  advance_clock(current_queue(device_), {time_in(time_), env_steps});
}

std::int64_t TrainingClock::iteration() const { return time_.cpu()[0].item<std::int64_t>(); }

const TrainingTime* TrainingClock::time() const { return time_in(time_); }

}  // namespace wd
