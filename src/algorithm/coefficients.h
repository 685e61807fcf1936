// coefficients.h: where a policy's schedules stand, in the memory of its device, where the kernels of an update read them.
#pragma once

#include <ATen/core/Tensor.h>

#include "wd/clock.h"
#include "wd/config.h"

namespace wd {

// The order of the first four is that of LossCoefficients (kernels/loss.h).
enum Coefficient {
  kClipParam,
  kValueClip,
  kValueCoeff,
  kEntropyCoeff,
  kLr,
  kMaxGradNorm,
  kTargetKl,
  kNumCoefficients
};

class Coefficients {
 public:
  Coefficients(const PolicySettings& settings, Device device);

  // At the clock's time. Enqueues.
  void update(const TrainingClock& clock);
  // [kNumCoefficients] float64: as of the last update().
  const at::Tensor& value() const { return value_; }
  // [4] float32: those of the loss.
  const at::Tensor& of_loss() const { return of_loss_; }

 private:
  Device device_;
  at::Tensor points_, first_, value_, rounded_, of_loss_;
};

}  // namespace wd
