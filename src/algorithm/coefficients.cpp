// coefficients.cpp: stores schedules as arrays of points and evaluates them on the device.
#include "wd/coefficients.h"

#include <ATen/ATen.h>

#include "src/device/device.h"
#include "src/device/tensor_device.h"
#include "wd/kernels/clock.h"

namespace wd {

Coefficients::Coefficients(std::span<const Schedule* const> schedules, Device device) : device_(device) {
  std::vector<double> points;
  std::vector<std::int64_t> first = {0};
  for (const Schedule* const schedule : schedules) {
    for (const Schedule::Point& point : schedule->points)
      points.insert(points.end(), {point.step, point.value});
    if (schedule->points.empty()) points.insert(points.end(), {0.0, 0.0});
    first.push_back(static_cast<std::int64_t>(points.size() / 2));
  }
  const at::Device place = torch_device(device);
  const auto count = static_cast<std::int64_t>(schedules.size());
  points_ = at::tensor(points, at::kDouble).to(place);
  first_ = at::tensor(first, at::kLong).to(place);
  value_ = at::zeros({count}, at::TensorOptions().dtype(at::kDouble).device(place));
  rounded_ = at::zeros({count}, at::TensorOptions().dtype(at::kFloat).device(place));
}

void Coefficients::update(const TrainingClock& clock) {
  SchedulesArgs args;
  args.count = value_.numel();
  args.points = points_.const_data_ptr<double>();
  args.first = first_.const_data_ptr<std::int64_t>();
  args.time = clock.time();
  args.value = value_.mutable_data_ptr<double>();
  args.rounded = rounded_.mutable_data_ptr<float>();
  schedules(current_queue(device_), args);
}

double ExplorationSchedules::epsilon() const { return all_.value().cpu()[0].item<double>(); }

}  // namespace wd
