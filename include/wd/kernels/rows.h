// rows.h: where rows of numbers are, and how far apart: one argument of a kernel.
#pragma once

#include <cstdint>
#include <type_traits>

#include "wd/math.h"

namespace wd {

// Row k begins `k * stride` numbers behind `pointer`, in memory of the device. Rows{} are empty: every row is
// null, because the stride is 0. A test of the pointer would cost 8 % of the loss of small games on a CPU.
template <typename T>
struct Rows {
  T* pointer = nullptr;
  std::int64_t stride = 0;

  WD_FN T* operator[](std::int64_t row) const { return pointer + row * stride; }
  // The rows from this one on; and what all rows have from this column on.
  WD_FN Rows from(std::int64_t row) const { return {(*this)[row], stride}; }
  WD_FN Rows column(std::int64_t column) const { return {pointer + column, stride}; }
  template <typename U>
    requires(std::is_same_v<U, const T> && !std::is_const_v<T>)
  WD_FN operator Rows<U>() const {
    return {pointer, stride};
  }
};

}  // namespace wd
