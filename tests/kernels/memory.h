// memory.h: allocates the arrays of a kernel test, so that one test body runs a kernel on either device.
#pragma once

#include <cstddef>
#include <cstring>
#include <deque>
#include <vector>

#include "wd/queue.h"

namespace wd {

class HostMemory {
 public:
  static Queue queue() { return {}; }

  // A copy of the values; null if there are none.
  template <typename T>
  T* put(const std::vector<T>& values) {
    T* const copy = values.empty() ? nullptr : make<T>(values.size());
    if (copy != nullptr) std::memcpy(copy, values.data(), values.size() * sizeof(T));
    return copy;
  }
  // n elements whose bytes are all 0xff (NaN, -1, true), which reveals elements that a kernel does not write.
  template <typename T>
  T* make(std::size_t n) {
    return reinterpret_cast<T*>(blocks_.emplace_back(n * sizeof(T) + 1, std::byte{0xff}).data());
  }
  template <typename T>
  std::vector<T> get(const T* values, std::size_t n) const {
    return {values, values + n};
  }

 private:
  std::deque<std::vector<std::byte>> blocks_;
};

}  // namespace wd
