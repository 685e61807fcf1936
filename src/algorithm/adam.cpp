// adam.cpp: the state of the Adam optimizer, and the calls of its kernel.
#include "src/algorithm/adam.h"

#include <ATen/ATen.h>

#include <cmath>

#include "kernels/reduce.h"
#include "src/device/device.h"
#include "src/device/tensor_device.h"

namespace wd {

namespace {

StepRecord* record_in(const at::Tensor& tensor) {
  return reinterpret_cast<StepRecord*>(tensor.mutable_data_ptr<double>());
}

}  // namespace

Adam::Adam(const at::Tensor& parameters, const at::Tensor& shadow, double epsilon)
    : device_(device_holding(parameters)),
      parameters_(parameters),
      shadow_(shadow),
      first_moment_(at::zeros_like(parameters)),
      second_moment_(at::zeros_like(parameters)),
      steps_(at::zeros({}, parameters.options().dtype(at::kLong))),
      record_(at::zeros({kStepNumbers}, parameters.options().dtype(at::kDouble))),
      partial_(at::zeros({num_chunks(parameters.numel())}, record_.options())),
      epsilon_(epsilon) {}

void Adam::begin_update(const double* lr, const double* max_grad_norm, const std::int64_t* failed) {
  wd::begin_update(current_queue(device_), {record_in(record_), lr, max_grad_norm, failed});
}

void Adam::step(const at::Tensor& gradients, const RecordLossArgs& losses) {
  AdamArgs args;
  args.n = parameters_.numel();
  args.gradient = gradients.const_data_ptr<float>();
  args.parameter = parameters_.mutable_data_ptr<float>();
  args.first_moment = first_moment_.mutable_data_ptr<float>();
  args.second_moment = second_moment_.mutable_data_ptr<float>();
  if (shadow_.defined()) args.shadow = static_cast<std::uint16_t*>(shadow_.mutable_data_ptr());
  args.losses = losses;
  args.steps = steps_.mutable_data_ptr<std::int64_t>();
  args.record = record_in(record_);
  args.partial = partial_.mutable_data_ptr<double>();
  args.epsilon = static_cast<float>(epsilon_);
  adam(current_queue(device_), args);
}

const StepRecord* Adam::live_record() const { return record_in(record_); }

StepRecord Adam::record() const {
  const at::Tensor host = record_.cpu();
  return *record_in(host);
}

double Adam::step_ratio() const {
  const StepRecord last = record();
  if (last.steps == 0.0) return std::nan("");
  const auto squares = [](const at::Tensor& x) { return x.square().sum().item<double>(); };
  const at::Tensor first = first_moment_.cpu().to(at::kDouble), second = second_moment_.cpu().to(at::kDouble);
  const at::Tensor step = last.step_size * first / (second.sqrt() * last.inverse_root + epsilon_);
  return std::sqrt(squares(step) / squares(parameters_.cpu().to(at::kDouble)));
}

}  // namespace wd
