// named_tensor.h: tensors with names, in host memory and in safetensors files.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "wd/safetensors.h"

namespace wd {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
  // Its rows are replicas, which are divided among ranks; every rank holds other tensors whole.
  bool per_replica = false;
};

// Contiguous copies in host memory. Synchronizes on CUDA.
std::vector<NamedTensor> host_copies(const std::vector<NamedTensor>& tensors);

// For write_safetensors(): views of contiguous host tensors, which must outlive them.
std::vector<TensorView> views_of(const std::vector<NamedTensor>& tensors);

// What safetensors files call this type. Throws std::logic_error if they have no name for it.
std::string dtype_of(at::ScalarType type);

inline constexpr std::int64_t kAnyLength = -1;  // instead of the only size of a list

// The form that a tensor in a file must have.
struct TensorForm {
  std::string name;
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> shape;  // or {kAnyLength}
};
TensorForm form_of(const NamedTensor& named);

// An intact file that holds other tensors than are wanted.
class OtherTensors : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Reads the tensors of these forms, in order, as host tensors of the forms' types. Throws std::runtime_error
// naming the file, OtherTensors if a tensor is missing, has another type or shape, or is not among these
// forms. It checks this before it reads any tensor or allocates memory for it.
std::vector<NamedTensor> read_tensors(const std::filesystem::path& path,
                                      const std::vector<TensorForm>& forms);

}  // namespace wd
