// observation_norm.cpp: counts what a policy has read in a rollout.
#include "src/policy/observation_norm.h"

#include <ATen/ATen.h>

#include "kernels/running.h"
#include "src/device/device.h"
#include "src/device/tensor_device.h"
#include "src/nets/standardized.h"
#include "wd/error.h"

namespace wd {

ObservationNorm::ObservationNorm(const PolicyLayout& layout, const ModelSettings& model, Device device)
    : device_(device) {
  if (model.input == kEntityInput) entities_.emplace(layout, model, device);
  WD_CHECK(entities_ || !layout.as_table(), "a table has no rows to normalize");
  const std::int64_t columns = entities_ ? entities_->shape().width() : layout.observation_size;
  const auto floats = at::TensorOptions().dtype(at::kFloat).device(torch_device(device));
  norm_ = at::tensor({0.0f, 1.0f}).repeat({columns, 1}).to(floats.device());
  running_ = at::zeros({columns, kNumRunning}, floats.dtype(at::kDouble));
  moments_ = at::zeros({columns, kNumMoments}, floats.dtype(at::kDouble));
  partial_ = at::zeros({kColumnParts, columns, kNumMoments}, floats.dtype(at::kDouble));
}

void ObservationNorm::count_rows(const at::Tensor& rows, const at::Tensor& mask) {
  const ColumnMomentsArgs args{.x = columns_view(rows),
                               .rows = mask.numel(),
                               .columns = static_cast<int>(norm_.size(0)),
                               .mask = mask.const_data_ptr<std::uint8_t>(),
                               .partial = partial_.mutable_data_ptr<double>(),
                               .moments = moments_.mutable_data_ptr<double>()};
  const Queue queue = current_queue(device_);
  column_moments(queue, args);
  add_column_moments(queue, args);
}

void ObservationNorm::count(const PolicyBuffers& buffers, int steps) {
  moments_.zero_();
  if (!entities_) return count_rows(buffers.observation_rows(0, steps), buffers.mask.narrow(0, 0, steps));
  const EntityShape& shape = entities_->shape();
  const std::int64_t rows = buffers.mask.stride(0);
  if (!features_.defined()) {
    const auto floats = norm_.options();
    features_ = at::zeros({rows, shape.width()}, floats);
    found_ = at::zeros({rows, shape.slots()}, floats.dtype(at::kInt));
  }
  for (int t = 0; t < steps; ++t) {
    entities_->read(buffers.observation_rows(t, t + 1), features_, found_);
    count_rows(features_, buffers.mask[t]);
  }
}

void ObservationNorm::merge() {
  merge_moments(current_queue(device_), {.columns = norm_.size(0),
                                         .moments = moments_.const_data_ptr<double>(),
                                         .running = running_.mutable_data_ptr<double>(),
                                         .norm = norm_.mutable_data_ptr<float>()});
}

}  // namespace wd
