// weights.h: named tensors in host memory, as safetensors files hold them, and a policy's parameters among them.
#pragma once

#include <filesystem>
#include <vector>

#include "wd/policy.h"
#include "wd/safetensors.h"

namespace wd {

// Copies in host memory, contiguous. Synchronises on CUDA.
std::vector<NamedTensor> host_copies(const std::vector<NamedTensor>& tensors);

// For write_safetensors(): views of contiguous host tensors, which must outlive them.
std::vector<TensorView> views_of(const std::vector<NamedTensor>& tensors);

// Reads all tensors of a file. Throws std::runtime_error naming it where a type is none of ours.
std::vector<NamedTensor> read_tensors(const std::filesystem::path& path);

// Reads all parameters of the policy. Throws std::runtime_error naming the file where a tensor is missing or has another shape.
void load_weights(Policy& policy, const std::filesystem::path& path);

}  // namespace wd
