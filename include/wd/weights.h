// weights.h: named tensors in host memory, as in safetensors files, and the parameters of a policy among
// them.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string>
#include <vector>

#include "wd/policy.h"
#include "wd/safetensors.h"

namespace wd {

// Contiguous copies in host memory. Synchronizes on CUDA.
std::vector<NamedTensor> host_copies(const std::vector<NamedTensor>& tensors);

// For write_safetensors(): views of contiguous host tensors, which must outlive them.
std::vector<TensorView> views_of(const std::vector<NamedTensor>& tensors);

inline constexpr std::int64_t kAnyLength = -1;  // instead of the only size of a list

// The form that a tensor in a file must have.
struct TensorForm {
  std::string name;
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> shape;  // or {kAnyLength}
};
TensorForm form_of(const NamedTensor& named);

// Reads the tensors of these forms, in order, as host tensors of the forms' types. Throws std::runtime_error
// naming the file and the tensor if one is missing, has another type or shape, or is not among these forms.
// It checks this before it reads any tensor or allocates memory for it.
std::vector<NamedTensor> read_tensors(const std::filesystem::path& path,
                                      const std::vector<TensorForm>& forms);

// Reads all parameters of the policy. Throws UsageError naming the file if it does not exist or holds other
// tensors than the policy has, std::runtime_error if it is damaged or a number in it is not finite; the
// policy is then unchanged.
void load_weights(Policy& policy, const std::filesystem::path& path);

}  // namespace wd
