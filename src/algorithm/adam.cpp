// adam.cpp: the optimizer's memory around its kernel.
#include "src/algorithm/adam.h"

#include <ATen/ATen.h>

#include <cstring>

#include "kernels/reduce.h"
#include "src/device.h"
#include "src/tensor_device.h"

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
      steps_(at::zeros({}, parameters.options())),
      record_(at::zeros({kStepNumbers}, parameters.options().dtype(at::kDouble))),
      partial_(at::zeros({num_chunks(parameters.numel())}, record_.options())),
      epsilon_(epsilon) {}

void Adam::begin_update(const Coefficients& coefficients, Limits limits, const std::int64_t* failed) {
  const double* const value = coefficients.value().const_data_ptr<double>();
  BeginUpdateArgs args;
  args.record = record_in(record_);
  args.lr = value + kLr;
  if (limits.norm) args.max_grad_norm = value + kMaxGradNorm;
  if (limits.kl) args.target_kl = value + kTargetKl;
  args.failed = failed;
  wd::begin_update(current_queue(device_), args);
}

void Adam::step(const at::Tensor& gradients, const at::Tensor& totals) {
  AdamArgs args;
  args.n = parameters_.numel();
  args.gradient = gradients.const_data_ptr<float>();
  args.parameter = parameters_.mutable_data_ptr<float>();
  args.first_moment = first_moment_.mutable_data_ptr<float>();
  args.second_moment = second_moment_.mutable_data_ptr<float>();
  if (shadow_.defined()) args.shadow = static_cast<std::uint16_t*>(shadow_.mutable_data_ptr());
  args.totals = totals.const_data_ptr<double>();
  args.steps = steps_.mutable_data_ptr<float>();
  args.record = record_in(record_);
  args.partial = partial_.mutable_data_ptr<double>();
  args.epsilon = static_cast<float>(epsilon_);
  adam(current_queue(device_), args);
}

StepRecord Adam::record() const {
  const at::Tensor host = record_.cpu();
  StepRecord record;
  std::memcpy(&record, host.const_data_ptr<double>(), sizeof(record));
  return record;
}

}  // namespace wd
