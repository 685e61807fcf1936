// coefficients.h: the current values of schedules, in device memory, where the kernels of an update read
// them.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <span>

#include "wd/detail/clock.h"
#include "wd/device.h"
#include "wd/kernels/action_layout.h"
#include "wd/params.h"

namespace wd {

class Coefficients {
 public:
  // A schedule without points is always 0.
  Coefficients(std::span<const Schedule* const> schedules, Device device);

  // Evaluates the schedules at the clock's time. Enqueues.
  void update(const TrainingClock& clock);
  // [schedules] float64, as of the last update().
  const at::Tensor& value() const { return value_; }
  const double* value(int k) const { return value_.const_data_ptr<double>() + k; }
  // [schedules] float32: the same values, rounded.
  const at::Tensor& rounded() const { return rounded_; }

 private:
  Device device_;
  at::Tensor points_, first_, value_, rounded_;
};

// The current values of what a distribution explores with (Algorithm::exploration).
class ExplorationSchedules {
 public:
  // `deviation` and `damping` are read by actors of points only. The schedules are copied.
  ExplorationSchedules(const Schedule& epsilon, const Schedule& deviation, const Schedule& damping,
                       Device device)
      : all_(std::array{&epsilon, &deviation, &damping}, device) {}

  void update(const TrainingClock& clock) { all_.update(clock); }  // enqueues
  // In device memory; the pointer stays the same.
  const ExplorationNumbers* numbers() const {
    return reinterpret_cast<const ExplorationNumbers*>(all_.rounded().const_data_ptr<float>());
  }
  double epsilon() const;  // synchronizes on CUDA

 private:
  Coefficients all_;
};

}  // namespace wd
