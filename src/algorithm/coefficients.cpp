// coefficients.cpp: a policy's schedules as arrays of points.
#include "src/algorithm/coefficients.h"

#include <ATen/ATen.h>

#include "kernels/loss.h"
#include "src/device.h"
#include "src/tensor_device.h"

namespace wd {

Coefficients::Coefficients(const PolicySettings& settings, Device device) : device_(device) {
  static_assert(offsetof(LossCoefficients, clip) == kClipParam * sizeof(float) &&
                offsetof(LossCoefficients, value_clip) == kValueClip * sizeof(float) &&
                offsetof(LossCoefficients, value_coeff) == kValueCoeff * sizeof(float) &&
                offsetof(LossCoefficients, entropy_coeff) == kEntropyCoeff * sizeof(float));
  const std::array<const Schedule*, kNumCoefficients> schedules = {
      &settings.clip_param, &settings.vf_clip_param, &settings.vf_loss_coeff, &settings.entropy_coeff,
      &settings.lr,         &settings.max_grad_norm, &settings.target_kl};
  std::vector<double> points;
  std::vector<std::int64_t> first = {0};
  for (const Schedule* const schedule : schedules) {
    for (const Schedule::Point& point : schedule->points)
      points.insert(points.end(), {point.step, point.value});
    if (schedule->points.empty()) points.insert(points.end(), {0.0, 0.0});
    first.push_back(static_cast<std::int64_t>(points.size() / 2));
  }
  const at::Device place = torch_device(device);
  points_ = at::tensor(points, at::kDouble).to(place);
  first_ = at::tensor(first, at::kLong).to(place);
  value_ = at::zeros({kNumCoefficients}, at::TensorOptions().dtype(at::kDouble).device(place));
  rounded_ = at::zeros({kNumCoefficients}, at::TensorOptions().dtype(at::kFloat).device(place));
  of_loss_ = rounded_.narrow(0, kClipParam, kEntropyCoeff + 1);
}

void Coefficients::update(const TrainingClock& clock) {
  SchedulesArgs args;
  args.count = kNumCoefficients;
  args.points = points_.const_data_ptr<double>();
  args.first = first_.const_data_ptr<std::int64_t>();
  args.time = clock.time();
  args.value = value_.mutable_data_ptr<double>();
  args.rounded = rounded_.mutable_data_ptr<float>();
  schedules(current_queue(device_), args);
}

}  // namespace wd
