// named.cpp: finds named tensors, and copies them with checks.
#include "src/trainer/named.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "wd/error.h"

namespace wd {

const at::Tensor& find_tensor(const std::vector<NamedTensor>& tensors, std::string_view name) {
  const auto found = std::ranges::find(tensors, name, &NamedTensor::name);
  WD_CHECK(found != tensors.end(), "the checkpoint has no tensor '", name, "'");
  return found->tensor;
}

void restore_tensor(const std::vector<NamedTensor>& tensors, std::string_view name, const at::Tensor& into) {
  const at::Tensor& saved = find_tensor(tensors, name);
  WD_CHECK(saved.sizes() == into.sizes() && saved.scalar_type() == into.scalar_type(),
           "the checkpoint's tensor '", name, "' is ", saved.scalar_type(), saved.sizes(), " where ",
           into.scalar_type(), into.sizes(), " is expected");
  into.copy_(saved);
}

}  // namespace wd
