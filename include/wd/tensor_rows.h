// tensor_rows.h: rows of tensors as arguments of kernels. T is the type of the tensor's numbers, `const`
// unless the kernel writes them. torch throws c10::Error if the tensor has numbers of another type.
#pragma once

#include <ATen/core/Tensor.h>

#include "wd/kernels/rows.h"

namespace wd {

// The rows of a tensor [rows, ...] from `begin` on, each without gaps; Rows{} of one without numbers.
template <typename T>
Rows<T> rows_of(const at::Tensor& tensor, std::int64_t begin = 0) {
  if (!tensor.defined() || tensor.numel() == 0) return {};
  if constexpr (std::is_const_v<T>)
    return Rows<T>{tensor.const_data_ptr<std::remove_const_t<T>>(), tensor.stride(0)}.from(begin);
  else
    return Rows<T>{tensor.mutable_data_ptr<T>(), tensor.stride(0)}.from(begin);
}

// Where row `begin` is; null of a tensor without numbers. For kernels that know how far apart rows are.
template <typename T>
T* at_row(const at::Tensor& tensor, std::int64_t begin = 0) {
  return rows_of<T>(tensor, begin).pointer;
}

}  // namespace wd
