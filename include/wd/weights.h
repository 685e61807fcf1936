// weights.h: a policy's parameters as a safetensors file, and back.
#pragma once

#include <filesystem>
#include <vector>

#include "wd/policy.h"
#include "wd/safetensors.h"

namespace wd {

// A policy's named parameters in host memory, as safetensors files hold them.
class HostWeights {
 public:
  explicit HostWeights(const Policy& policy);  // synchronises on CUDA

  const std::vector<TensorView>& views() const { return views_; }

 private:
  std::vector<at::Tensor> copies_;
  std::vector<TensorView> views_;
};

// Reads all parameters of the policy. Throws std::runtime_error naming the file where a tensor is missing or has another shape.
void load_weights(Policy& policy, const std::filesystem::path& path);

}  // namespace wd
