// cuda_memory.h: HostMemory's counterpart on the GPU. Kernels and copies share the default stream, so copies
// wait for kernels.
#pragma once

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>

#include <deque>
#include <vector>

#include "wd/queue.h"

// The first line of every test that needs a GPU.
#define WD_SKIP_WITHOUT_GPU() \
  if (!at::hasCUDA()) GTEST_SKIP() << "needs a GPU, and torch sees none here"

namespace wd {

class CudaMemory {
 public:
  static Queue queue() { return {.cuda = true, .stream = nullptr}; }

  template <typename T>
  T* put(const std::vector<T>& values) {
    if (values.empty()) return nullptr;
    T* const copy = make<T>(values.size());
    blocks_.back().copy_(bytes_of(values.data(), values.size()));
    return copy;
  }
  template <typename T>
  T* make(std::size_t n) {
    const auto bytes = static_cast<std::int64_t>(n * sizeof(T) + 1);
    blocks_.push_back(at::full({bytes}, 0xff, at::TensorOptions(at::kByte).device(at::kCUDA)));
    blocks_.back() = blocks_.back().slice(0, 0, bytes - 1);
    return static_cast<T*>(blocks_.back().data_ptr());
  }
  template <typename T>
  std::vector<T> get(const T* values, std::size_t n) const {
    std::vector<T> copy(n);
    const at::TensorOptions here = at::TensorOptions(at::kByte).device(at::kCUDA);
    const auto bytes = static_cast<std::int64_t>(n * sizeof(T));
    if (n > 0) bytes_of(copy.data(), n).copy_(at::from_blob(const_cast<T*>(values), {bytes}, here));
    return copy;
  }

 private:
  template <typename T>
  static at::Tensor bytes_of(const T* values, std::size_t n) {
    return at::from_blob(const_cast<T*>(values), {static_cast<std::int64_t>(n * sizeof(T))}, at::kByte);
  }

  std::deque<at::Tensor> blocks_;
};

}  // namespace wd
