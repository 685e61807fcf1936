// average.cpp: one kernel for each model of a policy.
#include "src/trainer/average.h"

#include <ATen/ATen.h>

#include "kernels/polyak.h"
#include "src/device/device.h"

namespace wd {

WeightsAverage::WeightsAverage(const Policy& policy, double average)
    : policy_(policy), tau_(static_cast<float>(1.0 - average)) {
  if (average == 0.0) return;
  weights_.push_back(policy.parameters());
  if (policy.critics() != nullptr) weights_.push_back(policy.critics()->parameters());
  for (const at::Tensor& weights : weights_) averages_.push_back(weights.clone());
}

void WeightsAverage::move(float tau) {
  for (std::size_t k = 0; k < averages_.size(); ++k)
    polyak(current_queue(policy_.device()), {.n = averages_[k].numel(),
                                             .from = weights_[k].const_data_ptr<float>(),
                                             .to = averages_[k].mutable_data_ptr<float>(),
                                             .tau = tau});
}

std::vector<NamedTensor> WeightsAverage::saved() const {
  std::vector<NamedTensor> named = is_on() ? policy_.saved() : std::vector<NamedTensor>();
  for (NamedTensor& each : named) {
    at::Tensor average;
    for (std::size_t k = 0; k < weights_.size(); ++k)
      if (each.tensor.is_alias_of(weights_[k]))
        average = averages_[k].as_strided(each.tensor.sizes(), each.tensor.strides(),
                                          each.tensor.storage_offset() - weights_[k].storage_offset());
    each.tensor = average.defined() ? average : each.tensor.clone();
  }
  return named;
}

}  // namespace wd
