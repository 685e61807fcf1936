// weights.h: named tensors in host memory, as safetensors files hold them, and a policy's parameters among
// them.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string>
#include <vector>

#include "wd/policy.h"
#include "wd/safetensors.h"

namespace wd {

// Copies in host memory, contiguous. Synchronises on CUDA.
std::vector<NamedTensor> host_copies(const std::vector<NamedTensor>& tensors);

// For write_safetensors(): views of contiguous host tensors, which must outlive them.
std::vector<TensorView> views_of(const std::vector<NamedTensor>& tensors);

inline constexpr std::int64_t kAnyLength = -1;  // in place of a list's only size

// What is expected of a tensor in a file.
struct TensorForm {
  std::string name;
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> shape;  // or {kAnyLength}
  bool or_list = false;             // a list of any length will do too
};
TensorForm form_of(const NamedTensor& named);

// Reads the tensors of these forms, in their order. Throws std::runtime_error naming the file and the tensor
// where one is missing, has another type or shape, or is none of these: before any is read, or memory for it
// is taken.
std::vector<NamedTensor> read_tensors(const std::filesystem::path& path,
                                      const std::vector<TensorForm>& forms);

// Reads all parameters of the policy. Throws UsageError naming the file where it does not exist or holds
// other tensors than the policy has, std::runtime_error where it is damaged or a number in it is not finite;
// the policy is then as it was.
void load_weights(Policy& policy, const std::filesystem::path& path);

}  // namespace wd
