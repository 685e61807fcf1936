// named.h: finds saved tensors by name, and checks their types and shapes.
#pragma once

#include <string_view>
#include <vector>

#include "wd/policy.h"

namespace wd {

// Throws std::runtime_error if there is none of that name.
const at::Tensor& find_tensor(const std::vector<NamedTensor>& tensors, std::string_view name);

// Copies the named tensor into `into`. Throws std::runtime_error that names both if type or shape differ.
void restore_tensor(const std::vector<NamedTensor>& tensors, std::string_view name, const at::Tensor& into);

}  // namespace wd
