// memory.h: memory that two processes share. It has no name, so nothing remains when both have ended.
#pragma once

#include <cstddef>
#include <span>

#include "src/base/descriptor.h"

namespace wd::outside {

class Memory {
 public:
  // Zeros. Throws std::runtime_error if there is not enough of it.
  explicit Memory(std::size_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  int descriptor() const { return descriptor_.get(); }

 private:
  Descriptor descriptor_;
  std::size_t bytes_;
  std::byte* data_ = nullptr;
};

}  // namespace wd::outside
