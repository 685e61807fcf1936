// weights.cpp: parameters between device memory and safetensors.
#include "wd/weights.h"

#include <ATen/ATen.h>

namespace wd {

HostWeights::HostWeights(const Policy& policy) {
  for (const NamedTensor& named : policy.named_parameters()) {
    const at::Tensor host = named.tensor.to(at::kCPU).contiguous();
    copies_.push_back(host);
    views_.push_back({named.name, "F32", host.sizes().vec(),
                      std::as_bytes(std::span(host.const_data_ptr<float>(), static_cast<std::size_t>(host.numel())))});
  }
}

void load_weights(Policy& policy, const std::filesystem::path& path) {
  const SafetensorsReader reader(path);
  for (const NamedTensor& named : policy.named_parameters()) {
    const at::Tensor host = at::empty(named.tensor.sizes(), at::kFloat);
    reader.read(named.name, "F32", host.sizes().vec(),
                std::as_writable_bytes(std::span(host.mutable_data_ptr<float>(), static_cast<std::size_t>(host.numel()))));
    named.tensor.copy_(host);
  }
}

}  // namespace wd
